// One frame of the two wires, rank to sidecar and sidecar to sidecar. Kinds and bodies:
// docs/formats/frames.md. Pure.
//
//   offset size field
//        0    4 magic            "RKF1"
//        4    2 version          major << 8 | minor
//        6    2 kind             retired numbers stay reserved
//        8    4 body_bytes       of this frame; bit 31: the message goes on in the next frame
//       12    4 attempt          0 before it is known
//       16    8 sequence         from 1, by one, per direction of a connection
//       24    4 body_checksum    low 32 bits of xxh3_64 of the body
//       28    4 header_checksum  low 32 bits of xxh3_64 of bytes 0 to 27
//
// Little-endian, written field by field, so no padding and no byte order of a machine reaches the
// wire. Rejected: protobuf (the runtime links libc only), a length alone (a desynchronised stream
// must be noticed at the next header), CRC-32 (needs a table or an instruction; xxh3 is in the tree
// for the files).
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/enum_names.h"
#include "common/base/error.h"

namespace rekindle {

inline constexpr std::uint32_t kFrameMagic = 0x31464B52;  // "RKF1" in memory
inline constexpr std::uint16_t kFrameVersion = 0x0100;
inline constexpr std::size_t kFrameHeaderBytes = 32;
static_assert(4 + 2 + 2 + 4 + 4 + 8 + 4 + 4 == kFrameHeaderBytes);

// Of one frame. A peer that has not identified itself can make us keep no more than this and a
// header.
inline constexpr std::uint32_t kFrameBodyBytesMax = 1u << 20;
// Of a message, in one frame or several: 100,000 tensors with names of 150 bytes.
inline constexpr std::size_t kMessageBodyBytesMax = 32u << 20;

// What one direction of a connection may carry. Both sides use the same `frame_body_bytes_max`,
// since a message goes on exactly where a frame is full; another one than the wire's is for tests.
struct FrameLimits {
  std::size_t message_bytes_max = kMessageBodyBytesMax;
  std::uint32_t frame_body_bytes_max = kFrameBodyBytesMax;
};

// The decoded values; magic and checksum of the header are only on the wire.
struct FrameHeader {
  std::uint16_t version = kFrameVersion;
  std::uint16_t kind = 0;
  std::uint32_t body_bytes = 0;  // of this frame
  bool goes_on = false;          // the next frame has more of the same body
  std::uint32_t attempt = 0;
  std::uint64_t sequence = 0;
  std::uint32_t body_checksum = 0;

  bool operator==(const FrameHeader&) const = default;
};

// A whole message. `body` is that of all its frames, `header` that of the last one.
struct Frame {
  FrameHeader header;
  std::string body;

  bool operator==(const Frame&) const = default;
};

// Why a connection is ended, in the order in which the rules are checked.
enum class FrameFault : std::uint8_t {
  wrong_magic,
  wrong_header_checksum,
  unsupported_version,
  no_kind,
  body_too_large,
  wrong_sequence,
  wrong_body_checksum,
  broken_message,
  message_too_large,
};

// For logs.
constexpr auto enum_names(FrameFault) {
  return std::to_array<EnumName<FrameFault>>({
      {FrameFault::wrong_magic, "wrong_magic"},
      {FrameFault::wrong_header_checksum, "wrong_header_checksum"},
      {FrameFault::unsupported_version, "unsupported_version"},
      {FrameFault::no_kind, "no_kind"},
      {FrameFault::body_too_large, "body_too_large"},
      {FrameFault::wrong_sequence, "wrong_sequence"},
      {FrameFault::wrong_body_checksum, "wrong_body_checksum"},
      {FrameFault::broken_message, "broken_message"},
      {FrameFault::message_too_large, "message_too_large"},
  });
}

// A sentence for people that says what to do.
std::string_view explain(FrameFault fault);

// The first rule that decoded values break; empty when none. The sequence needs the connection's
// history: FrameDecoder.
std::optional<FrameFault> find_fault(const FrameHeader& header, std::uint32_t body_bytes_max = kFrameBodyBytesMax);

std::uint32_t frame_checksum(std::string_view bytes);

// Exactly the bytes of one frame on the wire. A body over `body_bytes_max`, or one that goes on and
// does not fill its frame, is our own bug: FrameEncoder splits.
std::string encode_frame(std::uint16_t kind, std::uint32_t attempt, std::uint64_t sequence, std::string_view body,
                         bool goes_on = false, std::uint32_t body_bytes_max = kFrameBodyBytesMax);

// `bytes` are at least kFrameHeaderBytes.
std::expected<FrameHeader, FrameFault> decode_frame_header(std::string_view bytes,
                                                           std::uint32_t body_bytes_max = kFrameBodyBytesMax);

// Numbers the frames of one direction of a connection.
class FrameEncoder {
 public:
  explicit FrameEncoder(FrameLimits limits = {}) : limits_(limits) {}

  // One message, in as many frames as it takes. invalid_input for a body over the limit, and no
  // number is used up.
  Result<std::string> encode(std::uint16_t kind, std::uint32_t attempt, std::string_view body);

 private:
  FrameLimits limits_;
  std::uint64_t sequence_ = 0;
};

// Cuts a stream of bytes into messages: feed what has arrived, then next() until it is empty. Keeps
// an incomplete tail: at most one frame beyond what was fed, and the frames of one message, up to
// the limit. After a fault the stream has no meaning any more: next() repeats the fault, feed() is
// ignored.
class FrameDecoder {
 public:
  explicit FrameDecoder(FrameLimits limits = {}) : limits_(limits) {}

  void feed(std::string_view bytes);
  std::expected<std::optional<Frame>, FrameFault> next();

  // From the next frame on: who is on the other side is known now.
  void set_message_bytes_max(std::size_t bytes) { limits_.message_bytes_max = bytes; }

  // For tests: what is kept is bounded.
  std::size_t waiting_bytes() const { return buffer_.size() - begin_ + (message_ ? message_->body.size() : 0); }

 private:
  std::unexpected<FrameFault> refuse(FrameFault fault);
  // The first rule of messages in several frames that this one breaks.
  std::optional<FrameFault> find_message_fault(const FrameHeader& header) const;

  FrameLimits limits_;
  std::string buffer_;
  std::size_t begin_ = 0;
  std::uint64_t sequence_ = 0;
  std::optional<Frame> message_;  // has begun and goes on
  std::optional<FrameFault> fault_;
};

}  // namespace rekindle
