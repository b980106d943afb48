// The command line of `rekindle run` as a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/contract/deadlines.h"

namespace rekindle::launcher {

struct RunOptions {
  std::uint32_t ranks = 1;
  std::uint32_t restarts_max = 10;
  std::uint32_t deadline_seconds = kBreakpointDeadlineDefault.count();
  std::string checkpoint_folder;  // empty: REKINDLE_CHECKPOINT_DIR, else ./checkpoints
  std::string job;                // empty: REKINDLE_JOB, else "local"
  // empty: REKINDLE_CHECKPOINT_EVERY, else off; these five are texts of
  // common/contract/checkpoint_settings.h
  std::string checkpoint_every;
  std::string shadow_every;
  std::string keep;
  std::string write_bandwidth_max;
  std::string resume;
  std::string events_file;  // empty: none
  bool tag_output = false;
  bool verbose = false;
  std::vector<std::string> command;
};

// What the arguments of `rekindle run` request. `text` set: print it and end with `exit_code`
// (--help, or what is wrong).
struct ParsedRun {
  RunOptions options;
  std::string text;
  int exit_code = 0;
};

ParsedRun parse_run(const std::vector<std::string>& words);

}  // namespace rekindle::launcher
