// Exit codes that programs of ours and Volcano's policies have to agree on.
#pragma once

namespace rekindle {

// What a process ends with that stopped for a breakpoint: 128 + SIGTERM, as a shell reports it.
// Never 0, which Volcano would count as a completed task.
inline constexpr int kStoppedExitCode = 143;

}  // namespace rekindle
