// Where a verb of `rekindle checkpoint` prints, how, and what its exit code means.
#pragma once

#include <iosfwd>

#include "common/base/error.h"
#include "worker-sidecar/cli/progress.h"

namespace rekindle::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitProblemsFound = 1;  // it was read, and something is wrong or differs
// the command line is wrong, or something could not be read or written
inline constexpr int kExitFailed = 2;

struct CommandStreams {
  std::ostream& out;
  std::ostream& err;
  bool json = false;
  Progress& progress;
};

// Says what went wrong; the exit code for it: damage and refusals are kExitProblemsFound, the rest
// is kExitFailed.
int report(CommandStreams streams, const Error& error);

}  // namespace rekindle::cli
