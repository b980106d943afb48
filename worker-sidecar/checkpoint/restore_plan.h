// From a manifest and what a rank has registered to the reads that fill its memory. Pure. Any cut
// of the tensors fits any other: boxes are intersected in the global tensor, and what a piece and a
// registered tensor have in common is one range (checkpoint/read_range.h), whatever their sizes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/layout.h"
#include "worker-sidecar/checkpoint/manifest.h"
#include "worker-sidecar/checkpoint/read_range.h"

namespace rekindle {

struct FileReads {
  std::string file;
  std::vector<ReadRange> ranges;  // by begin_byte

  bool operator==(const FileReads&) const = default;
};

struct RestorePlan {
  std::vector<FileReads> files;
  // The rank's small state is not there or belongs to another number of ranks: tensors are
  // complete, states stay untouched.
  bool state_missing = false;
  // Of each registered state: how many bytes its destination has to hold. Of a variable one that is
  // what was saved.
  std::vector<std::uint64_t> state_bytes;
  // The cursor (checkpoint/cursor.h) is every rank's, so all its copies are read, one behind the
  // other in the destination of that state, in the order of these ranks. Empty: no cursor is
  // registered or none was saved.
  std::vector<std::uint32_t> cursor_ranks;
};

// Who restores.
struct RestoreTarget {
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  Layout layout;
  std::vector<StateDescription> states;
  // The leader has compared the whole job with the checkpoint (list_job_differences): tensors that
  // this rank does not register are other ranks'. Otherwise they are a difference.
  bool job_checked = false;
};

// Each difference as one message, for both directions: "w1 is F32 [64, 32] here and F32 [64, 16]
// in the checkpoint". Empty: they fit.
std::vector<std::string> list_differences(const Manifest& manifest, const RestoreTarget& target);

// The same for the tensors of a whole job, whose ranks may hold different ones (pipeline stages,
// experts): what some rank registers and the checkpoint does not have, what is of another type or
// shape, and what is in the checkpoint and no rank registers. Each once.
std::vector<std::string> list_job_differences(const Manifest& manifest, std::span<const Layout* const> layouts);

// The first of them as the rest of a message, and how many more there are. `differences` is not
// empty.
std::string describe_differences(const std::vector<std::string>& differences);

// Error invalid_input with the first differences in the message when they do not fit. Every byte of
// the registered tensors is filled by exactly one run of one range; there are no more ranges than
// pieces and states.
Result<RestorePlan> plan_restore(const Manifest& manifest, const RestoreTarget& target);

}  // namespace rekindle
