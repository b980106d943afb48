// How much of a space a test walks: all of it where tests run as they ship, which is once and
// cheap; under a sanitizer, where each point costs several times as much and shows the same, a
// sample from a fresh seed. The seed is printed; REKINDLE_SAMPLE_SEED=<seed> takes the same again.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>

#include "common/base/prng.h"

namespace rekindle {

constexpr bool exhaustive() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#else
  return true;
#endif
}

// Of rounds with random numbers, which are a sample in any case.
constexpr std::uint64_t rounds(std::uint64_t all, std::uint64_t under_sanitizer) {
  return exhaustive() ? all : under_sanitizer;
}

inline std::uint64_t fresh_sample_seed() {
  const char* const asked = std::getenv("REKINDLE_SAMPLE_SEED");
  const std::uint64_t seed = asked == nullptr ? std::random_device{}() : std::strtoull(asked, nullptr, 10);
  std::cout << "seed " << seed << '\n';
  return seed;
}

// Asked once for each point of a space, in order, it takes every one, or under a sanitizer one in
// so many. A space of at least so many points is never left without one.
class Sample {
 public:
  explicit Sample(std::uint64_t one_in)
      : one_in_(exhaustive() ? 1 : one_in),
        prng_(one_in_ == 1 ? 0 : fresh_sample_seed()),
        left_(prng_.below(one_in_)) {}

  bool takes() {
    if (left_ > 0) {
      --left_;
      return false;
    }
    left_ = prng_.below(2 * one_in_ - 1);
    return true;
  }

 private:
  std::uint64_t one_in_;
  Prng prng_;
  std::uint64_t left_;  // points until the next that is taken
};

}  // namespace rekindle
