#include "worker-sidecar/checkpoint/safetensors.h"

#include <gtest/gtest.h>

namespace rekindle {
namespace {

std::string with_length(const std::string& json) {
  std::string header;
  for (int shift = 0; shift < 64; shift += 8) header += static_cast<char>(json.size() >> shift & 0xff);
  return header + json;
}

DataFileLayout mixed_layout() {
  return lay_out_data_file({{"flags", Dtype::boolean, {3}},
                            {"w[2:4]", Dtype::f32, {2, 2}},
                            {"scale", Dtype::f64, {}},
                            {"none", Dtype::f32, {0, 9}}})
      .value();
}

TEST(DataHeader, GoldenBytes) {
  const Result<DataFileLayout> layout = lay_out_data_file({{"b", Dtype::u8, {3}}, {"a", Dtype::f32, {2}}});
  ASSERT_TRUE(layout.has_value());
  const std::string json =
      R"({"a":{"data_offsets":[0,8],"dtype":"F32","shape":[2]},"b":{"data_offsets":[8,11],"dtype":"U8","shape":[3]}})";
  ASSERT_EQ(json.size(), 107u);
  EXPECT_EQ(layout->header, std::string("\x70\0\0\0\0\0\0\0", 8) + json + "     ");
  EXPECT_EQ(layout->file_bytes, 8u + 112 + 11);
  EXPECT_EQ(layout->source, (std::vector<std::size_t>{1, 0}));
}

TEST(DataHeader, GoesThereAndBack) {
  const DataFileLayout layout = mixed_layout();
  const auto entries = decode_data_header(layout.header, layout.file_bytes);
  ASSERT_TRUE(entries.has_value()) << entries.error().message;
  ASSERT_EQ(entries->size(), layout.entries.size());
  for (const DataEntry& entry : layout.entries)
    EXPECT_NE(std::find(entries->begin(), entries->end(), entry), entries->end()) << entry.key;
}

TEST(DataHeader, EveryArrayIsAlignedToItsElements) {
  for (const DataEntry& entry : mixed_layout().entries)
    EXPECT_EQ(entry.begin_byte * 8 % element_bits(entry.dtype), 0u) << entry.key;
}

TEST(DataHeader, ElementsNarrowerThanAByteComeLast) {
  const Result<DataFileLayout> layout = lay_out_data_file(
      {{"f4", Dtype::f4, {3, 2}}, {"f6", Dtype::f6_e3m2, {4}}, {"u8", Dtype::u8, {3}}, {"c64", Dtype::c64, {1}}});
  ASSERT_TRUE(layout) << layout.error().message;
  EXPECT_EQ(layout->source, (std::vector<std::size_t>{3, 2, 1, 0}));
  EXPECT_EQ(layout->file_bytes, layout->header.size() + 8 + 3 + 3 + 3);
  const auto entries = decode_data_header(layout->header, layout->file_bytes);
  ASSERT_TRUE(entries) << entries.error().message;
  EXPECT_EQ(*entries, layout->entries);
}

// Whether a tensor can be ours is said where it becomes one; a header is judged by the format's own
// rule.
TEST(DataHeader, RowsThatEndInsideAByteAreAsTheFormatHasThem) {
  const std::string header = with_length(R"({"a":{"dtype":"F6_E2M3","shape":[2,2],"data_offsets":[0,3]}})");
  EXPECT_TRUE(decode_data_header(header, header.size() + 3));
}

TEST(DataHeader, AFileOfNothingIsAFile) {
  const Result<DataFileLayout> layout = lay_out_data_file({});
  ASSERT_TRUE(layout.has_value());
  EXPECT_TRUE(decode_data_header(layout->header, layout->file_bytes).value().empty());
}

TEST(DataHeader, AKeyTwiceIsRefused) {
  EXPECT_FALSE(lay_out_data_file({{"w", Dtype::u8, {1}}, {"w", Dtype::u8, {1}}}));
}

TEST(DataHeader, CutShortAtEachLengthIsRefused) {
  const DataFileLayout layout = mixed_layout();
  for (std::size_t bytes = 0; bytes < layout.header.size(); ++bytes) {
    EXPECT_FALSE(decode_data_header(layout.header.substr(0, bytes), bytes)) << bytes;
    EXPECT_FALSE(decode_data_header(layout.header.substr(0, bytes), layout.file_bytes)) << bytes;
  }
  for (std::uint64_t bytes = layout.header.size(); bytes < layout.file_bytes; ++bytes) {
    EXPECT_FALSE(decode_data_header(layout.header, bytes)) << bytes;
  }
  EXPECT_FALSE(decode_data_header(layout.header, layout.file_bytes + 1));
}

TEST(DataHeader, BrokenRulesAreRefused) {
  struct Case {
    const char* what;
    const char* json;
    std::uint64_t data_bytes;
  };
  for (
      const Case& broken : {
          Case{"gap", R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3},
          Case{
              "overlap",
              R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
              3},
          Case{"data left over", R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 3},
          Case{"beyond the file", R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 3},
          Case{"backwards", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[3,2]}})", 3},
          Case{"size and shape differ", R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,3]}})", 3},
          Case{"unknown type", R"({"a":{"dtype":"F128","shape":[3],"data_offsets":[0,3]}})", 3},
          Case{"half a byte", R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}})", 1},
          Case{"half a byte rounded up", R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2},
          Case{"a byte an element where two share one", R"({"a":{"dtype":"F4","shape":[4],"data_offsets":[0,4]}})", 4},
          Case{"shape overflows",
               R"({"a":{"dtype":"U8","shape":[4294967296,4294967296,0,18446744073709551615],"data_offsets":[0,0]}})",
               0},
          Case{"three offsets", R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3,3]}})", 3},
          Case{"a number that is not whole", R"({"a":{"dtype":"U8","shape":[3.5],"data_offsets":[0,3]}})", 3},
          Case{"not an object", R"([1])", 0},
          Case{"not JSON", R"({"a":)", 0},
      }) {
    const std::string header = with_length(broken.json);
    EXPECT_FALSE(decode_data_header(header, header.size() + broken.data_bytes)) << broken.what;
  }
}

TEST(DataHeader, AnAbsurdLengthIsRefusedBeforeAnythingIsAllocated) {
  EXPECT_FALSE(data_header_bytes(std::string(8, '\xff'), ~std::uint64_t{0}));
  EXPECT_FALSE(data_header_bytes(std::string(8, '\0'), 7));
}

TEST(DataHeader, MetadataOfOtherWritersIsIgnored) {
  const std::string header =
      with_length(R"({"__metadata__":{"format":"pt"},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})");
  EXPECT_EQ(decode_data_header(header, header.size() + 1).value().size(), 1u);
}

TEST(EntryOfPiece, KnowsItsRows) {
  const TensorDescription tensor = whole_tensor("w", Dtype::f32, {5, 3});
  EXPECT_EQ(entry_of_piece(tensor, 1, 3), (DataEntry{"w[1:3]", Dtype::f32, {2, 3}}));
  EXPECT_EQ(entry_of_piece(tensor, 0, 5), (DataEntry{"w", Dtype::f32, {5, 3}}));
  EXPECT_EQ(entry_of_piece(whole_tensor("s", Dtype::f64, {}), 0, 1), (DataEntry{"s", Dtype::f64, {}}));
}

}  // namespace
}  // namespace rekindle
