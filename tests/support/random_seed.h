// Seeds of random tests. With fixed ones a change that breaks the test fails at once, and for
// everybody; a fresh one makes every run look at something that no run has seen. A failure says how
// to run the one seed again.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace rekindle::test {

// An environment variable that holds a number.
inline std::optional<std::uint64_t> number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? std::nullopt : std::optional<std::uint64_t>(std::strtoull(text, nullptr, 10));
}

inline std::string replay_of(std::uint64_t seed, const char* variable) {
  const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string number = std::to_string(seed);
  return "seed " + number + "; replay with " + variable + "=" + number + " " + program_invocation_name +
         " --gtest_filter=" + test->test_suite_name() + "." + test->name();
}

struct Seeds {
  std::vector<std::uint64_t> fixed = {1};
  std::uint64_t fresh = 1;                    // how many more, from one that is drawn on
  const char* replay_variable = "TEST_SEED";  // names the one seed to run
};

// Runs `body(seed)` with each of them until one fails.
template <typename Body>
void for_each_seed(const Seeds& seeds, Body body) {
  const auto run = [&](std::uint64_t seed) {
    SCOPED_TRACE(replay_of(seed, seeds.replay_variable));
    body(seed);
    return !::testing::Test::HasFailure();
  };
  if (const auto alone = number_in(seeds.replay_variable)) {
    run(*alone);
    return;
  }
  for (const std::uint64_t seed : seeds.fixed) {
    if (!run(seed)) return;
  }
  const std::uint64_t first = std::random_device{}();
  if (seeds.fresh != 0) std::cout << replay_of(first, seeds.replay_variable) << '\n';
  if (seeds.fresh > 1) std::cout << seeds.fresh << " seeds from that one on\n";
  for (std::uint64_t seed = first; seed < first + seeds.fresh; ++seed) {
    if (!run(seed)) return;
  }
}

}  // namespace rekindle::test
