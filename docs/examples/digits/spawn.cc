#include "spawn.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace digits {
namespace {

volatile sig_atomic_t pending_signal = 0;

void remember_signal(int number) { pending_signal = number; }

void install(int number) {
  struct sigaction action{};
  action.sa_handler = remember_signal;  // no SA_RESTART: waitpid has to return
  sigaction(number, &action, nullptr);
}

// The arguments without --spawn.
std::vector<char*> arguments_of_a_rank(int argument_count, char** arguments) {
  std::vector<char*> kept;
  for (int at = 0; at < argument_count; ++at) {
    if (std::strcmp(arguments[at], "--spawn") == 0) {
      ++at;
    } else if (std::strncmp(arguments[at], "--spawn=", 8) == 0) {
      continue;
    } else {
      kept.push_back(arguments[at]);
    }
  }
  kept.push_back(nullptr);
  return kept;
}

[[noreturn]] void become_rank(int rank, int world_size, std::vector<char*>& arguments, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  setenv("RANK_ID", std::to_string(rank).c_str(), 1);
  setenv("RANK_SIZE", std::to_string(world_size).c_str(), 1);
  unsetenv("REKINDLE_RANK");
  unsetenv("REKINDLE_WORLD_SIZE");
  execv("/proc/self/exe", arguments.data());
  std::fprintf(stderr, "digits: cannot start rank %d: %s\n", rank, std::strerror(errno));
  _exit(127);
}

int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

void signal_all(const std::vector<pid_t>& ranks, int number) {
  for (const pid_t rank : ranks) {
    if (rank > 0) kill(rank, number);
  }
}

}  // namespace

int spawn_ranks(const Options& options, int argument_count, char** arguments) {
  std::vector<char*> rank_arguments = arguments_of_a_rank(argument_count, arguments);
  const pid_t parent = getpid();
  install(SIGTERM);
  install(SIGINT);
  std::vector<pid_t> ranks;
  for (int k = 0; k < options.spawn; ++k) {
    const pid_t child = fork();
    if (child == 0) become_rank(options.place.rank + k, options.place.world_size, rank_arguments, parent);
    if (child < 0) {
      std::fprintf(stderr, "digits: cannot start a rank: %s\n", std::strerror(errno));
      signal_all(ranks, SIGKILL);
      return 1;
    }
    ranks.push_back(child);
  }

  int code = 0;
  for (int running = options.spawn; running > 0;) {
    if (pending_signal != 0) {
      signal_all(ranks, pending_signal);
      pending_signal = 0;
    }
    int status = 0;
    const pid_t ended = waitpid(-1, &status, 0);
    if (ended < 0 && errno != EINTR) break;
    for (pid_t& rank : ranks) {
      if (rank != ended) continue;
      rank = 0;
      --running;
      if (code == 0 && code_of(status) != 0) {
        code = code_of(status);
        signal_all(ranks, SIGTERM);
      }
    }
  }
  return code;
}

}  // namespace digits
