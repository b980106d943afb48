#include "adam.h"

#include <cmath>

namespace digits {
namespace {

constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;
constexpr double kEpsilon = 1e-8;

void count_one(Adam::Counters& counters) {
  counters.updates += 1;
  counters.first_power *= kBeta1;
  counters.second_power *= kBeta2;
}

}  // namespace

void Adam::update(std::span<float> parameters, std::span<const float> gradients) {
  count_one(counters);
  const double first_scale = 1.0 / (1.0 - counters.first_power);
  const double second_scale = 1.0 / (1.0 - counters.second_power);
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const double gradient = gradients[k];
    const double first = kBeta1 * first_moments[k] + (1.0 - kBeta1) * gradient;
    const double second = kBeta2 * second_moments[k] + (1.0 - kBeta2) * gradient * gradient;
    const double change = learning_rate_ * first * first_scale / (std::sqrt(second * second_scale) + kEpsilon);
    first_moments[k] = static_cast<float>(first);
    second_moments[k] = static_cast<float>(second);
    parameters[k] = static_cast<float>(parameters[k] - change);
  }
}

Adam::Counters Adam::counters_after(std::uint64_t updates) {
  Counters counters;
  while (counters.updates < updates) count_one(counters);
  return counters;
}

}  // namespace digits
