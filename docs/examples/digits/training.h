// The training of one rank, from the first step or from where rekindle resumes it, to the last.
#pragma once

#include "options.h"

namespace digits {

// Returns the exit code of the process.
int train(const Options& options);

}  // namespace digits
