// rekindle: starts and restarts local ranks (`run`), looks after checkpoints (`checkpoint`). A
// static binary: it runs in images of any kind.
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "worker-sidecar/cli/checkpoint_command.h"
#include "worker-sidecar/launcher/options.h"
#include "worker-sidecar/launcher/run_command.h"

namespace {

constexpr const char* kUsage =
    "Usage: rekindle COMMAND [options]\n\n"
    "Commands:\n"
    "  run         start the ranks of a training program here and make them resumable\n"
    "  checkpoint  list, verify, compare, export, import and prune checkpoints\n\n"
    "rekindle COMMAND --help says more; rekindle --version says which version this is.\n";

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const std::string command = words.empty() ? "" : words.front();
  if (command == "run") {
    const rekindle::launcher::ParsedRun parsed = rekindle::launcher::parse_run({words.begin() + 1, words.end()});
    if (!parsed.text.empty()) {
      std::fputs(parsed.text.c_str(), parsed.exit_code == 0 ? stdout : stderr);
      return parsed.exit_code;
    }
    const auto signals = rekindle::SignalWatcher::block({SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD});
    if (!signals) {
      std::fprintf(stderr, "rekindle: %s\n", signals.error().message.c_str());
      return 1;
    }
    return rekindle::launcher::run_ranks(parsed.options, *signals);
  }
  if (command == "checkpoint") return rekindle::cli::run_checkpoint_command(argc - 1, argv + 1);
  if (command == "--version") {
    std::puts("rekindle " REKINDLE_VERSION);
    return 0;
  }
  const bool requested = command == "--help" || command == "-h" || command == "help";
  if (!requested && !command.empty()) std::fprintf(stderr, "rekindle: there is no command %s\n", command.c_str());
  std::fputs(kUsage, requested ? stdout : stderr);
  return requested ? 0 : 2;
}
