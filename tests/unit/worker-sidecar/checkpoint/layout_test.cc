#include "worker-sidecar/checkpoint/layout.h"

#include <gtest/gtest.h>

#include <limits>

#include "common/base/json_fields.h"

namespace rekindle {
namespace {

Layout make_layout() {
  return {{whole_tensor("w1", Dtype::bf16, {64, 32}), whole_tensor("scale", Dtype::f64, {}),
           TensorDescription{"shard", Dtype::f32, {3, 4}, {10, 4}, {7, 0}, WrittenIn::anywhere}}};
}

TEST(Dtype, NamesAndNumbersGoThereAndBack) {
  for (int number = 1; number <= 22; ++number) {
    const auto dtype = dtype_from_number(number);
    ASSERT_TRUE(dtype.has_value()) << number;
    EXPECT_EQ(parse_enum<Dtype>(to_string(*dtype)), dtype);
    EXPECT_EQ(packed_elements(*dtype) * element_bits(*dtype) % 8, 0u);
  }
  EXPECT_EQ(dtype_from_number(0), std::nullopt);
  EXPECT_EQ(dtype_from_number(23), std::nullopt);
  EXPECT_EQ(dtype_from_number(-1), std::nullopt);
  EXPECT_EQ(parse_enum<Dtype>("F128"), std::nullopt);
}

TEST(Dtype, ElementsAreCountedInWholeBytes) {
  EXPECT_EQ(bytes_of_elements(Dtype::bf16, 3), 6u);
  EXPECT_EQ(bytes_of_elements(Dtype::f8_e8m0, 3), 3u);
  EXPECT_EQ(bytes_of_elements(Dtype::c64, 3), 24u);
  EXPECT_EQ(bytes_of_elements(Dtype::f4, 6), 3u);
  EXPECT_EQ(bytes_of_elements(Dtype::f6_e2m3, 4), 3u);
  EXPECT_EQ(bytes_of_elements(Dtype::f6_e3m2, 12), 9u);
}

TEST(Layout, SurvivesTheWire) {
  const Layout layout = make_layout();
  const Result<Layout> decoded = decode_layout(encode_layout(layout));
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  EXPECT_EQ(*decoded, layout);
}

TEST(Layout, CountsRowsAndBytes) {
  const Layout layout = make_layout();
  EXPECT_EQ(tensor_bytes(layout.tensors[0]), 64u * 32 * 2);
  EXPECT_EQ(row_count(layout.tensors[1]), 1u);
  EXPECT_EQ(rows_bytes(layout.tensors[1], 1), 8u);
  EXPECT_EQ(row_count(layout.tensors[2]), 3u);
  EXPECT_EQ(rows_bytes(layout.tensors[2], 2), 32u);
  EXPECT_EQ(rows_bytes(whole_tensor("none", Dtype::f32, {0, 7}), 0), 0u);
  EXPECT_EQ(rows_bytes(whole_tensor("none", Dtype::f32, {7, 0}), 7), 0u);
}

TEST(Layout, HasTheRowsBetweenItsOwn) {
  const TensorDescription tensor = whole_tensor("w", Dtype::f32, {5, 2});
  EXPECT_TRUE(has_rows(tensor, 0, 5));
  EXPECT_TRUE(has_rows(tensor, 3, 3));
  EXPECT_FALSE(has_rows(tensor, 3, 2));
  EXPECT_FALSE(has_rows(tensor, 4, 6));
}

TEST(PackedElements, AreCutWhereAByteEnds) {
  const TensorDescription table = whole_tensor("table", Dtype::f4, {3, 6});
  EXPECT_EQ(tensor_bytes(table), 9u);
  EXPECT_EQ(row_step(table), 1u);
  EXPECT_EQ(rows_bytes(table, 2), 6u);
  EXPECT_TRUE(has_rows(table, 1, 2));
  const TensorDescription line = whole_tensor("line", Dtype::f6_e3m2, {12});
  EXPECT_EQ(tensor_bytes(line), 9u);
  EXPECT_EQ(row_step(line), 4u);
  EXPECT_EQ(rows_bytes(line, 8), 6u);
  EXPECT_TRUE(has_rows(line, 4, 12));
  EXPECT_FALSE(has_rows(line, 2, 12));
  EXPECT_FALSE(has_rows(line, 4, 11));
}

TEST(PackedElements, ThatEndInsideAByteAreRefusedWithWhatToDo) {
  struct Case {
    TensorDescription tensor;
    const char* message;
  };
  for (const Case& broken : {
           Case{whole_tensor("w", Dtype::f4, {4, 7}),
                "tensor \"w\" is F4, of which only 2 elements together are whole bytes: in its shape the last "
                "dimension is 7 and has to be a multiple of 2; pad it, "
                "cut it elsewhere, or keep its bytes as U8"},
           Case{{"w", Dtype::f6_e2m3, {2, 4}, {2, 10}, {0, 4}},
                "tensor \"w\" is F6_E2M3, of which only 4 elements together are whole bytes: in its global shape the "
                "last dimension is 10 and has to be a multiple "
                "of 4; pad it, cut it elsewhere, or keep its bytes as U8"},
           Case{{"w", Dtype::f6_e3m2, {4}, {12}, {2}},
                "tensor \"w\" is F6_E3M2, of which only 4 elements together are whole bytes: in its offset the last "
                "dimension is 2 and has to be a multiple of 4; pad "
                "it, cut it elsewhere, or keep its bytes as U8"},
           Case{whole_tensor("w", Dtype::f4, {}),
                "tensor \"w\" is F4, of which only 2 elements together are whole bytes: it cannot be a scalar; keep "
                "its byte as U8"},
           // Two whole bytes in all, but no row of them.
           Case{whole_tensor("w", Dtype::f6_e2m3, {4, 2}),
                "tensor \"w\" is F6_E2M3, of which only 4 elements together are whole bytes: in its shape the last "
                "dimension is 2 and has to be a multiple of 4; pad "
                "it, cut it elsewhere, or keep its bytes as U8"},
       }) {
    const Status status = check_tensor(broken.tensor);
    ASSERT_FALSE(status) << broken.message;
    EXPECT_EQ(status.error().message, broken.message);
  }
  EXPECT_TRUE(check_tensor({"w", Dtype::f4, {3, 2}, {9, 6}, {3, 4}}));
  EXPECT_TRUE(check_tensor(whole_tensor("empty", Dtype::f4, {3, 0})));
  EXPECT_FALSE(array_bytes(Dtype::f4, {3}));
  EXPECT_EQ(array_bytes(Dtype::f6_e2m3, {2, 2}), 3u);
}

TEST(Layout, TwoTensorsOfOneNameAreRefusedByName) {
  Layout layout = make_layout();
  layout.tensors.push_back(layout.tensors.front());
  const Status status = check_layout(layout);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "tensor \"w1\" is registered twice; names are unique");
}

TEST(Layout, SizesThatOverflowAreRefused) {
  const std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
  for (const Extents& shape :
       {Extents{huge}, Extents{huge, 2}, Extents{1u << 31, 1u << 31, 4}, Extents{0, huge, huge}}) {
    EXPECT_FALSE(check_tensor(whole_tensor("w", Dtype::f64, shape)));
    EXPECT_FALSE(check_tensor(whole_tensor("w", Dtype::f4, shape)));
  }
  EXPECT_TRUE(check_tensor(whole_tensor("w", Dtype::f4, {2 * kTensorBytesMax})));
  EXPECT_FALSE(check_tensor(whole_tensor("w", Dtype::f4, {2 * kTensorBytesMax + 2})));
  // Each fits, together they do not.
  const Extents large{kTensorBytesMax / 8};
  EXPECT_TRUE(check_layout({{whole_tensor("a", Dtype::f64, large)}}));
  EXPECT_FALSE(check_layout({{whole_tensor("a", Dtype::f64, large), whole_tensor("b", Dtype::u8, {1})}}));
}

TEST(Layout, AShardOutsideItsGlobalTensorIsRefused) {
  EXPECT_TRUE(check_tensor({"s", Dtype::f32, {3}, {10}, {7}}));
  EXPECT_FALSE(check_tensor({"s", Dtype::f32, {4}, {10}, {7}}));
  EXPECT_FALSE(check_tensor({"s", Dtype::f32, {1}, {10}, {std::numeric_limits<std::uint64_t>::max()}}));
  EXPECT_FALSE(check_tensor({"s", Dtype::f32, {1}, {10, 1}, {0}}));
}

TEST(Layout, NamesThatCannotBeKeysAreRefused) {
  for (const std::string& name :
       {std::string(), std::string("__metadata__"), std::string("w[0:5]"), std::string("a\nb"), std::string("\xff"),
        std::string("\xed\xa0\x80"), std::string("\xc0\xaf"), std::string(256, 'x')}) {
    EXPECT_FALSE(find_name_fault(name).empty()) << name;
  }
  for (const std::string& name : {std::string("layer.0/w"), std::string("w[0]"), std::string("gewicht-\xc3\xa4"),
                                  std::string("[a:b]"), std::string("\xf0\x9f\x94\xa5"), std::string(255, 'x')}) {
    EXPECT_EQ(find_name_fault(name), "") << name;
  }
}

TEST(Layout, MoreThanEightDimensionsAreRefused) {
  EXPECT_TRUE(check_tensor(whole_tensor("w", Dtype::u8, Extents(8, 1))));
  EXPECT_FALSE(check_tensor(whole_tensor("w", Dtype::u8, Extents(9, 1))));
}

TEST(Layout, HashTellsEveryDifference) {
  const std::string hash = layout_hash(make_layout());
  EXPECT_EQ(hash, layout_hash(make_layout()));
  for (int change = 0; change < 5; ++change) {
    Layout layout = make_layout();
    if (change == 0) layout.tensors[0].dtype = Dtype::f16;
    if (change == 1) layout.tensors[0].name = "w2";
    if (change == 2) layout.tensors[2].offset[0] = 6;
    if (change == 3) std::swap(layout.tensors[0], layout.tensors[1]);
    if (change == 4) layout.tensors[0].written_in = WrittenIn::anywhere;
    EXPECT_NE(layout_hash(layout), hash) << change;
  }
}

TEST(Layout, WrongJsonIsAnErrorAndNothingElse) {
  for (const char* text :
       {"{}", "[1]", R"([{"name":"w"}])",
        R"([{"name":"w","dtype":"F99","shape":[],"global_shape":[],"offset":[],"written_in":"update"}])",
        R"([{"name":"w","dtype":"F32","shape":[-1],"global_shape":[1],"offset":[0],"written_in":"update"}])",
        R"([{"name":"w","dtype":"F32","shape":[],"global_shape":[],"offset":[],"written_in":"never"}])"}) {
    EXPECT_FALSE(decode_layout(Json::parse(text))) << text;
  }
}

TEST(States, NamesAreUniqueAndUsable) {
  EXPECT_TRUE(check_states({{"sampler", 8}, {"generator", 0}}));
  EXPECT_FALSE(check_states({{"sampler", 8}, {"sampler", 9}}));
  EXPECT_FALSE(check_states({{"", 8}}));
}

}  // namespace
}  // namespace rekindle
