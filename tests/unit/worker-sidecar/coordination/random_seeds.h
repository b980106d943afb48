// How many seeds the random runs of the coordination machines take. COORDINATION_SEEDS: more, or
// fewer for a run that is slower; COORDINATION_SEED=<seed> runs one alone and prints its log.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "tests/support/random_seed.h"
#include "tests/support/thoroughness.h"

namespace rekindle::sidecar {

inline std::uint64_t seed_count() { return test::number_in("COORDINATION_SEEDS").value_or(rounds(4000, 100)); }

inline bool is_replay() { return test::number_in("COORDINATION_SEED").has_value(); }

// One of `part` of them, from 1 on, and an eighth as many that no run has seen.
inline test::Seeds coordination_seeds(std::uint64_t part = 1) {
  test::Seeds seeds{.fixed = std::vector<std::uint64_t>(seed_count() / part),
                    .fresh = std::max<std::uint64_t>(1, seed_count() / part / 8),
                    .replay_variable = "COORDINATION_SEED"};
  std::iota(seeds.fixed.begin(), seeds.fixed.end(), 1);
  return seeds;
}

}  // namespace rekindle::sidecar
