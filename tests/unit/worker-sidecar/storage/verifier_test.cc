#include "worker-sidecar/storage/verifier.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "common/base/format.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/temporary_folder.h"

namespace rekindle {
namespace {

class VerifyCheckpoint : public testing::Test {
 protected:
  VerifyCheckpoint()
      : folder_(open_job_folder(real_file_system(), {.root = root_.path(), .job = make_job(), .nonce = "n0"})->path) {
    EXPECT_TRUE(save_checkpoint(real_file_system(), folder_, make_job(), {1, 184, "x"}, make_memory(1, layout_)));
  }
  Verification verify() { return verify_checkpoint(real_file_system(), folder_, "a1-s184-x", make_job()); }
  std::string path_of(const std::string& file) const { return format("{}/a1-s184-x/{}", folder_, file); }
  void flip(const std::string& file, std::size_t place) {
    std::string bytes = read_bytes(path_of(file));
    bytes.at(place) = static_cast<char>(bytes.at(place) ^ 1);
    write_bytes(path_of(file), bytes);
  }

  TemporaryFolder root_;
  const std::string folder_;
  // Two ranks write 10 MB each, in three chunks.
  const Layout layout_{{whole_tensor("w1", Dtype::u8, {2'000, 5'000}), whole_tensor("w2", Dtype::u8, {2'000, 5'000})}};
};

TEST_F(VerifyCheckpoint, AGoodOneIsFine) {
  std::uint64_t last = 0;
  const Verification result = verify_checkpoint(real_file_system(), folder_, "a1-s184-x", make_job(),
                                                [&](std::uint64_t done, std::uint64_t all) {
                                                  EXPECT_GE(done, last);
                                                  EXPECT_LE(done, all);
                                                  last = done;
                                                });
  EXPECT_TRUE(result.fine()) << result.findings[0].message;
  EXPECT_EQ(result.bytes_read, file_bytes(result.sealed->manifest));
  EXPECT_EQ(last, result.bytes_read);
}

TEST_F(VerifyCheckpoint, AFlippedByteIsNamedByFileRangeAndTensor) {
  flip("rank-1.safetensors", 5'000'000);
  const Verification result = verify();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0],
            (Finding{"rank-1.safetensors", 4u << 20, 8u << 20, "its bytes are not those that were written", {"w2"}}));
}

TEST_F(VerifyCheckpoint, WithoutChunkHashesTheWholeFileIsNamed) {
  Manifest manifest = read_manifest(real_file_system(), folder_, "a1-s184-x")->manifest;
  for (ManifestFile& file : manifest.files) file.chunks.clear();
  write_bytes(path_of("manifest.json"), encode_manifest(manifest).text);
  flip("rank-1.safetensors", 5'000'000);
  const Verification result = verify();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].end_byte, manifest.files[1].bytes);
}

TEST_F(VerifyCheckpoint, AShortFileIsNamedFromWhereItEnds) {
  std::filesystem::resize_file(path_of("rank-0.safetensors"), 1000);
  const Verification result = verify();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].file, "rank-0.safetensors");
  EXPECT_EQ(result.findings[0].begin_byte, 1000u);
}

TEST_F(VerifyCheckpoint, EveryDamagedFileIsReported) {
  flip("rank-0.safetensors", 20);
  std::filesystem::remove(path_of("state-0.safetensors"));
  EXPECT_EQ(verify().findings.size(), 2u);
}

TEST_F(VerifyCheckpoint, ADamagedManifestIsNamed) {
  flip("manifest.json", 100);
  const Verification result = verify();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].file, "manifest.json");
  EXPECT_EQ(result.sealed, std::nullopt);
}

TEST_F(VerifyCheckpoint, AFileThatSaysSomethingElseThanTheManifestIsFound) {
  // Both are sealed rightly, but the file's header calls the tensor by another name.
  Manifest manifest = read_manifest(real_file_system(), folder_, "a1-s184-x")->manifest;
  manifest.tensors[0].pieces[0].key = "w9";
  write_bytes(path_of("manifest.json"), encode_manifest(manifest).text);
  const Verification result = verify();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_NE(result.findings[0].message.find("w9"), std::string::npos);
}

TEST_F(VerifyCheckpoint, AnotherJobsCheckpointAndARenamedFolderAreFound) {
  EXPECT_FALSE(verify_checkpoint(real_file_system(), folder_, "a1-s184-x", make_job("letters")).fine());
  std::filesystem::rename(folder_ + "/a1-s184-x", folder_ + "/a1-s185-x");
  EXPECT_FALSE(verify_checkpoint(real_file_system(), folder_, "a1-s185-x", make_job()).fine());
}

TEST_F(VerifyCheckpoint, AFolderThatIsNoCheckpointIsFound) {
  EXPECT_FALSE(verify_checkpoint(real_file_system(), folder_, "a1-s999-x").fine());
}

}  // namespace
}  // namespace rekindle
