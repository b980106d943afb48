// Reads HTTP messages from a Connection: a head, then its body piece by piece. Bytes behind a
// message stay for the next one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/base/instant.h"
#include "common/net/connection.h"
#include "common/net/http_wire.h"

namespace rekindle {

class HttpReader {
 public:
  explicit HttpReader(Connection& connection) : connection_(connection) {}

  // A whole head, the empty line included. After deadline_exceeded it can be called again. Empty
  // text: the stream ended properly before its first byte. exhausted: longer than `bytes_max`.
  // `silence` bounds the time between two arrivals.
  Result<std::string> read_head(std::size_t bytes_max, Duration silence, Instant deadline, int interrupt);

  void begin_body(BodyFraming framing);

  // The next bytes of the body, valid until the next call; empty at its end. After
  // deadline_exceeded it can be called again.
  Result<std::string_view> next_piece(Instant deadline, int interrupt);

  // Puts the next bytes behind `body`; true at the body's end. exhausted: longer than `bytes_max`.
  // After deadline_exceeded it can be called again.
  Result<bool> append_piece(std::string& body, std::size_t bytes_max, Instant deadline, int interrupt);

  // The whole body. exhausted: longer than `bytes_max`.
  Result<std::string> read_body(std::size_t bytes_max, Duration silence, Instant deadline, int interrupt);

  bool body_ended() const { return ended_; }
  bool has_bytes() const { return !buffer_.empty() || connection_.has_buffered(); }
  // A byte of the message that is being read has arrived.
  bool has_begun() const { return begun_; }

 private:
  Result<std::size_t> fill(Instant deadline, int interrupt);

  Connection& connection_;
  std::string buffer_;  // received and not yet used
  std::string piece_;
  BodyFraming framing_;
  ChunkedDecoder chunks_;
  bool ended_ = true;
  bool begun_ = false;
};

}  // namespace rekindle
