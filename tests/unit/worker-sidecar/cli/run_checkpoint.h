// Runs `rekindle checkpoint` inside the test.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "worker-sidecar/cli/checkpoint_command.h"

namespace rekindle {

struct Ran {
  int code = 0;
  std::string out;
  std::string err;
};

inline Ran run(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv{"checkpoint"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  std::ostringstream out;
  std::ostringstream err;
  const int code = run_checkpoint_command(static_cast<int>(argv.size()), argv.data(), out, err);
  return {code, out.str(), err.str()};
}

}  // namespace rekindle
