// How fast bytes may go: a bucket of tokens, as a value. Pure: time is an argument.
#pragma once

#include <cstdint>

#include "common/base/instant.h"

namespace rekindle {

// Bytes are earned before they go, so that no span of time that begins with the first of them has
// more than its share. What was earned while storage was slower than the cap is kept, `burst_bytes`
// of it at most.
class Pace {
 public:
  // `bytes_per_second_max` 0: no cap. `start` is when earning begins.
  Pace(std::uint64_t bytes_per_second_max, std::uint64_t burst_bytes, Duration start);

  // How long to wait, from `now`, before this many bytes more may go; they count as gone. `now`
  // never runs backwards.
  Duration wait_for(std::uint64_t bytes, Duration now);

 private:
  Duration time_of(std::uint64_t bytes) const;

  std::uint64_t bytes_per_second_max_;
  Duration burst_;
  // when what has gone will have been earned
  Duration earned_until_;
};

}  // namespace rekindle
