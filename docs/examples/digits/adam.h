// The Adam optimizer on one flat vector. Everything it remembers is public, so that it can be
// registered and comes back exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace digits {

class Adam {
 public:
  // The part that is small enough to be kept with every step.
  struct Counters {
    std::uint64_t updates = 0;
    // beta1 to the power of updates
    double first_power = 1.0;
    // beta2 to the power of updates
    double second_power = 1.0;
  };

  Adam(std::size_t parameters, double learning_rate)
      : first_moments(parameters, 0.0F), second_moments(parameters, 0.0F), learning_rate_(learning_rate) {}

  // One update. Each element is computed in double and rounded once.
  void update(std::span<float> parameters, std::span<const float> gradients);

  // The counters after `updates` updates: what they would hold, for a rank whose own were lost.
  static Counters counters_after(std::uint64_t updates);

  Counters counters;
  std::vector<float> first_moments;
  std::vector<float> second_moments;

 private:
  double learning_rate_;
};

}  // namespace digits
