// The stream of frames, as it comes and with its checksums put right, so that mutations get past them. Where the stream is cut into pieces changes nothing, and no
// more is kept than what was fed.
#include <algorithm>
#include <vector>

#include "tests/fuzz/support/fuzzing.h"
#include "worker-sidecar/protocol/frame.h"

namespace rekindle {
namespace {

struct Heard {
  std::vector<Frame> frames;
  std::optional<FrameFault> fault;

  bool operator==(const Heard&) const = default;
};

Heard hear(std::string_view stream, std::size_t portion) {
  Heard heard;
  FrameDecoder decoder;
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
    RK_ASSERT(decoder.waiting_bytes() <= kFrameHeaderBytes + kFrameBodyBytesMax + part.size());
    RK_ASSERT(decoder.waiting_bytes() <= fed);
  }
  return heard;
}

void check_stream(std::string_view stream, std::size_t portion) {
  const Heard whole = hear(stream, stream.size() + 1);
  RK_ASSERT(whole == hear(stream, portion));
  std::size_t position = 0;
  for (std::size_t i = 0; i < whole.frames.size(); ++i) {
    const Frame& frame = whole.frames[i];
    RK_ASSERT(frame.header.kind != 0 && frame.header.sequence == i + 1 && frame.header.body_bytes == frame.body.size());
    const std::string again = encode_frame(frame.header.kind, frame.header.attempt, frame.header.sequence, frame.body);
    RK_ASSERT(position + again.size() <= stream.size());
    if (frame.header.version == kFrameVersion) RK_ASSERT(stream.substr(position, again.size()) == again);
    position += again.size();
  }
}

// The input's bytes as frames one behind the other: two bytes of kind, four of attempt, one of length, the body.
std::string framed(std::string_view input) {
  FrameEncoder encoder;
  std::string stream;
  while (!input.empty()) {
    const auto kind = std::max<std::uint16_t>(take_number<std::uint16_t>(input), 1);  // none has kind 0
    const auto attempt = take_number<std::uint32_t>(input);
    const std::size_t bytes = take_number<std::uint8_t>(input);
    const std::string_view body = input.substr(0, bytes);
    input.remove_prefix(body.size());
    stream += encoder.encode(kind, attempt, body);
  }
  return stream;
}

}  // namespace
}  // namespace rekindle

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace rekindle;
  std::string_view input = text_of(data, bytes);
  const std::size_t portion = 1 + take_number<std::uint8_t>(input);
  check_stream(input, portion);
  const std::size_t damaged = take_number<std::uint16_t>(input);
  std::string stream = framed(input);
  check_stream(stream, portion);
  if (damaged < stream.size()) {
    const Heard before = hear(stream, stream.size());
    stream[damaged] = static_cast<char>(stream[damaged] ^ 1);
    const Heard after = hear(stream, stream.size());
    // No frame that was damaged is taken for one: what is heard is the beginning of what was said.
    RK_ASSERT(!before.fault && after.frames.size() < before.frames.size());
    RK_ASSERT(std::equal(after.frames.begin(), after.frames.end(), before.frames.begin()));
  }
  return 0;
}
