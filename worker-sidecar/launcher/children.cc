#include "worker-sidecar/launcher/children.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ranges>

#include "common/base/format.h"
#include "common/system/clock.h"
#include "common/system/signals.h"
#include "worker-sidecar/launcher/output.h"

namespace rekindle::launcher {
namespace {

constexpr std::size_t kLineBytesMax = 1u << 16;
constexpr std::size_t kPipeBytesDefault = 1u << 16;

// Both ends close on exec; the child's end is duplicated onto 1 or 2, which clears that.
Status open_pipe(std::array<int, 2>& ends) {
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno(errno, "making a pipe for --tag-output");
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {};
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// In the child between fork and exec: only calls that are safe there.
[[noreturn]] void become(const char* program, char* const* arguments, char* const* environment, pid_t parent, int out,
                         int error, int report) {
  restore_signals_in_child();
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(137);  // the launcher died before the request was in place
  if (out >= 0) ::dup2(out, 1);
  if (error >= 0) ::dup2(error, 2);
  ::execve(program, arguments, environment);
  const int failure = errno;
  [[maybe_unused]] const ssize_t written = ::write(report, &failure, sizeof failure);
  ::_exit(127);
}

}  // namespace

std::string describe(const ChildEnd& end) {
  if (end.signal != 0) return format("signal {} ({})", end.signal, ::strsignal(end.signal));
  return format("exit code {}", end.exit_code);
}

Result<std::string> find_program(const std::string& name) {
  const auto runnable = [](const std::string& path) {
    struct stat about{};
    return ::stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) && ::access(path.c_str(), X_OK) == 0;
  };
  if (name.contains('/')) {
    if (runnable(name)) return name;
    if (::access(name.c_str(), F_OK) == 0)
      return fail(ErrorCode::refused, format("{} is not an executable file; check its mode", name));
    return fail(ErrorCode::not_found, format("the command {} does not exist", name));
  }
  const char* const search = std::getenv("PATH");
  const std::string path = search != nullptr ? search : "/usr/local/bin:/usr/bin:/bin";
  for (const auto part : std::views::split(path, ':')) {
    const std::string folder(part.begin(), part.end());
    if (const std::string candidate = format("{}/{}", folder.empty() ? "." : folder, name); runnable(candidate))
      return candidate;
  }
  return fail(ErrorCode::not_found, format("the command {} is not in PATH", name));
}

Children::Children(Options options) : options_(std::move(options)) {}

Children::~Children() {
  end_all();
  for (const auto& [descriptor, pipe] : pipes_) ::close(descriptor);
}

Status Children::start(std::uint32_t rank, const Environment& environment) {
  Result<std::string> program = find_program(options_.command.front());
  if (!program) return std::unexpected(program.error());

  std::vector<std::string> arguments = options_.command;
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment) variables.push_back(format("{}={}", name, value));
  const std::vector<char*> argument_pointers = pointers(arguments);
  const std::vector<char*> variable_pointers = pointers(variables);

  std::array<int, 2> out{-1, -1};
  std::array<int, 2> error{-1, -1};
  std::array<int, 2> report{-1, -1};
  const auto close_pair = [](const std::array<int, 2>& ends) {
    for (const int end : ends) {
      if (end >= 0) ::close(end);
    }
  };
  if (options_.tag_output) {
    if (Status opened = open_pipe(out); !opened) return opened;
    if (Status opened = open_pipe(error); !opened) {
      close_pair(out);
      return opened;
    }
  }
  if (::pipe2(report.data(), O_CLOEXEC) != 0) {
    close_pair(out);
    close_pair(error);
    return fail_errno(errno, "starting a rank");
  }

  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0)
    become(program->c_str(), argument_pointers.data(), variable_pointers.data(), parent, out[1], error[1], report[1]);
  const int fork_error = errno;
  ::close(report[1]);
  if (pid < 0) {
    ::close(report[0]);
    close_pair(out);
    close_pair(error);
    return fail_errno(fork_error, format("starting rank {}", rank));
  }
  ::setpgid(pid, pid);
  int exec_error = 0;
  ssize_t got = 0;
  do got = ::read(report[0], &exec_error, sizeof exec_error);
  while (got < 0 && errno == EINTR);
  ::close(report[0]);
  if (options_.tag_output) {
    ::close(out[1]);
    ::close(error[1]);
    pipes_[out[0]] = Pipe{.rank = rank, .to = 1, .partial = {}};
    pipes_[error[0]] = Pipe{.rank = rank, .to = 2, .partial = {}};
  }
  if (got == sizeof exec_error) {
    ::waitpid(pid, nullptr, 0);
    return fail_errno(exec_error, format("the command {} cannot be started", *program));
  }
  pids_[pid] = rank;
  return {};
}

std::vector<ChildEnd> Children::reap() {
  std::vector<ChildEnd> ended;
  while (true) {
    int status = 0;
    // Any child: as process 1 of a container orphans are ours to reap as well.
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid <= 0) break;
    const auto found = pids_.find(pid);
    if (found == pids_.end()) continue;
    ChildEnd end{.rank = found->second, .pid = pid};
    if (WIFSIGNALED(status)) {
      end.signal = WTERMSIG(status);
      end.exit_code = 128 + end.signal;
    } else {
      end.exit_code = WEXITSTATUS(status);
    }
    pids_.erase(found);
    ended.push_back(end);
  }
  return ended;
}

std::vector<Child> Children::end_all() {
  signal_all(SIGKILL);
  const Instant until = monotonic_now() + kEndPatience;
  while (true) {
    std::erase_if(pids_, [](const auto& child) { return ::waitpid(child.first, nullptr, WNOHANG) != 0; });
    if (pids_.empty() || monotonic_now() >= until) break;
    // Not for SIGCHLD, which is the supervision's to take.
    ::poll(nullptr, 0, 5);
  }
  std::vector<Child> left;
  for (const auto& [pid, rank] : pids_) left.push_back({.rank = rank, .pid = pid});
  return left;
}

void Children::signal_all(int signal) {
  // The group, so that what a rank's shell started is reached as well.
  for (const auto& [pid, rank] : pids_) {
    if (::kill(-pid, signal) != 0) ::kill(pid, signal);
  }
}

void Children::signal(std::uint32_t rank, int signal) {
  for (const auto& [pid, of] : pids_) {
    if (of == rank && ::kill(-pid, signal) != 0) ::kill(pid, signal);
  }
}

std::vector<int> Children::output_descriptors() const {
  std::vector<int> descriptors;
  for (const auto& [descriptor, pipe] : pipes_) {
    if (output_to(pipe.to).has_room()) descriptors.push_back(descriptor);
  }
  return descriptors;
}

bool Children::output_waits() const { return output_descriptors().size() < pipes_.size(); }

void Children::write_tagged(const Pipe& pipe, const std::string& line) const {
  output_to(pipe.to).write(format("[rank {}] {}\n", pipe.rank, line));
}

// The bytes that were read; 0 at the end of the pipe, negative when there is nothing more for now.
ssize_t Children::copy_once(int descriptor, Pipe& pipe) {
  std::array<char, 65536> buffer{};
  const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
  if (got <= 0) return got;
  pipe.partial.append(buffer.data(), static_cast<std::size_t>(got));
  std::size_t begin = 0;
  for (std::size_t end = pipe.partial.find('\n'); end != std::string::npos; end = pipe.partial.find('\n', begin)) {
    write_tagged(pipe, pipe.partial.substr(begin, end - begin));
    begin = end + 1;
  }
  pipe.partial.erase(0, begin);
  if (pipe.partial.size() > kLineBytesMax) {
    write_tagged(pipe, pipe.partial);
    pipe.partial.clear();
  }
  return got;
}

void Children::copy_output(int descriptor) {
  const auto found = pipes_.find(descriptor);
  if (found == pipes_.end()) return;
  const ssize_t got = copy_once(descriptor, found->second);
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
  if (!found->second.partial.empty()) write_tagged(found->second, found->second.partial);
  ::close(descriptor);
  pipes_.erase(found);
}

void Children::drain_output() {
  for (auto& [descriptor, pipe] : pipes_) {
    // What the rank left in the pipe, and no more: what it has started may live on and write for
    // ever.
    const int capacity = ::fcntl(descriptor, F_GETPIPE_SZ);
    std::size_t left = capacity > 0 ? static_cast<std::size_t>(capacity) : kPipeBytesDefault;
    while (true) {
      const ssize_t got = copy_once(descriptor, pipe);
      if (got <= 0 || static_cast<std::size_t>(got) >= left) break;
      left -= static_cast<std::size_t>(got);
    }
    if (!pipe.partial.empty()) write_tagged(pipe, pipe.partial);
    pipe.partial.clear();
  }
}

}  // namespace rekindle::launcher
