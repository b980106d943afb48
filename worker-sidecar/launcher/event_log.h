// The machine-readable account of a local run (`--events FILE`): one JSON object a line, each with
// the milliseconds since the launcher began (monotonic) and the name of what happened. Lines are
// written whole and at once, so a reader may follow along, and who reports an event never waits for
// the file. Threads: any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/error.h"
#include "common/base/instant.h"
#include "common/system/output_queue.h"

namespace rekindle::launcher {

struct RunEvent {
  // rank_died, hold, agreed, durable, periodic, failed, restart, restored, first_step, finished;
  // lines_dropped stands where a file that could not be written for long lost some
  std::string event;
  std::uint64_t attempt = 0;
  std::uint64_t step = 0;
  std::uint64_t term = 0;
  std::int64_t rank = -1;  // -1: of no one rank
  std::string path;
  std::string message;
  int exit_code = -1;  // of the whole run
};

// Without line end. Fields that say nothing are left out.
std::string event_line(const RunEvent& event, Duration since_start);

class EventLog {
 public:
  explicit EventLog(Instant start) : start_(start) {}

  // Once, before events come.
  Status open(const std::string& path);
  void write(const RunEvent& event, Instant at);
  // Before an end that runs no destructors; waits for a second at most.
  void flush() const;

 private:
  const Instant start_;
  std::unique_ptr<OutputQueue> lines_;  // none without --events
};

}  // namespace rekindle::launcher
