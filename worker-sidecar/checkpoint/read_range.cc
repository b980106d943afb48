#include "worker-sidecar/checkpoint/read_range.h"

#include <algorithm>

#include "common/base/assert.h"

namespace rekindle {

std::uint64_t run_count(const ReadRange& range) {
  std::uint64_t count = 1;
  for (const Repeat& repeat : range.repeats) count *= repeat.count;
  return count;
}

std::uint64_t end_byte(const ReadRange& range) {
  std::uint64_t end = range.begin_byte + range.bytes;
  for (const Repeat& repeat : range.repeats) end += (repeat.count - 1) * repeat.file_step;
  return end;
}

std::uint64_t target_end_byte(const ReadRange& range) {
  std::uint64_t end = range.target_byte + range.bytes;
  for (const Repeat& repeat : range.repeats) end += (repeat.count - 1) * repeat.target_step;
  return end;
}

RunWalk::RunWalk(const ReadRange& range, std::uint64_t file_byte) : range_(&range) {
  RK_ASSERT(range.bytes > 0 && range.repeats.size() <= position_.size());
  if (file_byte <= range.begin_byte) return;
  // The last run that begins at or before the byte; what lies between two repeats is behind all
  // runs of the first.
  std::uint64_t rest = file_byte - range.begin_byte;
  for (std::size_t i = 0; i < range.repeats.size(); ++i) {
    const Repeat& repeat = range.repeats[i];
    position_[i] = std::min(rest / repeat.file_step, repeat.count - 1);
    rest -= position_[i] * repeat.file_step;
    file_offset_ += position_[i] * repeat.file_step;
    target_offset_ += position_[i] * repeat.target_step;
  }
  if (rest >= range.bytes) advance();
}

Repeat RunWalk::line() const {
  if (range_->repeats.empty()) return {};
  const std::size_t innermost = range_->repeats.size() - 1;
  Repeat line = range_->repeats[innermost];
  line.count -= position_[innermost];
  return line;
}

void RunWalk::advance(std::uint64_t runs) {
  for (std::size_t i = range_->repeats.size(); i-- > 0; runs = 1) {
    const Repeat& repeat = range_->repeats[i];
    position_[i] += runs;
    file_offset_ += runs * repeat.file_step;
    target_offset_ += runs * repeat.target_step;
    if (position_[i] < repeat.count) return;
    position_[i] = 0;
    file_offset_ -= repeat.count * repeat.file_step;
    target_offset_ -= repeat.count * repeat.target_step;
  }
  at_end_ = true;
}

}  // namespace rekindle
