// The order to rebuild as it lies in the control block (docs/formats/control-block.md,
// "Rebuilding"): the sidecar writes it while the gates are closed, the rank reads it whenever it
// gets to it. It stays, so that neither a sidecar that is restarted nor a rank that sits in a hung
// collective for minutes loses it; its term says whether it was carried out. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "worker-sidecar/protocol/control_block.h"

namespace rekindle {

// Be at `step` with everything registered, which the checkpoint holds for a rank that is not, and
// go on from there.
struct RebuildOrder {
  std::uint64_t term = 0;  // of the breakpoint that ended with it; 0: there was none
  std::uint64_t step = 0;
  // name of the folder, empty when there was nothing to save: every rank is at `step` then
  std::string path;
  std::string manifest_hash;

  bool operator==(const RebuildOrder&) const = default;
};

// invalid_input when path or hash do not fit; the block is then as it was.
Status write_rebuild_order(ControlBlock& block, const RebuildOrder& order);

// Empty while there is none, or it is being written.
std::optional<RebuildOrder> read_rebuild_order(const ControlBlock& block);

// The rank has an order to rebuild and has not carried it out yet.
inline bool rebuild_is_pending(const ControlBlock& block) {
  return block.rebuild_term.load(std::memory_order_acquire) != block.rebuilt.load(std::memory_order_acquire);
}

}  // namespace rekindle
