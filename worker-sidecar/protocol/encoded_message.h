// A message ready to be framed.
#pragma once

#include <cstdint>
#include <string>

namespace rekindle {

// `kind` is the number that stands in the message's struct (kKind) and in docs/formats/frames.md; a
// number is never given to something else. `body` is one JSON object.
struct EncodedMessage {
  std::uint16_t kind = 0;
  std::string body;

  bool operator==(const EncodedMessage&) const = default;
};

}  // namespace rekindle
