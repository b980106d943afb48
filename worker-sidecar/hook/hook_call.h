// The call that a preStop hook makes: asks the sidecar to save, waits until it is done, says so in
// one line. Blocking, one thread.
#pragma once

#include <string>

#include "common/base/instant.h"

namespace rekindle::hook {

struct HookOptions {
  std::string socket_path;
  std::string container;
  // for a sidecar that is gone or just being restarted
  Duration connect_limit = std::chrono::seconds(3);
  // for all of it, however often a sidecar comes and goes; behind the sidecar's own deadline, and
  // the kubelet's grace is shorter
  Duration answer_limit = std::chrono::seconds(600);
};

struct HookResult {
  // 0: durable or nothing to save
  int exit_code = 0;
  // without line end; belongs on stderr when exit_code is not 0
  std::string line;
};

HookResult call_sidecar(const HookOptions& options);

}  // namespace rekindle::hook
