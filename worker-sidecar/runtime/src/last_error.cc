#include "worker-sidecar/runtime/src/last_error.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace rekindle::runtime {
namespace {

// A plain array: no destructor that would run at the end of a thread after the library has been
// unloaded.
thread_local std::array<char, kLastErrorBytesMax> message_of_thread{};

}  // namespace

const char* last_error() noexcept { return message_of_thread.data(); }

rk_status remember_error(rk_status status, std::string_view message) noexcept {
  constexpr std::string_view kCut = " ...";
  std::array<char, kLastErrorBytesMax>& text = message_of_thread;
  const bool fits = message.size() < text.size();
  const std::size_t length = fits ? message.size() : text.size() - 1 - kCut.size();
  std::memcpy(text.data(), message.data(), length);
  std::size_t end = length;
  if (!fits) {
    // Not in the middle of a UTF-8 character.
    while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xC0) == 0x80) --end;
    std::memcpy(text.data() + end, kCut.data(), kCut.size());
    end += kCut.size();
  }
  text[end] = '\0';
  return status;
}

}  // namespace rekindle::runtime
