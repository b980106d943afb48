// The local ranks as processes: started with their environment, told apart by their exit, ended for
// certain.
//
// Owns: process ids of direct children, and the pipes of --tag-output. As process 1 of a container
// it also reaps what others left behind. Promises: a child dies with the launcher (PDEATHSIG), runs
// in a process group of its own, so that a terminal's ^C reaches the launcher alone, and starts
// with the signal mask that programs expect. Threads: all calls on the thread that called start(),
// which must live as long as the children (PDEATHSIG follows that thread).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"

namespace rekindle::launcher {

using Environment = std::map<std::string, std::string>;

// How a child ended, as a shell would report it.
struct ChildEnd {
  std::uint32_t rank = 0;  // of the world
  pid_t pid = 0;
  // 128 + signal when a signal ended it
  int exit_code = 0;
  int signal = 0;
};

// "exit code 3" or "signal 9 (Killed)".
std::string describe(const ChildEnd& end);

class Children {
 public:
  struct Options {
    std::vector<std::string> command;
    bool tag_output = false;
  };

  explicit Children(Options options);
  ~Children();  // kills what is left
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  // The command cannot be started: `not_found` or `refused`, with a message that names it.
  Status start(std::uint32_t rank, const Environment& environment);

  // Takes every child that has ended. Never waits.
  std::vector<ChildEnd> reap();

  void signal_all(int signal);
  void signal(std::uint32_t rank, int signal);
  std::size_t running() const { return pids_.size(); }

  // The pipes of --tag-output, to be watched for reading, and the copying itself.
  std::vector<int> output_descriptors() const;
  void copy_output(int descriptor);
  void drain_output();

 private:
  struct Pipe {
    std::uint32_t rank = 0;
    int to = 1;
    std::string partial;
  };
  void write_tagged(const Pipe& pipe, const std::string& line) const;
  bool copy_once(int descriptor, Pipe& pipe);

  Options options_;
  std::map<pid_t, std::uint32_t> pids_;
  std::map<int, Pipe> pipes_;
};

// Where the command lies, looked up in PATH as a shell does.
Result<std::string> find_program(const std::string& name);

}  // namespace rekindle::launcher
