// The hashes of the checkpoint format: xxh3_128 over whole files and manifests, xxh3_64 over
// chunks, both as lower-case hex. They find damage, not forgery. Pure.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rekindle {

// 32 hex digits.
std::string hash_of(std::string_view bytes);

// 16 hex digits.
std::string chunk_hash_of(std::string_view bytes);

// True for exactly `digits` lower-case hex digits.
bool is_hash_text(std::string_view text, std::size_t digits = 32);

// The same as hash_of over bytes that come in parts.
class HashStream {
 public:
  HashStream();
  ~HashStream();
  HashStream(HashStream&&) noexcept;
  HashStream& operator=(HashStream&&) noexcept;

  void update(const void* data, std::size_t bytes);

  // Hash of everything so far; more may follow.
  std::string digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// chunk_hash_of each `chunk_bytes` of bytes that come in parts; the last chunk may be shorter.
class ChunkHashes {
 public:
  explicit ChunkHashes(std::size_t chunk_bytes);
  ~ChunkHashes();
  ChunkHashes(ChunkHashes&&) noexcept;
  ChunkHashes& operator=(ChunkHashes&&) noexcept;

  void update(const void* data, std::size_t bytes);

  // Ends the last chunk and hands the hashes over.
  std::vector<std::string> take();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rekindle
