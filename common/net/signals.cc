#include "common/net/signals.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "common/net/clock.h"

namespace rekindle {
namespace {

sigset_t termination_set() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

Result<TerminationSignals> TerminationSignals::block() {
  const sigset_t signals = termination_set();
  if (const int error = pthread_sigmask(SIG_BLOCK, &signals, nullptr); error != 0) {
    return fail_errno(error, "cannot block SIGTERM and SIGINT");
  }
  const int descriptor = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (descriptor < 0) return fail_errno(errno, "cannot open a descriptor for SIGTERM and SIGINT");
  std::signal(SIGPIPE, SIG_IGN);
  return TerminationSignals(descriptor);
}

TerminationSignals::~TerminationSignals() {
  if (descriptor_ >= 0) close(descriptor_);
}

TerminationSignals::TerminationSignals(TerminationSignals&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

std::optional<int> TerminationSignals::take() {
  signalfd_siginfo info{};
  ssize_t size = 0;
  do {
    size = read(descriptor_, &info, sizeof info);
  } while (size < 0 && errno == EINTR);
  if (size != static_cast<ssize_t>(sizeof info)) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

std::optional<int> TerminationSignals::wait(std::optional<Duration> timeout) {
  const Instant deadline = timeout ? monotonic_now() + *timeout : Instant::max();
  while (true) {
    if (std::optional<int> signal = take()) return signal;
    timespec left{};
    if (timeout) {
      const Duration rest = deadline - monotonic_now();
      if (rest <= Duration::zero()) return std::nullopt;
      left.tv_sec = static_cast<time_t>(rest / std::chrono::seconds(1));
      left.tv_nsec = static_cast<long>((rest % std::chrono::seconds(1)).count());
    }
    pollfd waiting{.fd = descriptor_, .events = POLLIN, .revents = 0};
    ppoll(&waiting, 1, timeout ? &left : nullptr, nullptr);
  }
}

void restore_signals_in_child() {
  const sigset_t signals = termination_set();
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_DFL);
}

}  // namespace rekindle
