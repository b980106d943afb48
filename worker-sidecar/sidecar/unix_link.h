// One connection on the sidecar's Unix socket: bytes and descriptors in, bytes and a descriptor
// out. It knows nothing of frames; the owner feeds what arrives to its decoder.
//
// A hostile client costs little: what it has not read is bounded (then the connection ends),
// descriptors that were not expected are closed, and nothing here waits. Threads: the loop thread
// only.
#pragma once

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/system/file_descriptor.h"

namespace rekindle::sidecar {

class UnixLink : public std::enable_shared_from_this<UnixLink> {
 public:
  struct Handlers {
    // Called for each piece that arrives, with the descriptors that came with it.
    std::function<void(std::string_view bytes, std::vector<FileDescriptor> descriptors)> received;
    // Once, when the other side is gone or broke a limit; not after close().
    std::function<void()> ended;
  };

  UnixLink(asio::io_context& loop, FileDescriptor socket);

  void start(Handlers handlers);
  // `descriptor` (-1: none) goes along with the first byte; it is duplicated, so the caller keeps
  // its own.
  void send(std::string bytes, int descriptor = -1);
  // What was sent before still goes out; then the connection ends.
  void close_after_sending();
  void close();
  bool open() const { return open_; }

 private:
  struct Outgoing {
    std::string bytes;
    std::size_t sent = 0;
    FileDescriptor descriptor;
  };

  void wait_readable();
  void wait_writable();
  void read_some();
  void write_some();
  void end();

  asio::posix::stream_descriptor stream_;
  Handlers handlers_;
  std::deque<Outgoing> outgoing_;
  std::size_t outgoing_bytes_ = 0;
  bool waiting_writable_ = false;
  bool closing_ = false;
  bool open_ = true;
};

}  // namespace rekindle::sidecar
