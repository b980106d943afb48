#include "worker-sidecar/protocol/rebuild_order.h"

#include <cstring>

#include "common/base/format.h"

namespace rekindle {
namespace {

constexpr std::size_t kPathBytes = 256;
constexpr std::size_t kHashBytes = 64;
static_assert(kPathBytes + kHashBytes == kRebuildWords * sizeof(std::uint64_t));

using Text = std::array<char, kPathBytes + kHashBytes>;

std::string text_in(const Text& text, std::size_t begin, std::size_t room) {
  return std::string(text.data() + begin, ::strnlen(text.data() + begin, room));
}

}  // namespace

Status write_rebuild_order(ControlBlock& block, const RebuildOrder& order) {
  if (order.path.size() >= kPathBytes || order.manifest_hash.size() >= kHashBytes) {
    return fail(ErrorCode::invalid_input,
                format("the name of checkpoint {} is longer than the {} bytes that an order to rebuild has for it",
                       order.path, kPathBytes - 1));
  }
  Text text{};
  std::memcpy(text.data(), order.path.data(), order.path.size());
  std::memcpy(text.data() + kPathBytes, order.manifest_hash.data(), order.manifest_hash.size());
  block.rebuild_term.store(0, std::memory_order_relaxed);
  // A reader that sees one word of the new order sees that the earlier one is over.
  std::atomic_thread_fence(std::memory_order_release);
  block.rebuild_step.store(order.step, std::memory_order_relaxed);
  for (std::size_t i = 0; i < kRebuildWords; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + i * sizeof word, sizeof word);
    block.rebuild_text[i].store(word, std::memory_order_relaxed);
  }
  block.rebuild_term.store(order.term, std::memory_order_release);
  return {};
}

std::optional<RebuildOrder> read_rebuild_order(const ControlBlock& block) {
  RebuildOrder order{
      .term = block.rebuild_term.load(std::memory_order_acquire), .step = 0, .path = {}, .manifest_hash = {}};
  if (order.term == 0) return std::nullopt;
  order.step = block.rebuild_step.load(std::memory_order_relaxed);
  Text text{};
  for (std::size_t i = 0; i < kRebuildWords; ++i) {
    const std::uint64_t word = block.rebuild_text[i].load(std::memory_order_relaxed);
    std::memcpy(text.data() + i * sizeof word, &word, sizeof word);
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  if (block.rebuild_term.load(std::memory_order_relaxed) != order.term) return std::nullopt;
  order.path = text_in(text, 0, kPathBytes);
  order.manifest_hash = text_in(text, kPathBytes, kHashBytes);
  return order;
}

}  // namespace rekindle
