#include "docs/examples/digits/model.h"

#include <gtest/gtest.h>

#include "docs/examples/digits/random.h"

namespace digits {
namespace {

std::vector<Image> some_images(std::size_t count) {
  Random random(11);
  std::vector<Image> images(count);
  for (Image& image : images) {
    for (float& pixel : image.pixels) pixel = static_cast<float>(random.below(17)) / 16.0F;
    image.digit = static_cast<std::uint8_t>(random.below(10));
  }
  return images;
}

std::vector<const Image*> addresses(const std::vector<Image>& images) {
  std::vector<const Image*> result;
  for (const Image& image : images) result.push_back(&image);
  return result;
}

TEST(Model, PartsLieBehindEachOtherWithoutGaps) {
  std::size_t at = 0;
  for (const Part& part : model_parts()) {
    EXPECT_EQ(part.begin, at) << part.name;
    at += part.elements;
  }
  EXPECT_EQ(at, parameter_count());
}

TEST(Model, GradientIsTheSlopeOfTheLoss) {
  const std::vector<Image> images = some_images(4);
  std::vector<float> parameters = initial_parameters(3);
  std::vector<float> gradients(parameters.size());
  std::vector<float> ignored(parameters.size());
  Model model(4);
  model.add_gradients(parameters, addresses(images), gradients);
  constexpr float kStep = 1e-2F;
  for (const Part& part : model_parts()) {
    // The steepest place of the part, where the slope stands out of float32's noise.
    std::size_t place = part.begin;
    for (std::size_t k = part.begin; k < part.begin + part.elements; ++k) {
      if (std::abs(gradients[k]) > std::abs(gradients[place])) place = k;
    }
    const float before = parameters[place];
    parameters[place] = before + kStep;
    const float above = model.add_gradients(parameters, addresses(images), ignored);
    parameters[place] = before - kStep;
    const float below = model.add_gradients(parameters, addresses(images), ignored);
    parameters[place] = before;
    const float slope = (above - below) / (2 * kStep);
    EXPECT_NEAR(slope, gradients[place], 0.02F * std::abs(gradients[place])) << part.name;
  }
}

TEST(Model, SameInputGivesTheSameBytes) {
  const std::vector<Image> images = some_images(16);
  const std::vector<float> parameters = initial_parameters(3);
  std::vector<float> first(parameters.size());
  std::vector<float> second(parameters.size());
  Model fresh(16);
  fresh.add_gradients(parameters, addresses(images), first);
  Model used(16);
  used.accuracy(parameters, some_images(9));
  used.add_gradients(parameters, addresses(images), second);
  EXPECT_EQ(first, second);
}

}  // namespace
}  // namespace digits
