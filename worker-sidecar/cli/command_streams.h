// Where a verb of `rekindle checkpoint` prints, and how.
#pragma once

#include <iosfwd>

#include "common/base/error.h"

namespace rekindle {

struct CommandStreams {
  std::ostream& out;
  std::ostream& err;
  bool json = false;
};

// Says what went wrong; the exit code for it.
int report(CommandStreams streams, const Error& error);

}  // namespace rekindle
