// Somebody on the Unix socket of a sidecar, who sends what the test says.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "worker-sidecar/protocol/frame.h"
#include "worker-sidecar/protocol/local_message.h"

namespace rekindle::sidecar {

class Client {
 public:
  explicit Client(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return connected_; }
  void send(const std::string& bytes) {
    [[maybe_unused]] const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  // False: it has hung up.
  bool send_descriptors(const std::vector<int>& descriptors, std::string bytes = "x") {
    std::string control(CMSG_SPACE(descriptors.size() * sizeof(int)), '\0');
    iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
    return ::sendmsg(socket_, &message, MSG_NOSIGNAL) >= 0;
  }
  // Something comes, or the end.
  bool hears(std::chrono::milliseconds patience) const {
    pollfd waiting{.fd = socket_, .events = POLLIN, .revents = 0};
    return ::poll(&waiting, 1, static_cast<int>(patience.count())) == 1;
  }
  // The bytes so far, with what has come since.
  std::size_t read_all() {
    char buffer[4096];
    for (ssize_t got = 0; (got = ::recv(socket_, buffer, sizeof buffer, 0)) > 0;)
      read_bytes_ += static_cast<std::size_t>(got);
    return read_bytes_;
  }
  // The other side has closed.
  bool ended() {
    char buffer[4096];
    while (true) {
      const ssize_t got = ::recv(socket_, buffer, sizeof buffer, 0);
      if (got > 0) continue;
      return got == 0 || errno == ECONNRESET;
    }
  }

 private:
  int socket_;
  bool connected_ = false;
  std::size_t read_bytes_ = 0;
};

inline std::string framed(const LocalMessage& message) {
  FrameEncoder encoder;
  const EncodedMessage encoded = encode_local_message(message);
  return *encoder.encode(encoded.kind, 0, encoded.body);
}

}  // namespace rekindle::sidecar
