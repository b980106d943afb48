// A restore that is called off while it reads a file of the format without hashes of chunks.
#include <gtest/gtest.h>

#include "tests/support/checkpoint_builder.h"
#include "tests/support/temporary_folder.h"
#include "worker-sidecar/storage/piece_reader.h"

namespace rekindle {
namespace {

TEST(WholeFileStop, TheReaderAsksAfterEachBlockWhetherItMayGoOn) {
  constexpr std::uint64_t kBytes = 3 * kHashChunkBytes;
  TemporaryFolder root;
  const std::string folder =
      open_job_folder(real_file_system(), {.root = root.path(), .job = make_job(), .nonce = "n0"})->path;
  const Layout layout{{whole_tensor("w", Dtype::u8, {kBytes})}};
  ASSERT_TRUE(
      save_checkpoint(real_file_system(), folder, make_job(), {1, 184, "x"}, make_memory(7, layout, {}), {}, 1));
  SealedManifest sealed = *read_manifest(real_file_system(), folder, "a1-s184-x");
  for (ManifestFile& file : sealed.manifest.files) file.chunks.clear();
  const Result<RestorePlan> plan = plan_restore(sealed.manifest, {0, 1, layout, {}});
  ASSERT_TRUE(plan) << plan.error().message;

  std::string bytes(kBytes, '\0');
  const Destination destination{bytes.data(), bytes.size()};
  int asked = 0;
  const Status status = read_plan(real_file_system(), folder + "/a1-s184-x", sealed.manifest, *plan,
                                  {{&destination, 1}, {}}, [&]() -> Status {
                                    if (++asked < 2) return {};
                                    return fail(ErrorCode::conflict, "the offer was taken back");
                                  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "the offer was taken back");
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace rekindle
