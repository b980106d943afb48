// Closes what strangers have a say in. The close of a descriptor that a client handed over may take
// as long as the client likes: a TCP socket lingers, a file of a dead server is flushed. The same
// holds for a socket in which such descriptors wait unread. The loop thread must never do it, nor
// let the kernel do it on its behalf.
//
// A few threads at most, which live while there is something to close. Nobody waits for them: at
// the end of the process the kernel closes what is left, and does not linger then. Threads: any.
#pragma once

#include <cstddef>
#include <memory>

#include "common/system/file_descriptor.h"

namespace rekindle::sidecar {

class ClosingThreads {
 public:
  ClosingThreads();

  void close(FileDescriptor descriptor);
  // Of a Unix socket. The other side sees the end at once, and what is left unread is gone.
  void close_socket(FileDescriptor socket);
  // Descriptors that are not closed yet.
  std::size_t waiting() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace rekindle::sidecar
