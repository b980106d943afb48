// What the caller of rk_open requested: the caller's options, completed from the environment and
// checked.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/base/instant.h"
#include "common/contract/checkpoint_settings.h"
#include "worker-sidecar/runtime/src/failure.h"

namespace rekindle::runtime {

struct OpenOptions {
  std::string socket_path;     // empty: stand-alone
  std::string checkpoint_dir;  // empty: none
  std::string job = "local";
  std::string job_uid;
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  bool never_exit = false;
  bool rebuilds = false;  // RK_REBUILDS
  std::uint32_t state_bytes_max = 65536;
  CheckpointSettings checkpoints;
  Duration open_time_max = std::chrono::seconds(600);
};

// The value of an environment variable, nullptr when it is not set.
using Environment = std::function<const char*(const char* name)>;

// ARGUMENT or VERSION; the message names the option or variable, its value and what to change.
// `options` may be nullptr.
Outcome<OpenOptions> read_open_options(const rk_options* options, const Environment& environment);

}  // namespace rekindle::runtime
