#include "worker-sidecar/sidecar/unix_link.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace rekindle::sidecar {
namespace {

constexpr std::size_t kReadBytes = 64u << 10;

// What lies at the front of a socket and stays there.
struct Seen {
  ssize_t bytes = 0;  // as recvmsg says it
  FileDescriptor descriptor;
  bool more_descriptors = false;
};

Seen look(int socket, std::array<char, kReadBytes>& buffer) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control;
  iovec part{.iov_base = buffer.data(), .iov_len = buffer.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  // Not with the padding behind it, where another descriptor would have room.
  message.msg_controllen = CMSG_LEN(sizeof(int));
  Seen seen{.bytes = ::recvmsg(socket, &message, MSG_PEEK | MSG_CMSG_CLOEXEC | MSG_DONTWAIT)};
  if (seen.bytes < 0) return seen;
  // Also where a descriptor came for which this process has no number left.
  seen.more_descriptors = (message.msg_flags & MSG_CTRUNC) != 0;
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) return seen;
  int number = -1;
  std::memcpy(&number, CMSG_DATA(header), sizeof number);
  seen.descriptor = FileDescriptor(number);
  return seen;
}

// Whether this is a pidfd, whose close takes no time. The signal 0 does nothing, and for any other
// descriptor the kernel says EBADF.
bool is_process(int descriptor) {
  return ::syscall(SYS_pidfd_send_signal, descriptor, 0, nullptr, 0) == 0 || errno != EBADF;
}

}  // namespace

UnixLink::UnixLink(asio::io_context& loop, FileDescriptor socket, ClosingThreads closing)
    : closing_threads_(std::move(closing)), stream_(loop, socket.release()) {
  ::fcntl(stream_.native_handle(), F_SETFL, ::fcntl(stream_.native_handle(), F_GETFL) | O_NONBLOCK);
}

UnixLink::~UnixLink() { close(); }

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
  // Only looked at first. What is taken out with descriptors that have no room is closed by the
  // kernel, on this thread.
  Seen seen = look(stream_.native_handle(), buffer);
  if (seen.bytes < 0 && (errno == EAGAIN || errno == EINTR)) return wait_readable();
  if (seen.bytes <= 0) return end("the connection ended");
  const bool descriptors = seen.descriptor || seen.more_descriptors;
  const bool expected = !heard_ && seen.descriptor && !seen.more_descriptors && is_process(seen.descriptor.get());
  if (descriptors && !expected) {
    if (seen.descriptor) closing_threads_.close(std::move(seen.descriptor));
    return end("it sent descriptors that nobody asked for");
  }
  heard_ = true;
  const ssize_t taken = ::recv(stream_.native_handle(), buffer.data(), static_cast<std::size_t>(seen.bytes), 0);
  if (taken <= 0) return end("the connection ended");
  const auto keep = shared_from_this();  // a handler may drop the last other owner
  handlers_.received(std::string_view(buffer.data(), static_cast<std::size_t>(taken)), std::move(seen.descriptor));
  wait_readable();
}

void UnixLink::send(std::string bytes, int descriptor) {
  if (!open_ || closing_ || overrun_) return;
  if (outgoing_bytes_ != 0 && outgoing_bytes_ + bytes.size() > outgoing_bytes_max_) {
    overrun_ = true;
    // Not from inside the caller's own loop over connections.
    asio::post(stream_.get_executor(), [self = shared_from_this()] { self->end("it does not read its answers"); });
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
  closing_threads_.close_socket(FileDescriptor(stream_.release()));
  handlers_ = {};
}

void UnixLink::end(const std::string& why) {
  if (!open_) return;
  const std::function<void(const std::string&)> ended = handlers_.ended;
  close();
  if (ended) ended(why);
}

}  // namespace rekindle::sidecar
