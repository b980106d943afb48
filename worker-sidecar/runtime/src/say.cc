#include "worker-sidecar/runtime/src/say.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

namespace rekindle::runtime {
namespace {

// A reader that has gone is no reason for the program to end, and its handler is not ours to
// change: the signal is blocked in this thread and taken away again.
void write_without_sigpipe(std::string_view line) noexcept {
  sigset_t pipe_signal;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  sigset_t pending;
  sigpending(&pending);
  const bool pending_before = sigismember(&pending, SIGPIPE) == 1;
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0 && errno == EPIPE && !pending_before) {
    constexpr timespec at_once{};
    while (sigtimedwait(&pipe_signal, nullptr, &at_once) < 0 && errno == EINTR) continue;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

void say(std::string_view message) noexcept {
  constexpr std::string_view kName = "rekindle: ";
  std::array<char, 1024> line{};
  const std::size_t length = std::min(message.size(), line.size() - kName.size() - 1);
  std::memcpy(line.data(), kName.data(), kName.size());
  std::memcpy(line.data() + kName.size(), message.data(), length);
  line[kName.size() + length] = '\n';
  // A pipe that can be written takes this many bytes at once; one that is full loses the message
  // rather than stop training.
  pollfd error_output{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&error_output, 1, 0) != 1 || (error_output.revents & POLLOUT) == 0) return;
  write_without_sigpipe(std::string_view(line.data(), kName.size() + length + 1));
}

}  // namespace rekindle::runtime
