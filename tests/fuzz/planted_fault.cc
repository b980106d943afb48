// A target that breaks, each way on one input: that the stage `sanitizers` notices shows that its
// clean runs could have failed.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace {

volatile std::uint8_t seen;
volatile bool forever = true;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text == "overread") seen = data[size];
  if (text == "memory") seen = std::vector<std::uint8_t>(65 << 20, 1)[size];
  // Not the kept input itself: one that the fuzzer has to find.
  if (text.starts_with("grow") && text.size() > 4) __builtin_trap();
  while (text == "endless" && forever) {
  }
  return 0;
}
