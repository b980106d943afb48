#include "worker-sidecar/runtime/src/sidecar_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/base/assert.h"
#include "common/base/format.h"

namespace rekindle::runtime {
namespace {

constexpr std::size_t kReceiveBytes = 64u << 10;
// A sidecar has one descriptor a message for us; more are taken off the kernel's hands and closed.
constexpr std::size_t kDescriptorsMax = 8;

}  // namespace

bool SidecarSocket::connect(const std::string& path) {
  close();
  unsent_.clear();
  sent_bytes_ = 0;
  encoder_ = FrameEncoder();
  decoder_ = FrameDecoder();
  problem_.clear();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  RK_ASSERT(path.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, path.data(), path.size());
  descriptor_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor_ < 0) {
    problem_ = format("no socket: {}", std::strerror(errno));
    return false;
  }
  if (::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    end(format("connecting to {}: {}", path, std::strerror(errno)));
    return false;
  }
  return true;
}

void SidecarSocket::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  for (const int descriptor : std::exchange(received_descriptors_, {})) ::close(descriptor);
  passed_descriptor_ = -1;
}

void SidecarSocket::end(std::string problem) {
  close();
  problem_ = std::move(problem);
}

void SidecarSocket::send(const EncodedMessage& message, std::uint32_t attempt, int passed_descriptor) {
  // Descriptors go with the first message of a connection only, when nothing waits before it.
  RK_ASSERT(passed_descriptor < 0 || unsent_.empty());
  passed_descriptor_ = passed_descriptor;
  Result<std::string> bytes = encoder_.encode(static_cast<std::uint16_t>(message.kind), attempt, message.body);
  if (!bytes) return end(bytes.error().message);
  unsent_ += *bytes;
}

void SidecarSocket::flush() {
  while (is_open() && has_unsent()) {
    iovec part{.iov_base = unsent_.data() + sent_bytes_, .iov_len = unsent_.size() - sent_bytes_};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    if (passed_descriptor_ >= 0) {
      header.msg_control = control.data();
      header.msg_controllen = control.size();
      cmsghdr* const rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(rights), &passed_descriptor_, sizeof(int));
    }
    const ssize_t sent = ::sendmsg(descriptor_, &header, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) end(format("sending to the sidecar: {}", std::strerror(errno)));
      return;
    }
    passed_descriptor_ = -1;
    sent_bytes_ += static_cast<std::size_t>(sent);
  }
  if (has_unsent()) return;
  unsent_ = {};  // a long message leaves no memory behind
  sent_bytes_ = 0;
}

void SidecarSocket::receive(std::deque<Arrival>& arrivals) {
  std::array<char, kReceiveBytes> bytes;
  while (is_open()) {
    iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kDescriptorsMax * sizeof(int))> control;
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    const ssize_t received = ::recvmsg(descriptor_, &header, MSG_CMSG_CLOEXEC);
    if (received < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) end(format("reading from the sidecar: {}", std::strerror(errno)));
      return;
    }
    for (cmsghdr* one = CMSG_FIRSTHDR(&header); one != nullptr; one = CMSG_NXTHDR(&header, one)) {
      if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
      const std::size_t count = (one->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int descriptor = -1;
        std::memcpy(&descriptor, CMSG_DATA(one) + i * sizeof(int), sizeof(int));
        received_descriptors_.push_back(descriptor);
        // No sidecar sends so many that this library has a use for.
        if (received_descriptors_.size() <= kDescriptorsMax) continue;
        ::close(received_descriptors_.front());
        received_descriptors_.pop_front();
      }
    }
    if (received == 0) {
      end("the sidecar ended the connection");
      return;
    }
    decoder_.feed(std::string_view(bytes.data(), static_cast<std::size_t>(received)));
    if (!decode(arrivals)) return;
  }
}

bool SidecarSocket::decode(std::deque<Arrival>& arrivals) {
  for (;;) {
    std::expected<std::optional<Frame>, FrameFault> next = decoder_.next();
    if (!next) {
      end(format("the sidecar sent a broken frame ({}): {}", to_string(next.error()), explain(next.error())));
      return false;
    }
    if (!*next) return true;
    const Frame& frame = **next;
    Result<LocalMessage> message = decode_local_message(frame.header.kind, frame.body);
    if (!message) {
      if (message.error().code == ErrorCode::not_found) continue;
      end(format("the sidecar sent a message that makes no sense: {}", message.error().message));
      return false;
    }
    arrivals.push_back({.attempt = frame.header.attempt, .message = *std::move(message)});
  }
}

int SidecarSocket::take_descriptor() {
  if (received_descriptors_.empty()) return -1;
  const int descriptor = received_descriptors_.front();
  received_descriptors_.pop_front();
  return descriptor;
}

}  // namespace rekindle::runtime
