// Something that a thread in poll, or an event loop, can be woken with. Once woken it stays
// readable until taken. Any thread wakes; one thread waits and takes.
#pragma once

#include "common/system/file_descriptor.h"

namespace rekindle {

class Waker {
 public:
  // Where the process has no descriptor left, the waker is false and wakes nobody: poll skips its
  // descriptor of -1, so a wait ends at its own deadline. Who cannot live with that asks first.
  Waker();
  explicit operator bool() const { return static_cast<bool>(event_); }

  // Readable while woken.
  int descriptor() const { return event_.get(); }
  // Async-signal-safe.
  void wake() const;
  // Whether it was woken since the last take.
  bool take() const;

 private:
  FileDescriptor event_;  // an eventfd
};

}  // namespace rekindle
