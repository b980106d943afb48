// Random numbers as a value: the same seed gives the same numbers on every machine. Pure code takes
// a Prng& (or a seed) and tests print theirs; only the shell draws a seed from the system. Not for
// secrets.
#pragma once

#include <cstdint>

namespace rekindle {

// SplitMix64 (Steele, Lea, Flood 2014): one word of state, every seed is good.
class Prng {
 public:
  explicit constexpr Prng(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
  }

  // At least 0, below 1.
  constexpr double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  // At least 0, below `bound`; 0 when bound is 0. (The bias of the remainder is below 2^-32 for
  // bounds that fit 32 bits.)
  constexpr std::uint64_t below(std::uint64_t bound) { return bound == 0 ? 0 : next() % bound; }

 private:
  std::uint64_t state_;
};

}  // namespace rekindle
