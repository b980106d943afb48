// A part of a data file and where it goes, as equal runs at equal distances: the common part of two
// boxes of a tensor takes a few numbers, however many rows it has. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "worker-sidecar/checkpoint/layout.h"

namespace rekindle {

enum class TargetKind : std::uint8_t { tensor, state };

// Everything inside happens `count` times, each time so much further on in the file and in the
// target.
struct Repeat {
  std::uint64_t count = 1;
  std::uint64_t file_step = 0;
  std::uint64_t target_step = 0;

  bool operator==(const Repeat&) const = default;
};

// `bytes` from `begin_byte` of a file go to `target_byte` of the index-th registered tensor or
// state, and so on for each repeat. Runs do not overlap, and their order is the same in the file
// and in the target: each step is at least what the repeats inside it reach over.
struct ReadRange {
  std::uint64_t begin_byte = 0;
  std::uint64_t bytes = 0;  // of one run; not 0
  TargetKind kind = TargetKind::tensor;
  std::size_t index = 0;
  std::uint64_t target_byte = 0;
  // the outermost first; none: one run
  std::vector<Repeat> repeats = {};

  bool operator==(const ReadRange&) const = default;
};

// For tests: plans are compared by their number of runs.
std::uint64_t run_count(const ReadRange& range);
// Behind the last run.
std::uint64_t end_byte(const ReadRange& range);
std::uint64_t target_end_byte(const ReadRange& range);

// The runs of a range, one after the other, without a list of them. The range outlives it.
class RunWalk {
 public:
  // At the first run that is not wholly before `file_byte`; at the end if there is none.
  explicit RunWalk(const ReadRange& range, std::uint64_t file_byte = 0);

  bool at_end() const { return at_end_; }
  // Where this run begins.
  std::uint64_t file_byte() const { return range_->begin_byte + file_offset_; }
  std::uint64_t target_byte() const { return range_->target_byte + target_offset_; }
  // This run and those behind it follow each other in these steps.
  Repeat line() const;
  // `runs` is at most line().count.
  void advance(std::uint64_t runs = 1);

 private:
  const ReadRange* range_;
  std::array<std::uint64_t, kDimensionsMax> position_{};  // in each repeat
  std::uint64_t file_offset_ = 0;
  std::uint64_t target_offset_ = 0;
  bool at_end_ = false;
};

}  // namespace rekindle
