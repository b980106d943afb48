#include "common/net/socket.h"

#include <arpa/inet.h>
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
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "common/base/assert.h"
#include "common/base/format.h"
#include "common/net/http_client.h"
#include "common/system/clock.h"

namespace rekindle {
namespace {

constexpr std::string_view kStopped = "the call was ended because we are stopping";
constexpr int kBacklog = 512;

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

std::string text_of(const Address& address) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  constexpr int kNumbers = NI_NUMERICHOST | NI_NUMERICSERV;
  if (getnameinfo(address.get(), address.size, host, sizeof host, port, sizeof port, kNumbers) != 0) {
    return "an unknown address";
  }
  const bool is_v6 = address.storage.ss_family == AF_INET6;
  return (is_v6 ? "[" : "") + std::string(host) + (is_v6 ? "]:" : ":") + port;
}

Result<std::vector<Address>> look_up(const std::string& host, std::uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int result = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (result != 0) {
    return fail(ErrorCode::unavailable, format("the name '{}' cannot be looked up: {}", host, gai_strerror(result)),
                Retry::yes);
  }
  std::vector<Address> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    Address address;
    address.size = one->ai_addrlen;
    std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
    addresses.push_back(address);
  }
  freeaddrinfo(found);
  return addresses;
}

// getaddrinfo cannot be interrupted, so it runs on a thread that nobody waits for: whoever is last,
// it or the caller, frees what they share.
struct Lookup {
  Waker done;
  std::mutex mutex;
  std::optional<Result<std::vector<Address>>> result;  // guarded by mutex
};

Result<std::vector<Address>> resolve(const std::string& host, std::uint16_t port, Instant deadline, int interrupt) {
  if (Result<std::vector<Address>> literal = look_up(host, port, AI_NUMERICHOST)) return literal;
  auto lookup = std::make_shared<Lookup>();
  if (!lookup->done) return no_descriptor_left();
  try {
    std::thread([lookup, host, port] {
      Result<std::vector<Address>> result = look_up(host, port, AI_ADDRCONFIG);
      const std::lock_guard lock(lookup->mutex);
      lookup->result = std::move(result);
      lookup->done.wake();
    }).detach();
  } catch (const std::system_error& error) {
    return fail(ErrorCode::exhausted, format("no thread to look up the name '{}': {}", host, error.what()), Retry::yes);
  }
  const Result<Readiness> readiness = wait_for(lookup->done.descriptor(), false, deadline, interrupt);
  if (!readiness) return std::unexpected(readiness.error());
  if (*readiness == Readiness::interrupted) return stopped();
  if (*readiness == Readiness::timed_out) {
    return fail(ErrorCode::deadline_exceeded, format("looking up the name '{}' took too long", host), Retry::yes);
  }
  const std::lock_guard lock(lookup->mutex);
  return std::move(*lookup->result);
}

Result<FileDescriptor> connect_one(const Address& address, Instant deadline, int interrupt) {
  FileDescriptor socket_descriptor(
      socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!socket_descriptor) return fail_errno(errno, "cannot make a socket");
  tune_connection(socket_descriptor.get());
  const std::string what = "cannot connect to " + text_of(address);
  if (connect(socket_descriptor.get(), address.get(), address.size) == 0) return socket_descriptor;
  if (errno != EINPROGRESS && errno != EINTR) return fail_errno(errno, what);
  const Result<Readiness> readiness = wait_for(socket_descriptor.get(), true, deadline, interrupt);
  if (!readiness) return std::unexpected(readiness.error());
  if (*readiness == Readiness::interrupted) return stopped();
  if (*readiness == Readiness::timed_out) {
    return fail(ErrorCode::deadline_exceeded, what + ": no answer within the time limit", Retry::yes);
  }
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket_descriptor.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return fail_errno(error, what);
  return socket_descriptor;
}

void set_option(int descriptor, int level, int name, int value) {
  setsockopt(descriptor, level, name, &value, sizeof value);
}

}  // namespace

StopSignal::StopSignal(std::stop_token stop) {
  if (!stop.stop_possible()) return;
  waker_.emplace();
  callback_.emplace(std::move(stop), Raise{&*waker_});
}

Status StopSignal::made() const {
  if (waker_ && !*waker_) return no_descriptor_left();
  return {};
}

Result<Readiness> wait_for(int descriptor, bool to_write, Instant deadline, int interrupt) {
  pollfd waiting[2] = {{.fd = descriptor, .events = static_cast<short>(to_write ? POLLOUT : POLLIN), .revents = 0},
                       {.fd = interrupt, .events = POLLIN, .revents = 0}};
  while (true) {
    const timespec limit = timespec_until(deadline, monotonic_now());
    const int count = ppoll(waiting, interrupt < 0 ? 1 : 2, &limit, nullptr);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno(errno, "cannot wait for a connection");
    if (interrupt >= 0 && waiting[1].revents != 0) return Readiness::interrupted;
    return count == 0 ? Readiness::timed_out : Readiness::ready;
  }
}

std::unexpected<Error> no_descriptor_left() {
  return fail(ErrorCode::exhausted, "the process has no file descriptor left; raise its limit (ulimit -n)", Retry::yes);
}

std::unexpected<Error> stopped() { return fail(ErrorCode::unavailable, std::string(kStopped)); }

bool is_stopped(const Error& error) { return error.message.ends_with(kStopped); }

Result<FileDescriptor> connect_to(const std::string& host, std::uint16_t port, Instant deadline, int interrupt) {
  Result<std::vector<Address>> addresses = resolve(host, port, deadline, interrupt);
  if (!addresses) return std::unexpected(addresses.error());
  Error last{ErrorCode::unavailable, format("the name '{}' has no address", host), Retry::yes};
  // The time is shared out, so that one dead address does not cost the others their chance.
  std::size_t left = addresses->size();
  for (const Address& address : *addresses) {
    const Instant now = monotonic_now();
    const Duration share = std::max(deadline - now, Duration::zero()) / static_cast<Duration::rep>(left--);
    Result<FileDescriptor> connection = connect_one(address, now + share, interrupt);
    if (connection || is_stopped(connection.error())) return connection;
    last = connection.error();
  }
  // Unreachable networks and hosts pass as well; only what is asked for can be wrong for good.
  last.retry = Retry::yes;
  if (last.code == ErrorCode::io) last.code = ErrorCode::unavailable;
  return std::unexpected(last);
}

Result<FileDescriptor> listen_on(const std::string& address, std::uint16_t port) {
  const std::string what = format("cannot listen on {} port {}", address, port);
  const Result<std::vector<Address>> addresses = look_up(address, port, AI_NUMERICHOST | AI_PASSIVE);
  if (!addresses || addresses->empty()) return fail(ErrorCode::invalid_input, what + ": this is no IP address");
  const Address& chosen = addresses->front();
  FileDescriptor listener(socket(chosen.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!listener) return fail_errno(errno, what);
  set_option(listener.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (chosen.storage.ss_family == AF_INET6) set_option(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (bind(listener.get(), chosen.get(), chosen.size) != 0 || listen(listener.get(), kBacklog) != 0) {
    return fail_errno(errno, what);
  }
  return listener;
}

std::uint16_t local_port(int descriptor) {
  Address address;
  address.size = sizeof address.storage;
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&address.storage), &address.size) != 0) return 0;
  const bool is_v6 = address.storage.ss_family == AF_INET6;
  return ntohs(is_v6 ? reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port
                     : reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
}

std::string peer_address(int descriptor) {
  Address address;
  address.size = sizeof address.storage;
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&address.storage), &address.size) != 0) {
    return "an unknown address";
  }
  return text_of(address);
}

void tune_connection(int descriptor) {
  set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set_option(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);
}

}  // namespace rekindle
