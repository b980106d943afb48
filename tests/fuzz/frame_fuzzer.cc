// The stream of frames, as it comes and with its checksums put right, so that mutations get past
// them. Where the stream is cut into pieces changes nothing, and no more is kept than what was fed.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "tests/fuzz/support/fuzzing.h"
#include "worker-sidecar/protocol/frame.h"

namespace rekindle {
namespace {

// Frames of the wire's size would make the fuzzer copy and hash megabytes for each input that has a
// long message; the rules are the same at any size. long_message_test.cc has the wire's.
constexpr std::uint32_t kFull = 256;
// Enough for messages of several frames; inputs stay small.
constexpr FrameLimits kLimits{.message_bytes_max = 2 * kFull, .frame_body_bytes_max = kFull};

struct Heard {
  std::vector<Frame> frames;
  std::optional<FrameFault> fault;

  bool operator==(const Heard&) const = default;
};

Heard hear(std::string_view stream, std::size_t portion) {
  Heard heard;
  FrameDecoder decoder(kLimits);
  std::size_t fed = 0;
  while (fed < stream.size() && !heard.fault) {
    const std::string_view part = stream.substr(fed, portion);
    decoder.feed(part);
    fed += part.size();
    for (;;) {
      auto frame = decoder.next();
      if (!frame) {
        heard.fault = frame.error();
        RK_ASSERT(!explain(frame.error()).empty());
        break;
      }
      if (!frame->has_value()) break;
      heard.frames.push_back(std::move(**frame));
    }
    RK_ASSERT(decoder.waiting_bytes() <= kFrameHeaderBytes + kFull + kLimits.message_bytes_max + part.size());
    RK_ASSERT(decoder.waiting_bytes() <= fed);
  }
  return heard;
}

// What these messages take on the wire.
std::size_t bytes_of(const Heard& heard) {
  std::size_t bytes = 0;
  for (const Frame& message : heard.frames) {
    const std::size_t frames = std::max<std::size_t>(1, (message.body.size() + kFull - 1) / kFull);
    bytes += message.body.size() + frames * kFrameHeaderBytes;
  }
  return bytes;
}

void check_stream(std::string_view stream, std::size_t portion) {
  const Heard whole = hear(stream, stream.size() + 1);
  RK_ASSERT(whole == hear(stream, portion));
  // Every message has one spelling only, also one of several frames.
  std::size_t position = 0;
  FrameEncoder encoder(kLimits);
  for (const Frame& message : whole.frames) {
    RK_ASSERT(message.header.kind != 0 && !message.header.goes_on && message.body.size() <= kLimits.message_bytes_max);
    const std::string again = *encoder.encode(message.header.kind, message.header.attempt, message.body);
    RK_ASSERT(position + again.size() <= stream.size());
    const bool in_one = message.header.body_bytes == message.body.size();
    // Of a long one the other frames may have had another minor version.
    if (in_one && message.header.version == kFrameVersion) RK_ASSERT(stream.substr(position, again.size()) == again);
    position += again.size();
  }
}

struct Said {
  std::string stream;
  bool broken = false;  // frames that no encoder would have sent so
};

// The input's bytes as frames one behind the other: two bytes of kind, four of attempt, one of
// length, the body. A length of 255 goes on, whatever follows.
Said framed(std::string_view input) {
  Said said;
  std::uint64_t sequence = 0;
  std::optional<std::pair<std::uint16_t, std::uint32_t>> before;  // of the frame that goes on
  std::size_t full = 0;
  while (!input.empty()) {
    // none has kind 0
    const auto kind = std::max<std::uint16_t>(take_number<std::uint16_t>(input), 1);
    const auto attempt = take_number<std::uint32_t>(input);
    const std::size_t bytes = take_number<std::uint8_t>(input);
    std::string body(input.substr(0, bytes));
    input.remove_prefix(body.size());
    const bool goes_on = bytes == 0xff;
    if (goes_on) body.resize(kFull, 'x');
    const std::pair here(kind, attempt);
    said.broken = said.broken || (before && (*before != here || body.empty()));
    full = before ? full + 1 : 0;
    said.broken = said.broken || full * kFull + body.size() + (goes_on ? 1 : 0) > kLimits.message_bytes_max;
    before = goes_on ? std::optional(here) : std::nullopt;
    said.stream += encode_frame(kind, attempt, ++sequence, body, goes_on, kFull);
  }
  return said;
}

}  // namespace
}  // namespace rekindle

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace rekindle;
  std::string_view input = text_of(data, bytes);
  const std::size_t portion = 1 + take_number<std::uint8_t>(input);
  check_stream(input, portion);
  const std::size_t damaged = take_number<std::uint16_t>(input);
  auto [stream, broken] = framed(input);
  check_stream(stream, portion);
  RK_ASSERT(hear(stream, stream.size() + 1).fault.has_value() == broken);
  if (!broken && damaged < stream.size()) {
    const Heard before = hear(stream, stream.size());
    stream[damaged] = static_cast<char>(stream[damaged] ^ 1);
    const Heard after = hear(stream, stream.size());
    // No frame that was damaged is taken for one: what is heard is the beginning of what was said.
    RK_ASSERT(!before.fault && (after.frames.size() < before.frames.size() || damaged >= bytes_of(before)));
    RK_ASSERT(std::equal(after.frames.begin(), after.frames.end(), before.frames.begin()));
  }
  return 0;
}
