// A perceptron with two hidden layers in float32, whose every sum is made in one fixed order: the
// same parameters and images give the same bytes. No threads of its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data.h"

namespace digits {

inline constexpr std::array<std::size_t, 4> kWidths = {kPixels, 384, 192, kClasses};
inline constexpr std::size_t kLayers = kWidths.size() - 1;

// A named array inside one flat vector of parameters (and in vectors of the same shape: gradients,
// moments).
struct Part {
  std::string name;
  std::vector<std::int64_t> shape;
  std::size_t begin = 0;
  std::size_t elements = 0;
};

// layer1.weight (in x out), layer1.bias, layer2.weight, ... in the order in which they lie in
// memory.
std::vector<Part> model_parts();
std::size_t parameter_count();

std::vector<float> initial_parameters(std::uint64_t seed);

class Model {
 public:
  explicit Model(std::size_t batch);

  // Adds up, over the images, the gradients of the cross entropy into `gradients` (set to zero
  // first); returns the summed loss.
  float add_gradients(std::span<const float> parameters, std::span<const Image* const> images,
                      std::span<float> gradients);

  // The share of the images whose digit is recognised.
  double accuracy(std::span<const float> parameters, std::span<const Image> images);

 private:
  void forward(std::span<const float> parameters, std::size_t images);

  std::size_t batch_;
  std::array<std::vector<float>, kLayers + 1> activations_;  // batch x width
  // the same shape: derivative of the loss
  std::array<std::vector<float>, kLayers + 1> errors_;
  std::vector<float> transposed_;
};

}  // namespace digits
