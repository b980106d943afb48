// A scope around rekindle.h: opened once, closed when it goes. Without rekindle every call succeeds
// and does nothing, which is the undisturbed twin that the demo compares with.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "adam.h"
#include "model.h"
#include "options.h"
#include "rekindle.h"
#include "result.h"

namespace digits {

struct Position {
  std::uint64_t step = 0;
  std::uint64_t attempt = 1;
  std::string path;            // what was restored; empty: nothing
  bool state_missing = false;  // counters are to be derived
};

class Session {
 public:
  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { close(); }

  Status open(const Options& options);

  // Parameters and both moments, whole on every rank, and the counters as small state.
  Status register_all(std::span<float> parameters, Adam& adam);

  Result<Position> restore();

  // RK_OK go on, RK_STOP leave the loop; negative: an error, rk_last_error() says which.
  rk_status step_begin(std::uint64_t step) { return session_ == nullptr ? RK_OK : rk_step_begin(session_, step); }
  rk_status update_begin() { return session_ == nullptr ? RK_OK : rk_update_begin(session_); }
  rk_status update_end() { return session_ == nullptr ? RK_OK : rk_update_end(session_); }
  rk_status step_end() { return session_ == nullptr ? RK_OK : rk_step_end(session_); }
  rk_status checkpoint() { return session_ == nullptr ? RK_OK : rk_checkpoint(session_); }
  rk_status set_phase(rk_phase phase) { return session_ == nullptr ? RK_OK : rk_set_phase(session_, phase); }

  // Returns when the breakpoint is durable; without rekindle at once.
  rk_status collective_failed(const std::string& why) {
    return session_ == nullptr ? RK_STOP : rk_collective_failed(session_, why.c_str());
  }

  // The exit code for the process.
  int close();

 private:
  Status register_array(const std::string& name, const Part& part, std::span<float> values);

  rk_session* session_ = nullptr;
};

}  // namespace digits
