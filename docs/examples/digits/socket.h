// A TCP connection whose every wait has an end. Errors are messages; nothing throws. One thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "result.h"

namespace digits {

using Deadline = std::chrono::steady_clock::time_point;

class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket();

  bool is_open() const { return descriptor_ >= 0; }
  void close();

  // All bytes or an error, which may leave a part sent or received: the connection is of no use
  // then.
  Status send_all(const void* data, std::size_t bytes, Deadline deadline);
  Status receive_all(void* data, std::size_t bytes, Deadline deadline);

  // For a listening socket: the next connection.
  Result<Socket> accept_one(Deadline deadline);

  static Result<Socket> listen_at(const std::string& port, int backlog);

  // Tries again until it works or the deadline has passed: the other side may start later.
  static Result<Socket> connect_to(const std::string& host, const std::string& port, Deadline deadline);

 private:
  int release();
  Status wait_for(short events, Deadline deadline);

  int descriptor_ = -1;
};

}  // namespace digits
