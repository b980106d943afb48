#include "socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace digits {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Result<AddressList> look_up(const char* host, const std::string& port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = host == nullptr ? AI_PASSIVE : 0;
  if (host == nullptr) hints.ai_family = AF_INET;
  addrinfo* found = nullptr;
  const int fault = getaddrinfo(host, port.c_str(), &hints, &found);
  if (fault != 0) {
    return failure("no address for " + std::string(host == nullptr ? "port" : host) + ":" + port + ": " +
                   gai_strerror(fault));
  }
  return AddressList(found, &freeaddrinfo);
}

std::string last_fault() { return std::strerror(errno); }

void send_small_messages_at_once(int descriptor) {
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = other.release();
  }
  return *this;
}

Socket::~Socket() { close(); }

int Socket::release() { return std::exchange(descriptor_, -1); }

void Socket::close() {
  if (descriptor_ >= 0) ::close(release());
}

Status Socket::wait_for(short events, Deadline deadline) {
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return failure("no answer in time");
    pollfd entry{.fd = descriptor_, .events = events, .revents = 0};
    const int ready = poll(&entry, 1, static_cast<int>(std::min<long long>(left.count(), 60'000)));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return failure("poll: " + last_fault());
  }
}

Status Socket::send_all(const void* data, std::size_t bytes, Deadline deadline) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(descriptor_, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      at += sent;
      bytes -= static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (Status ready = wait_for(POLLOUT, deadline); !ready) return ready;
    } else if (errno != EINTR) {
      return failure("send: " + last_fault());
    }
  }
  return {};
}

Status Socket::receive_all(void* data, std::size_t bytes, Deadline deadline) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t received = recv(descriptor_, at, bytes, MSG_DONTWAIT);
    if (received > 0) {
      at += received;
      bytes -= static_cast<std::size_t>(received);
    } else if (received == 0) {
      return failure("the connection ended");
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (Status ready = wait_for(POLLIN, deadline); !ready) return ready;
    } else if (errno != EINTR) {
      return failure("receive: " + last_fault());
    }
  }
  return {};
}

Result<Socket> Socket::accept_one(Deadline deadline) {
  while (true) {
    if (Status ready = wait_for(POLLIN, deadline); !ready) return failure(ready.error());
    const int descriptor = accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (descriptor >= 0) {
      send_small_messages_at_once(descriptor);
      return Socket(descriptor);
    }
    if (errno != EINTR && errno != ECONNABORTED && errno != EAGAIN) return failure("accept: " + last_fault());
  }
}

Result<Socket> Socket::listen_at(const std::string& port, int backlog) {
  Result<AddressList> addresses = look_up(nullptr, port);
  if (!addresses) return failure(addresses.error());
  const addrinfo& address = **addresses;
  Socket socket(::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address.ai_protocol));
  const int on = 1;
  if (!socket.is_open() || setsockopt(socket.descriptor_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(socket.descriptor_, address.ai_addr, address.ai_addrlen) != 0 || listen(socket.descriptor_, backlog) != 0) {
    return failure("cannot listen at port " + port + ": " + last_fault() + "; choose another MASTER_PORT");
  }
  return socket;
}

Result<Socket> Socket::connect_to(const std::string& host, const std::string& port, Deadline deadline) {
  std::string fault = "not tried";
  while (std::chrono::steady_clock::now() < deadline) {
    Result<AddressList> addresses = look_up(host.c_str(), port);
    if (!addresses) fault = addresses.error();
    for (const addrinfo* address = addresses ? addresses->get() : nullptr; address != nullptr;
         address = address->ai_next) {
      Socket socket(
          ::socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address->ai_protocol));
      if (!socket.is_open()) continue;
      if (connect(socket.descriptor_, address->ai_addr, address->ai_addrlen) != 0 && errno != EINPROGRESS) {
        fault = last_fault();
        continue;
      }
      const Deadline soon = std::min(deadline, std::chrono::steady_clock::now() + std::chrono::seconds(2));
      if (Status ready = socket.wait_for(POLLOUT, soon); !ready) {
        fault = ready.error();
        continue;
      }
      int outcome = 0;
      socklen_t outcome_bytes = sizeof outcome;
      getsockopt(socket.descriptor_, SOL_SOCKET, SO_ERROR, &outcome, &outcome_bytes);
      if (outcome == 0) {
        send_small_messages_at_once(socket.descriptor_);
        return socket;
      }
      fault = std::strerror(outcome);
    }
    // No event reports when the other side begins to listen.
    poll(nullptr, 0, 20);
  }
  return failure("cannot reach " + host + ":" + port + " (" + fault + ")");
}

}  // namespace digits
