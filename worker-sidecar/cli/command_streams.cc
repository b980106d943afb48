#include "worker-sidecar/cli/command_streams.h"

#include <ostream>

#include "worker-sidecar/cli/table.h"

namespace rekindle::cli {

int report(CommandStreams streams, const Error& error) {
  streams.err << "rekindle checkpoint: " << printable(error.message) << '\n';
  return error.code == ErrorCode::corrupt || error.code == ErrorCode::refused ? kExitProblemsFound : kExitFailed;
}

}  // namespace rekindle::cli
