// SIGTERM and SIGINT as something to wait for. There is no signal handler and so no code that runs
// at an odd moment: the signals are blocked in every thread and read from a descriptor.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "common/base/error.h"
#include "common/base/instant.h"

namespace rekindle {

class TerminationSignals {
 public:
  // Call once in main before any thread is started (threads inherit what is blocked). SIGPIPE is
  // ignored from then on: a peer that is gone is an error of the write.
  static Result<TerminationSignals> block();
  ~TerminationSignals();
  TerminationSignals(TerminationSignals&& other) noexcept;
  TerminationSignals& operator=(TerminationSignals&&) = delete;

  // Readable while a signal waits: for poll or an event loop.
  int descriptor() const { return descriptor_; }

  // The number of the next signal, or none when none waits.
  std::optional<int> take();

  // Blocks until a signal comes or the time is over.
  std::optional<int> wait(std::optional<Duration> timeout = std::nullopt);

 private:
  explicit TerminationSignals(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

// A child process inherits blocked and ignored signals, also over exec: call this between fork and
// exec. Async-signal-safe.
void restore_signals_in_child();

}  // namespace rekindle
