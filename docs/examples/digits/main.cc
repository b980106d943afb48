// digits: a small, real training job that shows how a program uses rekindle.h. README.md tells how
// to run it.
#include <cstdio>

#include "options.h"
#include "spawn.h"
#include "training.h"

int main(int argument_count, char** arguments) {
  const digits::Result<digits::Options> options = digits::read_options(argument_count, arguments);
  if (!options) {
    std::fprintf(stderr, "digits: %s\n", options.error().c_str());
    return 2;
  }
  if (options->help) {
    std::fputs(digits::usage(), stdout);
    return 0;
  }
  if (options->spawn > 0) return digits::spawn_ranks(*options, argument_count, arguments);
  return digits::train(*options);
}
