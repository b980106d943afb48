#include "common/system/signals.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "common/system/clock.h"

namespace rekindle {

Result<SignalWatcher> SignalWatcher::block(std::initializer_list<int> signals) {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : signals) {
    struct sigaction inherited{};
    ::sigaction(signal, nullptr, &inherited);
    const bool ignored = (inherited.sa_flags & SA_SIGINFO) == 0 && inherited.sa_handler == SIG_IGN;
    // Nobody is to be spared the ends of children: ignored, they leave no exit code.
    if (ignored && signal == SIGCHLD) std::signal(signal, SIG_DFL);
    if (!ignored || signal == SIGCHLD) sigaddset(&watched, signal);
  }
  if (const int error = ::pthread_sigmask(SIG_BLOCK, &watched, nullptr); error != 0) {
    return fail_errno(error, "cannot block the signals that end the program");
  }
  FileDescriptor descriptor(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor) return fail_errno(errno, "cannot open a descriptor for signals");
  std::signal(SIGPIPE, SIG_IGN);
  return SignalWatcher(std::move(descriptor));
}

std::optional<int> SignalWatcher::take() const {
  signalfd_siginfo info{};
  ssize_t size = 0;
  do {
    size = ::read(descriptor_.get(), &info, sizeof info);
  } while (size < 0 && errno == EINTR);
  if (size != static_cast<ssize_t>(sizeof info)) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

std::optional<int> SignalWatcher::wait(std::optional<Duration> timeout) const {
  const Instant deadline = timeout ? monotonic_now() + *timeout : Instant::max();
  while (true) {
    if (std::optional<int> signal = take()) return signal;
    timespec left{};
    if (timeout) {
      const Instant now = monotonic_now();
      if (now >= deadline) return std::nullopt;
      left = timespec_until(deadline, now);
    }
    pollfd waiting{.fd = descriptor_.get(), .events = POLLIN, .revents = 0};
    ::ppoll(&waiting, 1, timeout ? &left : nullptr, nullptr);
  }
}

void restore_signals_in_child() {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
}

AllSignalsBlocked::AllSignalsBlocked() {
  sigset_t all;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) sigdelset(&all, fault);
  ::pthread_sigmask(SIG_SETMASK, &all, &before_);
}

AllSignalsBlocked::~AllSignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace rekindle
