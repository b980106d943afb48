// The order to rebuild in the control block.
#include "worker-sidecar/protocol/rebuild_order.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>

namespace rekindle {
namespace {

const RebuildOrder kOrder{
    .term = 65536, .step = 184, .path = "a1-s184-x", .manifest_hash = "0123456789abcdef0123456789abcdef"};

TEST(RebuildOrder, ComesBackAsItWasWritten) {
  const auto block = std::make_unique<ControlBlock>();
  EXPECT_FALSE(read_rebuild_order(*block));
  EXPECT_FALSE(rebuild_is_pending(*block));
  ASSERT_TRUE(write_rebuild_order(*block, kOrder));
  EXPECT_EQ(read_rebuild_order(*block), kOrder);
  EXPECT_TRUE(rebuild_is_pending(*block));
  block->rebuilt = kOrder.term;
  EXPECT_FALSE(rebuild_is_pending(*block));
}

TEST(RebuildOrder, AShorterOneLeavesNothingOfTheOneBefore) {
  const auto block = std::make_unique<ControlBlock>();
  ASSERT_TRUE(write_rebuild_order(*block, kOrder));
  const RebuildOrder nothing_saved{.term = 131072, .step = 0, .path = "", .manifest_hash = ""};
  ASSERT_TRUE(write_rebuild_order(*block, nothing_saved));
  EXPECT_EQ(read_rebuild_order(*block), nothing_saved);
}

TEST(RebuildOrder, OneThatDoesNotFitLeavesTheBlockAsItWas) {
  const auto block = std::make_unique<ControlBlock>();
  ASSERT_TRUE(write_rebuild_order(*block, kOrder));
  EXPECT_EQ(write_rebuild_order(*block, {.term = 131072, .step = 1, .path = std::string(256, 'x'), .manifest_hash = ""})
                .error()
                .code,
            ErrorCode::invalid_input);
  EXPECT_EQ(write_rebuild_order(*block, {.term = 131072, .step = 1, .path = "", .manifest_hash = std::string(64, 'x')})
                .error()
                .code,
            ErrorCode::invalid_input);
  EXPECT_EQ(read_rebuild_order(*block), kOrder);
}

// The sidecar may replace an order while the rank reads it: it gets the one or the other, or is
// told to look again.
TEST(RebuildOrder, IsNeverReadInHalves) {
  const auto block = std::make_unique<ControlBlock>();
  constexpr std::uint64_t kOrders = 20'000;
  auto sidecar = std::async(std::launch::async, [&] {
    for (std::uint64_t term = 1; term <= kOrders; ++term) {
      const std::string text(1 + term % 30, static_cast<char>('a' + term % 26));
      ASSERT_TRUE(write_rebuild_order(*block, {.term = term, .step = term, .path = text, .manifest_hash = text}));
    }
  });
  std::uint64_t torn = 0;
  for (std::uint64_t seen = 0; seen < kOrders;) {
    const std::optional<RebuildOrder> order = read_rebuild_order(*block);
    if (!order) continue;
    seen = order->term;
    const std::string text(1 + seen % 30, static_cast<char>('a' + seen % 26));
    torn += order->step != seen || order->path != text || order->manifest_hash != text;
  }
  sidecar.get();
  EXPECT_EQ(torn, 0u);
}

}  // namespace
}  // namespace rekindle
