#include "worker-sidecar/checkpoint/hash.h"

#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <utility>

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
  return text.size() == digits &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
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

struct ChunkHashes::State {
  XXH3_state_t value;
  std::size_t chunk_bytes = 0;
  std::size_t filled = 0;
  std::vector<std::string> hashes;

  void end_chunk() {
    std::string text;
    append_hex(text, XXH3_64bits_digest(&value));
    hashes.push_back(std::move(text));
    XXH3_64bits_reset(&value);
    filled = 0;
  }
};

ChunkHashes::ChunkHashes(std::size_t chunk_bytes) : state_(std::make_unique<State>()) {
  state_->chunk_bytes = chunk_bytes;
  XXH3_64bits_reset(&state_->value);
}
ChunkHashes::~ChunkHashes() = default;
ChunkHashes::ChunkHashes(ChunkHashes&&) noexcept = default;
ChunkHashes& ChunkHashes::operator=(ChunkHashes&&) noexcept = default;

void ChunkHashes::update(const void* data, std::size_t bytes) {
  const auto* position = static_cast<const char*>(data);
  while (bytes > 0) {
    const std::size_t part = std::min(bytes, state_->chunk_bytes - state_->filled);
    XXH3_64bits_update(&state_->value, position, part);
    state_->filled += part;
    if (state_->filled == state_->chunk_bytes) state_->end_chunk();
    position += part;
    bytes -= part;
  }
}

std::vector<std::string> ChunkHashes::take() {
  if (state_->filled > 0) state_->end_chunk();
  return std::move(state_->hashes);
}

}  // namespace rekindle
