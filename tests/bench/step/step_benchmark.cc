// What a step of an otherwise empty training loop costs (PROTOCOL P8): nanoseconds for
// rk_step_begin, rk_update_begin, rk_update_end and rk_step_end with open gates, through the shared
// library, for some sizes of small state. One line of JSON a size: the fastest, the median and the
// slowest of the runs.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "worker-sidecar/runtime/include/rekindle.h"

namespace {

constexpr int kRuns = 21;
constexpr int kSteps = 200'000;

int measure(std::size_t state_bytes, int runs, int steps, bool beside_sidecar) {
  rk_session* run = nullptr;
  const rk_options alone{.struct_size = sizeof(rk_options),
                         .socket_path = "",
                         .checkpoint_dir = "",
                         .job = nullptr,
                         .rank = 0,
                         .world_size = 1};
  const rk_options as_the_environment_says{.struct_size = sizeof(rk_options)};
  const rk_options& options = beside_sidecar ? as_the_environment_says : alone;
  std::vector<unsigned char> state(state_bytes, 7);
  rk_position at{.struct_size = sizeof(rk_position)};
  if (rk_open(&options, &run) != RK_OK || rk_register_state(run, "state", state.data(), state.size()) != RK_OK ||
      rk_restore(run, &at) != RK_OK) {
    std::fprintf(stderr, "step_benchmark: %s\n", rk_last_error());
    return 1;
  }
  std::uint64_t step = 0;
  std::vector<double> nanoseconds;
  for (int i = 0; i < runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    for (int j = 0; j < steps; ++j) {
      if (rk_step_begin(run, ++step) != RK_OK || rk_update_begin(run) != RK_OK || rk_update_end(run) != RK_OK ||
          rk_step_end(run) != RK_OK) {
        std::fprintf(stderr, "step_benchmark: %s\n", rk_last_error());
        return 1;
      }
    }
    nanoseconds.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() /
                          steps);
  }
  rk_close(run);
  std::sort(nanoseconds.begin(), nanoseconds.end());
  std::printf(
      "{\"state_bytes\": %zu, \"nanoseconds_a_step_fastest\": %.1f, \"nanoseconds_a_step_median\": %.1f, "
      "\"nanoseconds_a_step_slowest\": %.1f}\n",
      state_bytes, nanoseconds.front(), nanoseconds[nanoseconds.size() / 2], nanoseconds.back());
  return 0;
}

}  // namespace

// --steps N: one run of N steps with 256 bytes of state, for whoever counts its system calls.
// --state BYTES: that size only; --beside BYTES: the same in a rank of `rekindle run`.
int main(int argc, char** argv) {
  const auto asked = [&](const char* option) { return argc == 3 && std::strcmp(argv[1], option) == 0; };
  if (asked("--steps")) return measure(256, 1, std::atoi(argv[2]), false);
  if (asked("--state")) return measure(std::strtoull(argv[2], nullptr, 10), kRuns, kSteps, false);
  if (asked("--beside")) return measure(std::strtoull(argv[2], nullptr, 10), kRuns, kSteps, true);
  for (const std::size_t state_bytes : {0, 64, 256, 4096, 65536}) {
    if (const int failed = measure(state_bytes, kRuns, kSteps, false); failed != 0) return failed;
  }
  return 0;
}
