#include "worker-sidecar/protocol/frame.h"

#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "common/base/assert.h"
#include "common/base/format.h"

namespace rekindle {
namespace {

constexpr std::size_t kHeaderChecksumOffset = 28;
constexpr std::uint32_t kGoesOn = 1u << 31;  // in body_bytes

template <typename Number>
void put(std::string& out, Number value) {
  for (std::size_t i = 0; i < sizeof(Number); ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

template <typename Number>
Number get(std::string_view bytes, std::size_t offset) {
  Number value = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    value = static_cast<Number>(value | static_cast<Number>(static_cast<unsigned char>(bytes[offset + i])) << (8 * i));
  }
  return value;
}

}  // namespace

std::string_view explain(FrameFault fault) {
  switch (fault) {
    case FrameFault::wrong_magic:
      return "the other end does not speak Rekindle's frames; check what is connected to this socket";
    case FrameFault::wrong_header_checksum:
      return "a frame's header was damaged on the way; the connection is opened again";
    case FrameFault::unsupported_version:
      return "the other end speaks another major version; use the same release of library, sidecar and hook";
    case FrameFault::no_kind: return "a frame has no kind; the other end has a bug, use a released version";
    case FrameFault::body_too_large:
      return "a frame is larger than 1 MiB; the other end has a bug or another release, use the same one of library, "
             "sidecar and hook";
    case FrameFault::wrong_sequence: return "a frame is missing or came twice; the connection is opened again";
    case FrameFault::wrong_body_checksum:
      return "a frame's body was damaged on the way; the connection is opened again";
    case FrameFault::broken_message:
      return "the frames of a long message do not belong together; the other end has a bug, use a released version";
    case FrameFault::message_too_large:
      return "a message is larger than is possible at this moment; the other end has a bug or registers too many "
             "tensors";
  }
  return "unknown fault";
}

std::optional<FrameFault> find_fault(const FrameHeader& header, std::uint32_t body_bytes_max) {
  if (header.version >> 8 != kFrameVersion >> 8) return FrameFault::unsupported_version;
  if (header.kind == 0) return FrameFault::no_kind;
  if (header.body_bytes > body_bytes_max) return FrameFault::body_too_large;
  if (header.sequence == 0) return FrameFault::wrong_sequence;
  // So a body has one spelling, and frames that bring nothing cannot go on for ever.
  if (header.goes_on && header.body_bytes != body_bytes_max) return FrameFault::broken_message;
  return std::nullopt;
}

std::uint32_t frame_checksum(std::string_view bytes) {
  return static_cast<std::uint32_t>(XXH3_64bits(bytes.data(), bytes.size()));
}

std::string encode_frame(std::uint16_t kind, std::uint32_t attempt, std::uint64_t sequence, std::string_view body,
                         bool goes_on, std::uint32_t body_bytes_max) {
  RK_ASSERT(goes_on ? body.size() == body_bytes_max : body.size() <= body_bytes_max);
  std::string out;
  out.reserve(kFrameHeaderBytes + body.size());
  put(out, kFrameMagic);
  put(out, kFrameVersion);
  put(out, kind);
  put(out, static_cast<std::uint32_t>(body.size()) | (goes_on ? kGoesOn : 0u));
  put(out, attempt);
  put(out, sequence);
  put(out, frame_checksum(body));
  put(out, frame_checksum(out));
  out.append(body);
  return out;
}

std::expected<FrameHeader, FrameFault> decode_frame_header(std::string_view bytes, std::uint32_t body_bytes_max) {
  RK_ASSERT(bytes.size() >= kFrameHeaderBytes);
  if (get<std::uint32_t>(bytes, 0) != kFrameMagic) return std::unexpected(FrameFault::wrong_magic);
  if (get<std::uint32_t>(bytes, kHeaderChecksumOffset) != frame_checksum(bytes.substr(0, kHeaderChecksumOffset))) {
    return std::unexpected(FrameFault::wrong_header_checksum);
  }
  const auto body_bytes = get<std::uint32_t>(bytes, 8);
  const FrameHeader header{
      .version = get<std::uint16_t>(bytes, 4),
      .kind = get<std::uint16_t>(bytes, 6),
      .body_bytes = body_bytes & ~kGoesOn,
      .goes_on = (body_bytes & kGoesOn) != 0,
      .attempt = get<std::uint32_t>(bytes, 12),
      .sequence = get<std::uint64_t>(bytes, 16),
      .body_checksum = get<std::uint32_t>(bytes, 24),
  };
  if (const auto fault = find_fault(header, body_bytes_max)) return std::unexpected(*fault);
  return header;
}

Result<std::string> FrameEncoder::encode(std::uint16_t kind, std::uint32_t attempt, std::string_view body) {
  const std::uint32_t full = limits_.frame_body_bytes_max;
  if (body.size() > limits_.message_bytes_max) {
    return fail(
        ErrorCode::invalid_input,
        format("a message of kind {} takes {} bytes, and at most {} can be sent; register fewer, larger tensors "
               "or use shorter names",
               kind, body.size(), limits_.message_bytes_max));
  }
  std::string out;
  out.reserve(body.size() + kFrameHeaderBytes * (1 + body.size() / full));
  for (; body.size() > full; body.remove_prefix(full)) {
    out += encode_frame(kind, attempt, ++sequence_, body.substr(0, full), true, full);
  }
  return out += encode_frame(kind, attempt, ++sequence_, body, false, full);
}

void FrameDecoder::feed(std::string_view bytes) {
  if (fault_) return;
  if (begin_ > 0) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  buffer_.append(bytes);
}

std::unexpected<FrameFault> FrameDecoder::refuse(FrameFault fault) {
  fault_ = fault;
  buffer_.clear();
  begin_ = 0;
  message_.reset();
  return std::unexpected(fault);
}

std::optional<FrameFault> FrameDecoder::find_message_fault(const FrameHeader& header) const {
  std::size_t bytes = header.body_bytes;
  if (message_) {
    const FrameHeader& before = message_->header;
    if (header.kind != before.kind || header.attempt != before.attempt || header.body_bytes == 0)
      return FrameFault::broken_message;
    bytes += message_->body.size();
  }
  // What goes on has one more byte at least.
  if (bytes + (header.goes_on ? 1 : 0) > limits_.message_bytes_max) return FrameFault::message_too_large;
  return std::nullopt;
}

std::expected<std::optional<Frame>, FrameFault> FrameDecoder::next() {
  if (fault_) return std::unexpected(*fault_);
  for (;;) {
    const std::string_view rest = std::string_view(buffer_).substr(begin_);
    if (rest.size() < kFrameHeaderBytes) {
      // Another protocol that sends a few bytes and waits is refused at once.
      const std::size_t known = std::min<std::size_t>(rest.size(), 4);
      for (std::size_t i = 0; i < known; ++i) {
        if (static_cast<unsigned char>(rest[i]) != (kFrameMagic >> (8 * i) & 0xff))
          return refuse(FrameFault::wrong_magic);
      }
      return std::nullopt;
    }
    const auto header = decode_frame_header(rest, limits_.frame_body_bytes_max);
    if (!header) return refuse(header.error());
    if (header->sequence != sequence_ + 1) return refuse(FrameFault::wrong_sequence);
    if (const auto fault = find_message_fault(*header)) return refuse(*fault);
    if (rest.size() - kFrameHeaderBytes < header->body_bytes) return std::nullopt;
    const std::string_view body = rest.substr(kFrameHeaderBytes, header->body_bytes);
    if (frame_checksum(body) != header->body_checksum) return refuse(FrameFault::wrong_body_checksum);
    sequence_ = header->sequence;
    if (!message_) message_.emplace();
    message_->header = *header;
    message_->body += body;
    begin_ += kFrameHeaderBytes + header->body_bytes;
    if (begin_ == buffer_.size()) {
      buffer_.clear();
      begin_ = 0;
    }
    if (!header->goes_on) return std::exchange(message_, std::nullopt);
  }
}

}  // namespace rekindle
