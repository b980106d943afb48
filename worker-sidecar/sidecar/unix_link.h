// One connection on the sidecar's Unix socket: bytes and the client's process in, bytes and a
// descriptor out. It knows nothing of frames; the owner feeds what arrives to its decoder.
//
// A hostile client costs little: what it has not read is bounded, and nothing here waits. Only with
// its first bytes may it hand over one descriptor, of a process. Any other ends the connection, is
// not taken out of it, and is closed on another thread. Threads: the loop thread only.
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

#include "common/system/file_descriptor.h"
#include "worker-sidecar/sidecar/closing_threads.h"

namespace rekindle::sidecar {

class UnixLink : public std::enable_shared_from_this<UnixLink> {
 public:
  struct Handlers {
    // Called for each piece that arrives; `process` is the pidfd that came with the first one.
    std::function<void(std::string_view bytes, FileDescriptor process)> received;
    // Once, when the other side is gone or broke a limit; not after close().
    std::function<void(const std::string& why)> ended;
  };

  UnixLink(asio::io_context& loop, FileDescriptor socket, ClosingThreads closing);
  ~UnixLink();
  UnixLink(const UnixLink&) = delete;
  UnixLink& operator=(const UnixLink&) = delete;

  void start(Handlers handlers);
  // What the other side may leave unread, 64 KiB at first; one message alone may be longer.
  void set_outgoing_bytes_max(std::size_t bytes) { outgoing_bytes_max_ = bytes; }
  // `descriptor` (-1: none) goes along with the first byte; it is duplicated, so the caller keeps
  // its own.
  void send(std::string bytes, int descriptor = -1);
  // What was sent before still goes out; then the connection ends.
  void close_after_sending();
  void close();
  bool open() const { return open_; }
  // The other side has left too much unread; the connection is about to end.
  bool overrun() const { return overrun_; }

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
  void end(const std::string& why);

  ClosingThreads closing_threads_;
  asio::posix::stream_descriptor stream_;
  Handlers handlers_;
  std::deque<Outgoing> outgoing_;
  std::size_t outgoing_bytes_ = 0;
  std::size_t outgoing_bytes_max_ = 64u << 10;
  bool heard_ = false;
  bool overrun_ = false;
  bool waiting_writable_ = false;
  bool closing_ = false;
  bool open_ = true;
};

}  // namespace rekindle::sidecar
