#include "worker-sidecar/launcher/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "common/base/format.h"
#include "common/contract/job_limits.h"

namespace rekindle::launcher {
namespace {

constexpr const char* kDescription =
    "Starts N ranks of a training program on this machine and makes them resumable.\n\n"
    "On a laptop or in a plain container it plays the sidecar itself: when a rank dies the others stop at the same "
    "step, a\n"
    "complete checkpoint of that step is written, and all ranks are started again at the next step. In a pod that "
    "Rekindle\n"
    "protects (REKINDLE_SOCKET is set) it only starts the ranks of this pod; the sidecar and the operator do the "
    "rest.\n";

constexpr const char* kFooter =
    "\nEach rank gets REKINDLE_RANK, REKINDLE_WORLD_SIZE, RANK_ID, RANK_SIZE and LOCAL_RANK; in a pod of a Volcano job "
    "with the\n"
    "svc plugin also MASTER_ADDR, the first host.\n\n"
    "Signals: SIGTERM or SIGINT saves a checkpoint, then ends with 143. SIGUSR1 saves one and goes on training.\n"
    "Exit code: 0 when all ranks ended with 0, else that of the rank that failed first (128 + signal).\n\n"
    "Example:\n"
    "  rekindle run -n 4 --checkpoint-dir ./checkpoints -- python train.py --epochs 10\n";

}  // namespace

ParsedRun parse_run(const std::vector<std::string>& words) {
  ParsedRun parsed;
  RunOptions& options = parsed.options;

  CLI::App app(kDescription, "rekindle run");

  app.footer(kFooter);
  app.add_option("-n,--ranks", options.ranks, "ranks to start here (default 1)")
      ->check(CLI::Range(1u, kRanksPerPodMax));
  app.add_option("--max-restarts", options.restarts_max,
                 "how often the ranks are started again after a failure; 0 never (default 10; ignored in a pod)")
      ->check(CLI::Range(0u, 1000000u));
  app.add_option("--checkpoint-dir", options.checkpoint_folder,
                 "where checkpoints are kept (default: REKINDLE_CHECKPOINT_DIR, else ./checkpoints)");
  app.add_option("--job", options.job,
                 "name of this run; runs with one name resume each other (default: REKINDLE_JOB, else local)");
  app.add_option("--deadline", options.deadline_seconds,
                 "seconds that a checkpoint may take when something is ending (default 60)")
      ->check(CLI::Range(1u, 86400u));
  app.add_option("--checkpoint-every", options.checkpoint_every,
                 "also save while training goes on: \"500 steps\", \"10 min\", auto (as often as it pays) or off "
                 "(default: REKINDLE_CHECKPOINT_EVERY, else off)");
  app.add_option("--shadow-every", options.shadow_every,
                 "keep a copy of each rank's share in memory at every \"N steps\", so that a step survives the death "
                 "of all ranks (default: REKINDLE_SHADOW_EVERY, else off)");
  app.add_option("--keep", options.keep, "how many complete checkpoints stay (default: REKINDLE_KEEP, else 3)");
  app.add_option("--write-bandwidth-max", options.write_bandwidth_max,
                 "of each writer, for example \"500 MiB/s\" (default: REKINDLE_WRITE_BANDWIDTH_MAX, else no limit)");
  app.add_option(
      "--resume", options.resume,
      "same-name goes on from any run of this name, same-job only from checkpoints of this very run (default: "
      "REKINDLE_RESUME, else same-name)");
  app.add_option("--events", options.events_file, "append what happens to this file, one JSON object a line");
  app.add_flag("--tag-output", options.tag_output, "put \"[rank N] \" in front of every line that a rank prints");
  app.add_flag("--verbose", options.verbose, "say more about what the sidecar inside does");

  const auto divider = std::ranges::find(words, "--");
  std::vector<std::string> own(words.begin(), divider);
  if (divider != words.end()) options.command.assign(divider + 1, words.end());
  std::ranges::reverse(own);  // CLI11 takes the words from the back
  try {
    app.parse(own);
  } catch (const CLI::CallForHelp&) {
    parsed.text = app.help();
    constexpr std::string_view kPlace = "[OPTIONS]";
    if (const std::size_t at = parsed.text.find(kPlace); at != std::string::npos) {
      parsed.text.replace(at, kPlace.size(), "[-n N] [options] -- command [arguments...]");
    }
    return parsed;
  } catch (const CLI::ExtrasError&) {
    const std::string first = app.remaining().front();
    if (first.starts_with('-')) {
      parsed.text = format("rekindle run: unknown option {}. See rekindle run --help.\n", first);
    } else if (divider != words.end()) {
      parsed.text = format("rekindle run: {} in front of -- belongs to no option. See rekindle run --help.\n", first);
    } else {
      parsed.text = format("rekindle run: put -- in front of the command: rekindle run -n 4 -- {} ...\n", first);
    }
    parsed.exit_code = 2;
    return parsed;
  } catch (const CLI::ParseError& error) {
    parsed.text = format("rekindle run: {}\nSee rekindle run --help.\n", error.what());
    parsed.exit_code = 2;
    return parsed;
  }
  if (options.command.empty()) {
    parsed.text = "rekindle run: no command. Give it behind --, for example: rekindle run -n 4 -- python train.py\n";
    parsed.exit_code = 2;
  }
  return parsed;
}

}  // namespace rekindle::launcher
