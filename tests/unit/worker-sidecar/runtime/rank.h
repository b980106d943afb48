// A rank for the tests of the session: a session on a scripted sidecar, with four floats and a
// counter registered.
#pragma once

#include <array>
#include <cstdint>
#include <future>
#include <memory>
#include <string>

#include "tests/support/scripted_sidecar.h"
#include "worker-sidecar/runtime/src/session.h"

namespace rekindle::runtime::testing {

inline const LinkLimits kQuick{.away_max = std::chrono::milliseconds(300),
                               .first_pause = std::chrono::milliseconds(1),
                               .longest_pause = std::chrono::milliseconds(10),
                               .goodbye_max = std::chrono::seconds(2)};
// For stories in which the sidecar's absence is not the point.
inline const LinkLimits kPatient{.away_max = std::chrono::seconds(60),
                                 .first_pause = std::chrono::milliseconds(1),
                                 .longest_pause = std::chrono::milliseconds(10),
                                 .goodbye_max = std::chrono::seconds(2)};

inline rk_tensor vector_of_4(const char* name, float* data, rk_written_in written_in = RK_UPDATE) {
  return {.struct_size = sizeof(rk_tensor),
          .name = name,
          .data = data,
          .dtype = RK_F32,
          .rank = 1,
          .shape = {4},
          .shard = {},
          .written_in = written_in};
}

struct Rank {
  OpenOptions options;
  LinkLimits limits = kPatient;
  std::array<float, 4> weights{};
  std::array<float, 4> statistics{};
  std::uint64_t counter = 0;
  rk_position position{.struct_size = sizeof(rk_position)};
  std::unique_ptr<Session> session;

  explicit Rank(std::string socket_path) { options.socket_path = std::move(socket_path); }

  Done open() {
    Outcome<std::unique_ptr<Session>> opened = Session::open(options, limits);
    if (!opened) return std::unexpected(opened.error());
    session = *std::move(opened);
    return {};
  }
  rk_status register_all() {
    if (const rk_status status = session->add_tensor(vector_of_4("weights", weights.data())); status != RK_OK)
      return status;
    if (const rk_status status = session->add_tensor(vector_of_4("statistics", statistics.data(), RK_ANYWHERE));
        status != RK_OK)
      return status;
    return session->add_state("counter", &counter, sizeof counter);
  }
  // To the first step, or an exception with the sentence.
  void start() {
    if (Done done = open(); !done) throw std::runtime_error(done.error().message);
    if (register_all() != RK_OK || session->restore(position) != RK_OK) throw std::runtime_error(last_error());
  }
  // Weights equal the number of the committed step, and so does the counter; statistics change
  // before the update.
  rk_status one_step() {
    const std::uint64_t step = static_cast<std::uint64_t>(weights[0]) + 1;
    if (const rk_status status = session->step_begin(step); status != RK_OK) return status;
    statistics.fill(static_cast<float>(step) + 0.5f);
    if (const rk_status status = session->update_begin(); status != RK_OK) return status;
    weights.fill(static_cast<float>(step));
    counter = step;
    if (const rk_status status = session->update_end(); status != RK_OK) return status;
    return session->step_end();
  }
  int train_until_stopped() {
    while (one_step() == RK_OK) continue;
    return session->close();
  }
};

}  // namespace rekindle::runtime::testing
