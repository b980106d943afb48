#include "worker-sidecar/sidecar/unix_link.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "worker-sidecar/protocol/frame.h"

namespace rekindle {
namespace {

constexpr std::size_t kReadBytes = 64u << 10;
constexpr std::size_t kDescriptorsMax = 4;
// The largest order and another one that replaces it; a client that is this far behind does not
// read.
constexpr std::size_t kOutgoingBytesMax = 2 * (kMessageBodyBytesMax + kFrameBodyBytesMax);

std::vector<FileDescriptor> descriptors_of(msghdr& message) {
  std::vector<FileDescriptor> descriptors;
  for (cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr; control = CMSG_NXTHDR(&message, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(control) + i * sizeof(int), sizeof descriptor);
      descriptors.emplace_back(descriptor);
    }
  }
  return descriptors;
}

}  // namespace

UnixLink::UnixLink(asio::io_context& loop, FileDescriptor socket) : stream_(loop, socket.release()) {
  ::fcntl(stream_.native_handle(), F_SETFL, ::fcntl(stream_.native_handle(), F_GETFL) | O_NONBLOCK);
}

void UnixLink::start(Handlers handlers) {
  handlers_ = std::move(handlers);
  wait_readable();
}

void UnixLink::wait_readable() {
  if (!open_) return;
  stream_.async_wait(asio::posix::stream_descriptor::wait_read, [self = shared_from_this()](std::error_code error) {
    if (!error) self->read_some();
  });
}

void UnixLink::read_some() {
  if (!open_) return;
  std::array<char, kReadBytes> buffer;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kDescriptorsMax * sizeof(int))> control;
  iovec part{.iov_base = buffer.data(), .iov_len = buffer.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(stream_.native_handle(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return wait_readable();
  if (got <= 0) return end();
  const auto keep = shared_from_this();  // a handler may drop the last other owner
  handlers_.received(std::string_view(buffer.data(), static_cast<std::size_t>(got)), descriptors_of(message));
  wait_readable();
}

void UnixLink::send(std::string bytes, int descriptor) {
  if (!open_ || closing_) return;
  if (outgoing_bytes_ + bytes.size() > kOutgoingBytesMax) {
    // Not from inside the caller's own loop over connections.
    asio::post(stream_.get_executor(), [self = shared_from_this()] { self->end(); });
    return;
  }
  Outgoing item{.bytes = std::move(bytes), .sent = 0, .descriptor = {}};
  if (descriptor >= 0) item.descriptor = FileDescriptor(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  outgoing_bytes_ += item.bytes.size();
  outgoing_.push_back(std::move(item));
  if (!waiting_writable_) write_some();
}

void UnixLink::wait_writable() {
  waiting_writable_ = true;
  stream_.async_wait(asio::posix::stream_descriptor::wait_write, [self = shared_from_this()](std::error_code error) {
    self->waiting_writable_ = false;
    if (!error) self->write_some();
  });
}

void UnixLink::write_some() {
  while (open_ && !outgoing_.empty()) {
    Outgoing& item = outgoing_.front();
    iovec part{.iov_base = item.bytes.data() + item.sent, .iov_len = item.bytes.size() - item.sent};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    if (item.descriptor) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      const int descriptor = item.descriptor.get();
      std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    }
    const ssize_t sent = ::sendmsg(stream_.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return wait_writable();
    if (sent < 0) {
      // The end is reported from the reading side, so that what the peer sent before it left is
      // still seen.
      outgoing_.clear();
      outgoing_bytes_ = 0;
      return;
    }
    item.descriptor = FileDescriptor();
    item.sent += static_cast<std::size_t>(sent);
    outgoing_bytes_ -= static_cast<std::size_t>(sent);
    if (item.sent == item.bytes.size()) outgoing_.pop_front();
  }
  if (closing_ && outgoing_.empty()) close();
}

void UnixLink::close_after_sending() {
  closing_ = true;
  if (outgoing_.empty()) close();
}

void UnixLink::close() {
  if (!open_) return;
  open_ = false;
  std::error_code ignored;
  stream_.close(ignored);
  handlers_ = {};
}

void UnixLink::end() {
  if (!open_) return;
  const std::function<void()> ended = handlers_.ended;
  close();
  if (ended) ended();
}

}  // namespace rekindle
