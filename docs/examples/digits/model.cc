#include "model.h"

#include <algorithm>
#include <cmath>

#include "random.h"

namespace digits {
namespace {

// The exponential from basic operations alone, which IEEE 754 fixes to the bit; that of the C
// library may differ between CPUs.
double exponential(double x) {
  if (x < -700.0) return 0.0;
  const double powers_of_two = std::floor(x * 1.4426950408889634 + 0.5);
  const double rest = (x - powers_of_two * 0.693147180369123816490) - powers_of_two * 1.90821492927058770002e-10;
  double sum = 1.0;
  for (int term = 13; term >= 1; --term) sum = 1.0 + sum * rest / term;
  return std::ldexp(sum, static_cast<int>(powers_of_two));
}

// target[k] += factor * source[k]: the loop that does nearly all the work. Each element is a sum of
// its own, so the compiler may use vector instructions without changing any order.
void add_scaled(float* __restrict__ target, const float* __restrict__ source, float factor, std::size_t elements) {
  for (std::size_t k = 0; k < elements; ++k) target[k] += factor * source[k];
}

struct Layer {
  std::size_t in, out, weight, bias;
};

std::array<Layer, kLayers> layout() {
  std::array<Layer, kLayers> layers{};
  std::size_t at = 0;
  for (std::size_t l = 0; l < kLayers; ++l) {
    layers[l] = {kWidths[l], kWidths[l + 1], at, at + kWidths[l] * kWidths[l + 1]};
    at = layers[l].bias + layers[l].out;
  }
  return layers;
}

// Replaces the scores of one image by probabilities and returns the cross entropy of the right
// digit.
double softmax(float* scores, std::uint8_t digit) {
  const float largest = *std::max_element(scores, scores + kClasses);
  std::array<double, kClasses> powers{};
  double sum = 0.0;
  for (std::size_t k = 0; k < kClasses; ++k) sum += powers[k] = exponential(static_cast<double>(scores[k]) - largest);
  for (std::size_t k = 0; k < kClasses; ++k) scores[k] = static_cast<float>(powers[k] / sum);
  return -std::log(std::max(powers[digit] / sum, 1e-30));
}

}  // namespace

std::vector<Part> model_parts() {
  std::vector<Part> parts;
  const auto layers = layout();
  for (std::size_t l = 0; l < kLayers; ++l) {
    const Layer& layer = layers[l];
    const std::string name = "layer" + std::to_string(l + 1);
    const auto in = static_cast<std::int64_t>(layer.in);
    const auto out = static_cast<std::int64_t>(layer.out);
    parts.push_back({name + ".weight", {in, out}, layer.weight, layer.in * layer.out});
    parts.push_back({name + ".bias", {out}, layer.bias, layer.out});
  }
  return parts;
}

std::size_t parameter_count() { return layout().back().bias + kClasses; }

std::vector<float> initial_parameters(std::uint64_t seed) {
  std::vector<float> parameters(parameter_count(), 0.0F);
  Random random(seed);
  for (const Layer& layer : layout()) {
    const float range = std::sqrt(6.0F / static_cast<float>(layer.in));
    for (std::size_t k = 0; k < layer.in * layer.out; ++k) parameters[layer.weight + k] = random.symmetric() * range;
  }
  return parameters;
}

Model::Model(std::size_t batch) : batch_(batch) {
  std::size_t largest = 0;
  for (std::size_t l = 0; l <= kLayers; ++l) {
    activations_[l].resize(batch * kWidths[l]);
    errors_[l].resize(batch * kWidths[l]);
    if (l > 0) largest = std::max(largest, kWidths[l - 1] * kWidths[l]);
  }
  transposed_.resize(largest);
}

void Model::forward(std::span<const float> parameters, std::size_t images) {
  const auto layers = layout();
  for (std::size_t l = 0; l < kLayers; ++l) {
    const Layer& layer = layers[l];
    for (std::size_t image = 0; image < images; ++image) {
      const float* const in = &activations_[l][image * layer.in];
      float* const out = &activations_[l + 1][image * layer.out];
      std::copy_n(&parameters[layer.bias], layer.out, out);
      for (std::size_t i = 0; i < layer.in; ++i) {
        add_scaled(out, &parameters[layer.weight + i * layer.out], in[i], layer.out);
      }
      if (l + 1 < kLayers) {
        for (std::size_t o = 0; o < layer.out; ++o) out[o] = out[o] > 0.0F ? out[o] : 0.0F;
      }
    }
  }
}

float Model::add_gradients(std::span<const float> parameters, std::span<const Image* const> images,
                           std::span<float> gradients) {
  const auto layers = layout();
  std::fill(gradients.begin(), gradients.end(), 0.0F);
  for (std::size_t image = 0; image < images.size(); ++image) {
    std::copy(images[image]->pixels.begin(), images[image]->pixels.end(), &activations_[0][image * kPixels]);
  }
  forward(parameters, images.size());

  double loss = 0.0;
  for (std::size_t image = 0; image < images.size(); ++image) {
    float* const scores = &activations_[kLayers][image * kClasses];
    loss += softmax(scores, images[image]->digit);
    float* const error = &errors_[kLayers][image * kClasses];
    std::copy_n(scores, kClasses, error);
    error[images[image]->digit] -= 1.0F;
  }

  for (std::size_t l = kLayers; l-- > 0;) {
    const Layer& layer = layers[l];
    for (std::size_t i = 0; i < layer.in; ++i) {
      for (std::size_t o = 0; o < layer.out; ++o) {
        transposed_[o * layer.in + i] = parameters[layer.weight + i * layer.out + o];
      }
    }
    for (std::size_t image = 0; image < images.size(); ++image) {
      const float* const in = &activations_[l][image * layer.in];
      const float* const error = &errors_[l + 1][image * layer.out];
      for (std::size_t i = 0; i < layer.in; ++i)
        add_scaled(&gradients[layer.weight + i * layer.out], error, in[i], layer.out);
      add_scaled(&gradients[layer.bias], error, 1.0F, layer.out);
      if (l == 0) continue;
      float* const before = &errors_[l][image * layer.in];
      std::fill_n(before, layer.in, 0.0F);
      for (std::size_t o = 0; o < layer.out; ++o) add_scaled(before, &transposed_[o * layer.in], error[o], layer.in);
      for (std::size_t i = 0; i < layer.in; ++i) before[i] = in[i] > 0.0F ? before[i] : 0.0F;
    }
  }
  return static_cast<float>(loss);
}

double Model::accuracy(std::span<const float> parameters, std::span<const Image> images) {
  std::size_t right = 0;
  for (std::size_t begin = 0; begin < images.size(); begin += batch_) {
    const auto group = images.subspan(begin, std::min(batch_, images.size() - begin));
    for (std::size_t image = 0; image < group.size(); ++image) {
      std::copy(group[image].pixels.begin(), group[image].pixels.end(), &activations_[0][image * kPixels]);
    }
    forward(parameters, group.size());
    for (std::size_t image = 0; image < group.size(); ++image) {
      const float* const scores = &activations_[kLayers][image * kClasses];
      right += std::max_element(scores, scores + kClasses) - scores == group[image].digit;
    }
  }
  return static_cast<double>(right) / static_cast<double>(images.size());
}

}  // namespace digits
