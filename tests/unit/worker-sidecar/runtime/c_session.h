// A stand-alone session through the C functions, for tests of what only they do.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "worker-sidecar/runtime/include/rekindle.h"

namespace rekindle::runtime::testing {

// Parameters, running statistics and a counter, all equal to the number of the committed step.
struct CSession {
  std::array<float, 6> weights{};
  std::array<double, 2> statistics{};
  std::uint64_t counter = 0;
  rk_position position{.struct_size = sizeof(rk_position)};
  rk_session* session = nullptr;

  ~CSession() { close(); }

  rk_status open(const rk_options& options) {
    if (const rk_status status = rk_open(&options, &session); status != RK_OK) return status;
    const rk_tensor first{.struct_size = sizeof(rk_tensor),
                          .name = "weights",
                          .data = weights.data(),
                          .dtype = RK_F32,
                          .rank = 2,
                          .shape = {2, 3}};
    const rk_tensor second{.struct_size = sizeof(rk_tensor),
                           .name = "statistics",
                           .data = statistics.data(),
                           .dtype = RK_F64,
                           .rank = 1,
                           .shape = {2},
                           .shard = {},
                           .written_in = RK_ANYWHERE};
    if (rk_register(session, &first) != RK_OK || rk_register(session, &second) != RK_OK ||
        rk_register_state(session, "counter", &counter, sizeof counter) != RK_OK) {
      throw std::runtime_error(rk_last_error());
    }
    return RK_OK;
  }
  rk_status restore() { return rk_restore(session, &position); }
  rk_status one_step() {
    const std::uint64_t step = counter + 1;
    if (const rk_status status = rk_step_begin(session, step); status != RK_OK) return status;
    statistics.fill(static_cast<double>(step));
    if (const rk_status status = rk_update_begin(session); status != RK_OK) return status;
    weights.fill(static_cast<float>(step));
    counter = step;
    if (const rk_status status = rk_update_end(session); status != RK_OK) return status;
    return rk_step_end(session);
  }
  int close() {
    rk_session* const closing = session;
    session = nullptr;
    return rk_close(closing);
  }
};

}  // namespace rekindle::runtime::testing
