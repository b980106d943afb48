// For containers that run several ranks without `rekindle run`: starts them as processes and ends
// with them.
#pragma once

#include "options.h"

namespace digits {

// Runs `options.spawn` ranks of this program with the same arguments. Passes SIGTERM and SIGINT on;
// when one rank fails the others are ended. Returns 0 when all ended well, else the code of the
// first that did not (128 + signal for a signal).
int spawn_ranks(const Options& options, int argument_count, char** arguments);

}  // namespace digits
