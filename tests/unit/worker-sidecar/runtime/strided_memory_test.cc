#include "worker-sidecar/runtime/src/strided_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "common/base/format.h"
#include "tests/support/random_seed.h"

namespace rekindle::runtime {
namespace {

using ::testing::HasSubstr;

class AView : public ::testing::Test {
 protected:
  Outcome<std::unique_ptr<StridedMemory>> make(Extents shape, std::vector<std::int64_t> strides,
                                               Dtype dtype = Dtype::u16) {
    strides.resize(kDimensionsMax);
    return StridedMemory::make(whole_tensor("view", dtype, std::move(shape)), strides.data(), memory.data());
  }
  std::vector<std::uint16_t> gather(const StridedMemory& view, std::size_t elements) {
    std::vector<std::uint16_t> dense(elements);
    EXPECT_TRUE(view.copy_out(dense.data(), 0, elements * 2));
    return dense;
  }
  void expect_refused(Extents shape, std::vector<std::int64_t> strides, const char* part, Dtype dtype = Dtype::u16) {
    const auto made = make(std::move(shape), std::move(strides), dtype);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().status, RK_ERROR_ARGUMENT);
    EXPECT_THAT(made.error().message, HasSubstr(part));
    EXPECT_THAT(made.error().message, HasSubstr("'view'"));
  }

  std::vector<std::uint16_t> memory = [] {
    std::vector<std::uint16_t> numbers(4096);
    std::iota(numbers.begin(), numbers.end(), std::uint16_t{0});
    return numbers;
  }();
};

TEST_F(AView, TransposedIsGatheredInItsOwnOrder) {
  // Memory is 2 rows of 3: 0 1 2 / 3 4 5.
  const auto view = make({3, 2}, {1, 3});
  ASSERT_TRUE(view);
  EXPECT_EQ(gather(**view, 6), (std::vector<std::uint16_t>{0, 3, 1, 4, 2, 5}));
}

TEST_F(AView, OfColumnsLeavesTheRestAlone) {
  const auto view = make({3, 2}, {10, 1});
  ASSERT_TRUE(view);
  EXPECT_EQ(gather(**view, 6), (std::vector<std::uint16_t>{0, 1, 10, 11, 20, 21}));
  const std::vector<std::uint16_t> fresh{901, 902, 903, 904, 905, 906};
  ASSERT_TRUE((*view)->copy_in(0, fresh.data(), 12));
  EXPECT_EQ(memory[0], 901);
  EXPECT_EQ(memory[2], 2) << "a neighbour of the view";
  EXPECT_EQ(memory[9], 9);
  EXPECT_EQ(memory[21], 906);
}

TEST_F(AView, ThatIsDenseAfterAllNeedsNoWalk) {
  for (const auto& [shape, strides] : std::vector<std::pair<Extents, std::vector<std::int64_t>>>{
           {{3, 2}, {2, 1}}, {{3, 1}, {1, 77}}, {{1, 4}, {0, 1}}, {{0, 4}, {9, 9}}, {{}, {}}, {{1}, {0}}}) {
    const auto made = make(shape, strides);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(*made, nullptr);
  }
}

TEST_F(AView, ThatCannotBeWrittenElementByElementIsRefused) {
  expect_refused({3, 2}, {-2, 1}, "stride[0] is -2; negative strides cannot be registered");
  expect_refused({3, 2}, {0, 1}, "stride 0 over 3 elements");
  expect_refused({3, 2}, {1, 1}, "may share memory");
  expect_refused({3, 4}, {3, 1}, "may share memory");
  expect_refused({3, 4}, {INT64_MAX, 1}, "reach over more than");
}

TEST_F(AView, OfPackedElementsIsGatheredByWholeBytes) {
  // The first 4 elements of each row: of F4 2 of 5 bytes, of F6 3 of 15.
  auto* const bytes = reinterpret_cast<unsigned char*>(memory.data());
  std::iota(bytes, bytes + 100, static_cast<unsigned char>(0));
  const auto gathered = [&](const Outcome<std::unique_ptr<StridedMemory>>& view, std::size_t count) {
    std::vector<unsigned char> dense(count);
    EXPECT_TRUE(view && *view && (*view)->copy_out(dense.data(), 0, count));
    return dense;
  };
  EXPECT_EQ(gathered(make({3, 4}, {10, 1}, Dtype::f4), 6), (std::vector<unsigned char>{0, 1, 5, 6, 10, 11}));
  EXPECT_EQ(gathered(make({3, 4}, {20, 1}, Dtype::f6_e2m3), 9),
            (std::vector<unsigned char>{0, 1, 2, 15, 16, 17, 30, 31, 32}));
  // The outer dimensions the other way round, and a last one of a single byte.
  EXPECT_EQ(gathered(make({2, 3, 2}, {2, 4, 1}, Dtype::f4), 6), (std::vector<unsigned char>{0, 2, 4, 1, 3, 5}));
}

TEST_F(AView, OfPackedElementsThatIsDenseNeedsNoWalk) {
  for (const auto& [shape, strides] : std::vector<std::pair<Extents, std::vector<std::int64_t>>>{
           {{3, 4}, {4, 1}}, {{1, 4}, {7, 1}}, {{8}, {1}}, {{3, 0}, {9, 9}}}) {
    const auto made = make(shape, strides, Dtype::f4);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(*made, nullptr);
  }
}

TEST_F(AView, ThatBeginsInsideAByteIsRefused) {
  expect_refused(
      {4, 4}, {1, 4},
      "'view' is F4, of which only 2 elements together are whole bytes: stride[0] is 1 and has to be a multiple of 2",
      Dtype::f4);
  expect_refused({3, 4}, {5, 1}, "stride[0] is 5 and has to be a multiple of 2", Dtype::f4);
  expect_refused({3, 4}, {8, 2}, "stride[1] is 2 and has to be 1", Dtype::f4);
  expect_refused({3, 4}, {6, 1}, "stride[0] is 6 and has to be a multiple of 4", Dtype::f6_e3m2);
  expect_refused({3, 4}, {2, 1}, "may share memory", Dtype::f4);
  expect_refused({3, 4}, {0, 1}, "stride 0 over 3 elements", Dtype::f4);
}

TEST_F(AView, ThatMovedIsReadAtItsNewPlace) {
  const auto view = make({3, 2}, {1, 3});
  (*view)->move_to(memory.data() + 100);
  EXPECT_EQ(gather(**view, 6), (std::vector<std::uint16_t>{100, 103, 101, 104, 102, 105}));
}

// Every view that slicing, stepping and permuting can make, in portions that respect nothing.
TEST_F(AView, OfAnyKindIsReadAndWrittenInAnyPortions) {
  test::for_each_seed({.fixed = {1}}, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int round = 0; round < 300; ++round) {
      std::vector<std::pair<std::uint64_t, std::int64_t>> dimensions(random() % 4 + 1);
      std::int64_t stride = static_cast<std::int64_t>(random() % 2 + 1);
      for (auto& [extent, step] : dimensions) {
        extent = random() % 4 + 1;
        step = stride;
        stride *= static_cast<std::int64_t>(extent + random() % 2);
      }
      std::ranges::shuffle(dimensions, random);
      Extents shape;
      std::vector<std::int64_t> strides;
      std::vector<std::uint16_t> expected{0};
      for (const auto& [extent, step] : dimensions) {
        shape.push_back(extent);
        strides.push_back(step);
        std::vector<std::uint16_t> next;
        for (const std::uint16_t before : expected) {
          for (std::uint64_t i = 0; i < extent; ++i)
            next.push_back(static_cast<std::uint16_t>(before + i * static_cast<std::uint64_t>(step)));
        }
        expected = next;
      }
      const auto view = make(shape, strides);
      ASSERT_TRUE(view) << view.error().message;
      if (*view == nullptr) continue;  // dense
      const std::size_t bytes = expected.size() * 2;
      std::string dense(bytes, '\0');
      for (std::size_t at = 0; at < bytes;) {
        const std::size_t part = std::min<std::size_t>(random() % (bytes + 7) + 1, bytes - at);
        ASSERT_TRUE((*view)->copy_out(dense.data() + at, at, part));
        at += part;
      }
      ASSERT_EQ(dense, std::string(reinterpret_cast<const char*>(expected.data()), bytes));

      const std::vector<std::uint16_t> before = memory;
      std::vector<std::uint16_t> wanted = before;
      for (const std::uint16_t place : expected) wanted[place] = static_cast<std::uint16_t>(before[place] + 1);
      std::vector<std::uint16_t> fresh;
      for (const std::uint16_t place : expected) fresh.push_back(wanted[place]);
      for (std::size_t at = 0; at < bytes;) {
        const std::size_t part = std::min<std::size_t>(random() % (bytes + 7) + 1, bytes - at);
        ASSERT_TRUE((*view)->copy_in(at, reinterpret_cast<const char*>(fresh.data()) + at, part));
        at += part;
      }
      ASSERT_EQ(memory, wanted);
      memory = before;
    }
  });
}

}  // namespace
}  // namespace rekindle::runtime
