#include "data.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <numeric>
#include <utility>

#include "random.h"

namespace digits {
namespace {

constexpr std::uint64_t kSplitSalt = 0x5370'6c69'7400'0001;
constexpr std::uint64_t kEpochSalt = 0x4570'6f63'6800'0001;

void shuffle(std::vector<std::uint32_t>& order, Random random) {
  std::iota(order.begin(), order.end(), 0U);
  for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
}

bool read_image(const std::string& line, Image& image) {
  const char* at = line.data();
  const char* const end = at + line.size();
  for (std::size_t field = 0; field <= kPixels; ++field) {
    int value = -1;
    const auto [after, fault] = std::from_chars(at, end, value);
    const bool is_last = field == kPixels;
    if (fault != std::errc{} || value < 0 || value > (is_last ? 9 : 16)) return false;
    if (is_last) {
      image.digit = static_cast<std::uint8_t>(value);
      return after == end || *after == '\r';
    }
    if (after == end || *after != ',') return false;
    image.pixels[field] = static_cast<float>(value) / 16.0F;
    at = after + 1;
  }
  return false;
}

}  // namespace

Result<Dataset> load_dataset(const std::string& path, std::uint64_t seed) {
  std::ifstream file(path);
  if (!file)
    return failure("cannot read the data " + path + ": " + std::strerror(errno) + "; give its place with --data");
  std::vector<Image> images;
  for (std::string line; std::getline(file, line);) {
    if (!read_image(line, images.emplace_back())) {
      return failure("line " + std::to_string(images.size()) + " of " + path +
                     " is not 64 pixels from 0 to 16 and a digit, separated by commas; fetch the data anew");
    }
  }
  if (images.size() < 100)
    return failure(path + " holds only " + std::to_string(images.size()) + " images; fetch it anew");

  std::vector<std::uint32_t> order(images.size());
  shuffle(order, Random(seed ^ kSplitSalt));
  Dataset dataset;
  for (std::size_t place = 0; place < order.size(); ++place) {
    (place < order.size() / 5 ? dataset.held_out : dataset.training).push_back(images[order[place]]);
  }
  return dataset;
}

Sampler::Sampler(std::uint64_t seed, std::size_t images, std::size_t global_batch)
    : seed_(seed), images_(images), global_batch_(global_batch), order_(images) {}

std::size_t Sampler::image_at(std::uint64_t step, std::size_t place) {
  const std::uint64_t draw = (step - 1) * global_batch_ + place;
  order_epoch(draw / images_);
  return order_[draw % images_];
}

void Sampler::order_epoch(std::uint64_t epoch) {
  if (epoch == ordered_epoch_) return;
  shuffle(order_, Random(Random(seed_ ^ kEpochSalt ^ epoch * 0xD1B54A32D192ED03ULL).next()));
  ordered_epoch_ = epoch;
}

}  // namespace digits
