// The Unix socket of the sidecar: connections of ranks and tools, frames in and messages out. It
// decides only who is what: the first frame makes a connection a rank's or a tool's.
//
// Bounded against hostile clients: number of connections, time until the first frame, size of
// frames, what a client leaves unread, and nothing that a client sends ends more than its own
// connection. Threads: the loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/error.h"
#include "worker-sidecar/protocol/local_message.h"
#include "worker-sidecar/sidecar/unix_link.h"

namespace rekindle {

// Names a connection for as long as the server lives; never reused.
using LinkId = std::uint64_t;

class LocalServer {
 public:
  struct Handlers {
    // The connection wants to be a rank's; `process` is its pidfd when one came along. `attempt` is
    // that of the frame.
    std::function<void(LinkId, const HelloMessage&, std::uint32_t attempt, FileDescriptor process)> hello;
    // Any later message of a connection that said hello.
    std::function<void(LinkId, const LocalMessage&, std::uint32_t attempt)> message;
    std::function<void(LinkId, const HookMessage&)> hook;
    std::function<void(LinkId)> status;
    // The other side is gone, or was shown the door; the reason is for the log.
    std::function<void(LinkId, const std::string& why)> ended;
  };

  // Listens on `path`, mode 0666: main containers run as any user, and only what shares the volume
  // sees the socket. One that an earlier process left behind is replaced; one that answers is not
  // (`already_exists`).
  static Result<std::unique_ptr<LocalServer>> listen(asio::io_context& loop, const std::string& path,
                                                     Handlers handlers);
  ~LocalServer();

  // Ignored when the connection is gone.
  void send(LinkId link, const LocalMessage& message, std::uint32_t attempt, int descriptor = -1);
  void close_after_sending(LinkId link);
  bool connected(LinkId link) const;

 private:
  struct Parts;
  explicit LocalServer(std::shared_ptr<Parts> parts);
  std::shared_ptr<Parts> parts_;
};

}  // namespace rekindle
