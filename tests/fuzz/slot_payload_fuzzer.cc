// A slot of the control block, which the training process may have overwritten: number of entries,
// bytes claimed, payload. The checksum is made to fit, so that mutations get past it; a wrong one
// is tried as well.
#include <xxhash.h>

#include "tests/fuzz/support/fuzzing.h"
#include "worker-sidecar/sidecar/control_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace rekindle;
  using namespace rekindle::sidecar;
  std::string_view payload = text_of(data, bytes);
  const auto entries = take_number<std::uint32_t>(payload);
  const auto unused_bytes = take_number<std::uint16_t>(payload);
  const std::uint64_t claimed =
      unused_bytes > payload.size() ? payload.size() + unused_bytes : payload.size() - unused_bytes;
  SlotHeader header{
      .step = 7, .attempt = 1, .bytes = static_cast<std::uint32_t>(claimed), .entries = entries, .checksum = 0};
  if (claimed <= payload.size()) header.checksum = XXH3_64bits(payload.data(), claimed);
  const Result<CapturedState> state = decode_slot_payload(header, payload);
  if (state) {
    RK_ASSERT(state->step == 7 && state->attempt == 1 && state->entries.size() == entries);
    std::string again;
    for (const auto& [name, value] : state->entries) {
      const auto name_bytes = static_cast<std::uint16_t>(name.size());
      const auto value_bytes = static_cast<std::uint64_t>(value.size());
      again.append(reinterpret_cast<const char*>(&name_bytes), sizeof name_bytes).append(name);
      again.append(reinterpret_cast<const char*>(&value_bytes), sizeof value_bytes).append(value);
    }
    RK_ASSERT(again == payload.substr(0, claimed));
  } else {
    expect_sentence(state.error());
  }
  header.checksum ^= 1;
  RK_ASSERT(!decode_slot_payload(header, payload).has_value());
  return 0;
}
