// Runs `rekindle checkpoint` inside the test.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "common/base/format.h"
#include "worker-sidecar/cli/checkpoint_command.h"

namespace rekindle::cli {

struct Ran {
  int code = 0;
  std::string out;
  std::string err;
};

// Standard error is no terminal. Each look at the clock takes a second; names are n1, n2, ...
inline Ran run(const std::vector<std::string>& arguments) {
  static int nonces = 0;
  std::vector<const char*> argv{"checkpoint"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  std::ostringstream out;
  std::ostringstream err;
  Instant time{};
  const CommandHost host{.out = out,
                         .err = err,
                         .err_is_terminal = false,
                         .now = [&] { return time += std::chrono::seconds(1); },
                         .wall_time = [] { return std::string("2026-01-02T03:04:05Z"); },
                         .draw_nonce = [] { return format("n{}", ++nonces); }};
  const int code = run_checkpoint_command(static_cast<int>(argv.size()), argv.data(), host);
  return {code, out.str(), err.str()};
}

}  // namespace rekindle::cli
