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
#include "common/base/instant.h"

namespace rekindle::launcher {

using Environment = std::map<std::string, std::string>;

struct Child {
  std::uint32_t rank = 0;  // of the world
  pid_t pid = 0;
};

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
  ~Children();  // end_all()
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  // The command cannot be started: `not_found` or `refused`, with a message that names it.
  Status start(std::uint32_t rank, const Environment& environment);

  // Takes every child that has ended. Never waits.
  std::vector<ChildEnd> reap();

  // A process that a device or a network file system holds in the kernel does not end; this long
  // is waited for it.
  static constexpr Duration kEndPatience = std::chrono::seconds(1);

  // Kills what is left and waits for its end. Returns whom the kernel could not end: they may still
  // write.
  std::vector<Child> end_all();

  void signal_all(int signal);
  void signal(std::uint32_t rank, int signal);
  std::size_t running() const { return pids_.size(); }

  // The pipes of --tag-output, to be watched for reading, and the copying itself. A pipe whose
  // lines have no room for now is left out (output_waits()): the rank waits as it would for a slow
  // reader of its own, until that one stands still and lines are dropped.
  std::vector<int> output_descriptors() const;
  bool output_waits() const;
  void copy_output(int descriptor);
  void drain_output();

 private:
  struct Pipe {
    std::uint32_t rank = 0;
    int to = 1;
    std::string partial;
  };
  void write_tagged(const Pipe& pipe, const std::string& line) const;
  ssize_t copy_once(int descriptor, Pipe& pipe);

  Options options_;
  std::map<pid_t, std::uint32_t> pids_;
  std::map<int, Pipe> pipes_;
};

// Where the command lies, looked up in PATH as a shell does.
Result<std::string> find_program(const std::string& name);

}  // namespace rekindle::launcher
