#include "worker-sidecar/sidecar/closing_threads.h"

#include <sys/socket.h>

#include <array>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace rekindle::sidecar {
namespace {

// One that lingers holds up one of them.
constexpr std::size_t kThreadsMax = 8;
constexpr std::size_t kReadBytes = 16u << 10;

// Takes out what is left unread in a socket that receives nothing more; false: descriptors are
// among it, and still there.
bool take_unread(int socket) {
  std::array<char, kReadBytes> buffer;
  while (true) {
    iovec part{.iov_base = buffer.data(), .iov_len = buffer.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    const ssize_t seen = ::recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT);
    if (seen <= 0) return true;
    if ((message.msg_flags & MSG_CTRUNC) != 0) return false;
    if (::recv(socket, buffer.data(), static_cast<std::size_t>(seen), MSG_DONTWAIT) != seen) return false;
  }
}

}  // namespace

struct ClosingThreads::State {
  std::mutex mutex;
  std::deque<FileDescriptor> descriptors;  // guarded by mutex
  std::size_t threads = 0;                 // guarded by mutex; each closes one
};

ClosingThreads::ClosingThreads() : state_(std::make_shared<State>()) {}

void ClosingThreads::close(FileDescriptor descriptor) {
  const std::lock_guard lock(state_->mutex);
  state_->descriptors.push_back(std::move(descriptor));
  if (state_->threads == kThreadsMax) return;
  const auto close_all = [state = state_] {
    std::unique_lock held(state->mutex);
    while (!state->descriptors.empty()) {
      FileDescriptor next = std::move(state->descriptors.front());
      state->descriptors.pop_front();
      held.unlock();
      next.reset();
      held.lock();
    }
    --state->threads;
  };
  try {
    std::thread(close_all).detach();
    ++state_->threads;
  } catch (const std::system_error&) {
    // It is closed with the next one, or with the process.
  }
}

void ClosingThreads::close_socket(FileDescriptor socket) {
  ::shutdown(socket.get(), SHUT_RDWR);
  if (!take_unread(socket.get())) close(std::move(socket));
}

std::size_t ClosingThreads::waiting() const {
  const std::lock_guard lock(state_->mutex);
  return state_->descriptors.size() + state_->threads;
}

}  // namespace rekindle::sidecar
