// `rekindle checkpoint VERB ...` (docs/operating/checkpoints.md). A function of a library, so that
// the `rekindle` program stays a dispatcher.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>

#include "common/base/instant.h"

namespace rekindle::cli {

// What a verb needs of the world besides files.
struct CommandHost {
  std::ostream& out;
  std::ostream& err;
  // then progress is shown without --progress
  bool err_is_terminal = false;
  std::function<Instant()> now;             // monotonic
  std::function<std::string()> wall_time;   // for people
  std::function<std::string()> draw_nonce;  // is_nonce, random
};

// argv[0] is the word "checkpoint"; what follows are its arguments. Returns the exit code
// (command_streams.h). Prints to standard output and error.
int run_checkpoint_command(int argc, char** argv);

// The same on a given host.
int run_checkpoint_command(int argc, const char* const* argv, const CommandHost& host);

}  // namespace rekindle::cli
