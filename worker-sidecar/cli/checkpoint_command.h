// `rekindle checkpoint ls | show | verify | export | groups`. A function of a library, so that the `rekindle` program stays a dispatcher.
#pragma once

#include <iosfwd>

namespace rekindle {

// argv[0] is the word "checkpoint"; what follows are its arguments. Returns the exit code: 0 fine, 1 something wrong was found or could not be
// done, 2 the command line is wrong. Prints to standard output and error.
int run_checkpoint_command(int argc, char** argv);

// The same with the streams given.
int run_checkpoint_command(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

}  // namespace rekindle
