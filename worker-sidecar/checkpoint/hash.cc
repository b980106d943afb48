#include "worker-sidecar/checkpoint/hash.h"

#include <xxhash.h>

#include <algorithm>
#include <cstdint>

namespace rekindle {
namespace {

void append_hex(std::string& text, std::uint64_t value) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[value >> shift & 0xf];
}

std::string to_hex(XXH128_hash_t hash) {
  std::string text;
  text.reserve(32);
  append_hex(text, hash.high64);
  append_hex(text, hash.low64);
  return text;
}

}  // namespace

std::string hash_of(std::string_view bytes) { return to_hex(XXH3_128bits(bytes.data(), bytes.size())); }

std::string chunk_hash_of(std::string_view bytes) {
  std::string text;
  append_hex(text, XXH3_64bits(bytes.data(), bytes.size()));
  return text;
}

bool is_hash_text(std::string_view text, std::size_t digits) {
  return text.size() == digits && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

struct HashStream::State {
  XXH3_state_t value;
};

HashStream::HashStream() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->value); }
HashStream::~HashStream() = default;
HashStream::HashStream(HashStream&&) noexcept = default;
HashStream& HashStream::operator=(HashStream&&) noexcept = default;

void HashStream::update(const void* data, std::size_t bytes) { XXH3_128bits_update(&state_->value, data, bytes); }

std::string HashStream::digest() const { return to_hex(XXH3_128bits_digest(&state_->value)); }

}  // namespace rekindle
