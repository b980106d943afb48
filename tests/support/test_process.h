// A program of ours as a child of a test: its environment, its output, its end. What a test starts
// ends with it.
#pragma once

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace rekindle {

// Looks every millisecond until `holds` or the patience is over. Tests wait for conditions, never
// for time.
template <typename Condition>
bool eventually(Condition holds, std::chrono::seconds patience = std::chrono::seconds(60)) {
  const auto limit = std::chrono::steady_clock::now() + patience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

class TestProcess {
 public:
  using Environment = std::map<std::string, std::string>;

  // Output of both kinds goes to `log`, appended.
  TestProcess(std::vector<std::string> command, const Environment& environment, std::string log)
      : log_(std::move(log)) {
    std::vector<char*> arguments;
    for (std::string& word : command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setpgid(0, 0);
    const int output = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(output, 1);
    ::dup2(output, 2);
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  ~TestProcess() {
    if (pid_ <= 0 || over_) return;
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  TestProcess(const TestProcess&) = delete;
  TestProcess& operator=(const TestProcess&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }

  bool running() {
    if (over_) return false;
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) return true;
    over_ = true;
    code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return false;
  }
  // Exit code as a shell tells it; -1 when it did not end in time.
  int wait(std::chrono::seconds patience = std::chrono::seconds(60)) {
    return eventually([&] { return !running(); }, patience) ? code_ : -1;
  }
  std::string output() const {
    std::ifstream file(log_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string log_;
  pid_t pid_ = -1;
  bool over_ = false;
  int code_ = -1;
};

}  // namespace rekindle
