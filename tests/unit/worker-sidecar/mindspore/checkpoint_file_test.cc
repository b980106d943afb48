#include "worker-sidecar/mindspore/checkpoint_file.h"

#include <gtest/gtest.h>

#include <random>

#include "common/base/format.h"
#include "tests/support/random_seed.h"
#include "worker-sidecar/mindspore/checkpoint.pb.h"
#include "worker-sidecar/mindspore/crc32.h"
#include "worker-sidecar/mindspore/dtype_names.h"

namespace rekindle {
namespace {

using mindspore::checkpoint::Checkpoint;

ReadBytes from(const std::string& bytes) {
  return [&bytes](std::uint64_t offset, std::size_t count) -> Result<std::string> {
    if (offset > bytes.size() || count > bytes.size() - offset) return fail(ErrorCode::corrupt, "read beyond the end");
    return bytes.substr(offset, count);
  };
}

Result<MindSporeFile> index(const std::string& bytes) { return index_mindspore_file(bytes.size(), from(bytes)); }

std::string message_of(const std::string& bytes) {
  const Result<MindSporeFile> file = index(bytes);
  return file ? "fine" : file.error().message;
}

void add(Checkpoint& checkpoint, const std::string& name, const std::vector<std::int64_t>& dims,
         const std::string& type, const std::string& content) {
  auto* value = checkpoint.add_value();
  value->set_tag(name);
  for (const std::int64_t extent : dims) value->mutable_tensor()->add_dims(extent);
  value->mutable_tensor()->set_tensor_type(type);
  value->mutable_tensor()->set_tensor_content(content);
}

std::string content_of(const std::string& bytes, const MindSporeEntry& entry) {
  std::string content;
  for (const ContentRange& range : entry.content) content += bytes.substr(range.begin_byte, range.bytes);
  return content;
}

std::string sample() {
  Checkpoint checkpoint;
  add(checkpoint, "w", {2, 3}, "Float32", std::string(24, 'w'));
  add(checkpoint, "scale", {}, "BFloat16", "sc");
  add(checkpoint, "empty", {0, 4}, "Float32", "");
  add(checkpoint, "text", {0}, "str", "h...");
  return checkpoint.SerializeAsString();
}

TEST(MindSporeFile, ReadsWhatProtobufsOwnWriterMade) {
  const std::string bytes = sample();
  const Result<MindSporeFile> file = index(bytes);
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->entries.size(), 4u);
  EXPECT_EQ(file->entries[0].name, "w");
  EXPECT_EQ(file->entries[0].shape, (Extents{2, 3}));
  EXPECT_EQ(file->entries[0].type, "Float32");
  EXPECT_EQ(content_of(bytes, file->entries[0]), std::string(24, 'w'));
  EXPECT_EQ(file->entries[1].shape, Extents{});
  EXPECT_EQ(content_bytes(file->entries[2]), 0u);
  EXPECT_EQ(file->entries[3].type, kMindSporeText);
  EXPECT_FALSE(file->checksum);
}

TEST(MindSporeFile, ComplexNumbersHaveEightBytesEach) {
  Checkpoint checkpoint;
  add(checkpoint, "phase", {2, 3}, "Complex64", std::string(48, 'c'));
  add(checkpoint, "old.scalar", {0}, "Complex64", std::string(8, 'c'));
  const Result<MindSporeFile> file = index(checkpoint.SerializeAsString());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->entries[1].shape, Extents{});
  checkpoint.mutable_value(0)->mutable_tensor()->set_tensor_content(std::string(24, 'c'));
  EXPECT_FALSE(index(checkpoint.SerializeAsString()));
}

// These bytes came out of MindSpore 2.10.0's own save_checkpoint: w is Float32 [2, 3] with 0 to 5,
// s a scalar of 3.5.
TEST(MindSporeFile, ReadsWhatMindSporeMade) {
  const unsigned char made[] = {0x0a, 0x2c, 0x0a, 0x01, 0x77, 0x12, 0x27, 0x08, 0x02, 0x08, 0x03, 0x12, 0x07, 0x46,
                                0x6c, 0x6f, 0x61, 0x74, 0x33, 0x32, 0x1a, 0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                                0x80, 0x3f, 0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x40, 0x40, 0x00, 0x00, 0x80, 0x40,
                                0x00, 0x00, 0xa0, 0x40, 0x0a, 0x14, 0x0a, 0x01, 0x73, 0x12, 0x0f, 0x12, 0x07, 0x46,
                                0x6c, 0x6f, 0x61, 0x74, 0x33, 0x32, 0x1a, 0x04, 0x00, 0x00, 0x60, 0x40};
  const std::string bytes(reinterpret_cast<const char*>(made), sizeof made);
  const Result<MindSporeFile> file = index(bytes);
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->entries.size(), 2u);
  EXPECT_EQ(file->entries[0].shape, (Extents{2, 3}));
  EXPECT_EQ(content_of(bytes, file->entries[1]), bytes.substr(bytes.size() - 4));
  // And ours are the same bytes.
  std::string ours;
  for (const MindSporeEntry& entry : file->entries) {
    ours += slice_header(entry.name, entry.type, entry.shape, content_bytes(entry)) + content_of(bytes, entry);
  }
  EXPECT_EQ(ours, bytes);
}

TEST(MindSporeFile, WhatIsWrittenIsWhatProtobufsOwnReaderReads) {
  for (const std::size_t size : {0u, 4u, 100u, 127u, 128u, 300u, 70'000u}) {
    const std::string name(size % 200 + 1, 'n');
    const std::string content(size, 'c');
    Checkpoint checkpoint;
    ASSERT_TRUE(checkpoint.ParseFromString(slice_header(name, "UInt8", {size}, size) + content));
    ASSERT_EQ(checkpoint.value_size(), 1);
    EXPECT_EQ(checkpoint.value(0).tag(), name);
    EXPECT_EQ(checkpoint.value(0).tensor().tensor_type(), "UInt8");
    EXPECT_EQ(checkpoint.value(0).tensor().tensor_content(), content);
    EXPECT_EQ(checkpoint.value(0).tensor().dims(0), static_cast<std::int64_t>(size));
  }
}

TEST(MindSporeFile, ATensorAboveTheSliceSizeIsCutAsMindSporeCutsIt) {
  EXPECT_EQ(slices_of(0), (std::vector<std::uint64_t>{0}));
  EXPECT_EQ(slices_of(kMindSporeSliceBytes), (std::vector<std::uint64_t>{kMindSporeSliceBytes}));
  EXPECT_EQ(slices_of(2 * kMindSporeSliceBytes + 8),
            (std::vector<std::uint64_t>{kMindSporeSliceBytes, kMindSporeSliceBytes, 8}));
}

TEST(MindSporeFile, SlicesOfOneTensorBecomeOne) {
  Checkpoint checkpoint;
  for (const char* part : {"aaaa", "bbbb", "cccc"}) add(checkpoint, "w", {3}, "Float32", part);
  std::string bytes = checkpoint.SerializeAsString();
  const Result<MindSporeFile> file = index(bytes);
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->entries.size(), 1u);
  EXPECT_EQ(content_of(bytes, file->entries[0]), "aaaabbbbcccc");
  checkpoint.mutable_value(1)->mutable_tensor()->set_tensor_type("Int32");
  EXPECT_EQ(message_of(checkpoint.SerializeAsString()), "the slices of \"w\" differ in type or shape");
}

TEST(MindSporeFile, OlderScalarsAndPackedShapesAreRead) {
  Checkpoint checkpoint;
  add(checkpoint, "s", {0}, "Float32", "aaaa");
  EXPECT_EQ(index(checkpoint.SerializeAsString())->entries[0].shape, Extents{});
  const std::string packed(
      "\x0a\x13\x0a\x01w\x12\x0e\x0a\x02\x02\x01\x12\x04"
      "Int8"
      "\x1a\x02"
      "ab",
      21);
  EXPECT_EQ(index(packed)->entries.at(0).shape, (Extents{2, 1}));
}

TEST(MindSporeFile, TheChecksumIsFoundAndNotTakenForAMessage) {
  const std::string bytes = sample();
  Crc32 crc;
  crc.update(bytes.data(), bytes.size());
  std::string with = format("{}crc_num{}", bytes, std::string(6, '\0'));
  for (int shift = 24; shift >= 0; shift -= 8) with += static_cast<char>(crc.value() >> shift);
  const Result<MindSporeFile> file = index(with);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->checksum, crc.value());
  EXPECT_EQ(file->message_bytes, bytes.size());
}

TEST(MindSporeFile, TheChecksumIsThatOfZlib) {
  Crc32 crc;
  crc.update("1234", 4);
  crc.update("56789", 5);
  EXPECT_EQ(crc.value(), 0xcbf43926u);
}

TEST(MindSporeFile, WhatDoesNotFitIsRefusedByName) {
  Checkpoint checkpoint;
  add(checkpoint, "w", {2, 3}, "Float32", std::string(20, 'w'));
  EXPECT_EQ(message_of(checkpoint.SerializeAsString()),
            "\"w\" has 20 bytes of content, which is not what its type and shape say");
  checkpoint.Clear();
  add(checkpoint, "w", {-1}, "Int8", "a");
  EXPECT_NE(message_of(checkpoint.SerializeAsString()), "fine") << "a negative extent";
  checkpoint.Clear();
  for (const char* name : {"w", "v", "w"}) add(checkpoint, name, {1}, "Int8", "a");
  EXPECT_EQ(message_of(checkpoint.SerializeAsString()), "it has \"w\" twice");
  checkpoint.Clear();
  checkpoint.add_value()->set_tag("table");
  checkpoint.mutable_value(0)->mutable_maptensor()->add_tensor();
  EXPECT_EQ(message_of(checkpoint.SerializeAsString()), "\"table\" is a map parameter, which has no counterpart here");
  EXPECT_EQ(message_of(""), "it holds no tensors");
  EXPECT_NE(message_of("MINDSPORE ENCRYPTED").find("encrypted, or no checkpoint of MindSpore"), std::string::npos);
}

TEST(MindSporeFile, CutAnywhereItIsRefusedOrHasFewerTensors) {
  const std::string bytes = sample();
  std::size_t boundaries = 0;
  for (std::size_t kept = 0; kept < bytes.size(); ++kept) {
    const Result<MindSporeFile> file = index(bytes.substr(0, kept));
    if (!file) continue;
    EXPECT_LT(file->entries.size(), 4u) << "cut to " << kept << " bytes";
    ++boundaries;
  }
  EXPECT_EQ(boundaries, 3u) << "only between two tensors";
}

void read_random_bytes(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::string valid = sample();
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = valid;
    if (i % 2 == 0) {
      bytes.resize(random() % 100);
      for (char& byte : bytes) byte = static_cast<char>(random());
    } else {
      for (int flips = 0; flips < 3; ++flips) bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    const Result<MindSporeFile> file = index(bytes);
    if (!file) continue;
    for (const MindSporeEntry& entry : file->entries) {
      for (const ContentRange& range : entry.content) {
        ASSERT_LE(range.begin_byte, bytes.size());
        ASSERT_LE(range.bytes, bytes.size() - range.begin_byte);
      }
    }
  }
}

TEST(MindSporeFile, RandomBytesGiveAnErrorOrRangesInsideTheFile) {
  test::for_each_seed({.fixed = {1}}, read_random_bytes);
}

TEST(MindSporeTypes, AreThoseOfItsCheckpointFiles) {
  EXPECT_EQ(mindspore_name(Dtype::bf16), "BFloat16");
  EXPECT_EQ(mindspore_name(Dtype::u64), "UInt64");
  EXPECT_FALSE(mindspore_name(Dtype::f8_e4m3));
  EXPECT_FALSE(mindspore_name(Dtype::f8_e5m2));
  EXPECT_FALSE(mindspore_name(Dtype::f4));
  EXPECT_FALSE(mindspore_name(Dtype::c64)) << "its save_checkpoint writes it, its load_checkpoint does not know it";
  EXPECT_EQ(parse_mindspore_name("Complex64"), Dtype::c64);
  EXPECT_EQ(parse_mindspore_name("Bool"), Dtype::boolean);
  EXPECT_FALSE(parse_mindspore_name("Int4"));
}

}  // namespace
}  // namespace rekindle
