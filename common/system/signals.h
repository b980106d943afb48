// Signals as something to wait for. There is no signal handler and so no code that runs at an odd
// moment: the signals are blocked in every thread and read from a descriptor.
#pragma once

#include <csignal>
#include <initializer_list>
#include <optional>

#include "common/base/error.h"
#include "common/base/instant.h"
#include "common/system/file_descriptor.h"

namespace rekindle {

class SignalWatcher {
 public:
  // Call once in main before any thread is started (threads inherit what is blocked). SIGPIPE is
  // ignored from then on: a peer that is gone is an error of the write. A signal that the program
  // was started to ignore (nohup) stays ignored; SIGCHLD alone never is.
  static Result<SignalWatcher> block(std::initializer_list<int> signals);

  // Readable while a signal waits: for poll or an event loop.
  int descriptor() const { return descriptor_.get(); }

  // The number of the next signal, or none when none waits.
  std::optional<int> take() const;

  // Blocks until a signal comes or the time is over.
  std::optional<int> wait(std::optional<Duration> timeout = std::nullopt) const;

 private:
  explicit SignalWatcher(FileDescriptor descriptor) : descriptor_(std::move(descriptor)) {}
  FileDescriptor descriptor_;
};

// A child process inherits blocked and ignored signals, also over exec: call this between fork and
// exec. Async-signal-safe.
void restore_signals_in_child();

// Blocks every signal that is sent in the calling thread while it lives: a thread that is started
// meanwhile never runs a handler of the program that it is a guest in. Faults of the thread itself
// (SIGSEGV, SIGBUS and their like) stay open: the program's crash handler has to see them.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked();
  ~AllSignalsBlocked();
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace rekindle
