// Messages between sidecars. The first byte is the kind, the rest the body.
#include "tests/fuzz/support/message_properties.h"
#include "worker-sidecar/protocol/peer_message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace rekindle;
  std::string_view input = text_of(data, bytes);
  const auto kind = take_number<std::uint8_t>(input);
  check_message(kind, input, decode_peer_message, encode_peer_message);
  return 0;
}
