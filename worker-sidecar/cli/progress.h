// How far long work has come, for a person who waits: a line a second at most, and none for work
// that is done within one.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

#include "common/base/instant.h"

namespace rekindle::cli {

class Progress {
 public:
  // `now` reads a monotonic clock. Prints to `err`, if `shown`.
  Progress(std::ostream& err, bool shown, std::function<Instant()> now);

  // What is being done from now on: "verifying a1-s184-x".
  void begin(std::string what);

  void report(std::uint64_t done_bytes, std::uint64_t all_bytes);

 private:
  std::ostream& err_;
  bool shown_;
  std::function<Instant()> now_;
  std::string what_;
  Instant printed_{};
};

}  // namespace rekindle::cli
