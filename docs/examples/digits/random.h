// A small counted generator (splitmix64): the same on every machine, and any place of the sequence
// can be made from a seed alone.
#pragma once

#include <cstdint>

namespace digits {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t value = state_ += 0x9E3779B97F4A7C15ULL;
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9ULL;
    value = (value ^ value >> 27) * 0x94D049BB133111EBULL;
    return value ^ value >> 31;
  }

  // In [0, bound). The bias for bounds as small as a data set is below 2^-50.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }

  // In [-1, 1), exact in a float.
  float symmetric() { return static_cast<float>(static_cast<double>(next() >> 40) * 0x1p-23 - 1.0); }

 private:
  std::uint64_t state_;
};

}  // namespace digits
