#include "worker-sidecar/storage/nonce.h"

#include <sys/random.h>

#include <string_view>

namespace rekindle {

std::uint64_t draw_number() {
  std::uint64_t value = 0;
  // getrandom with so few bytes neither blocks after boot nor comes back short; EINTR is all that
  // can happen.
  while (::getrandom(&value, sizeof value, 0) != sizeof value) {
  }
  return value;
}

std::string draw_nonce() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::string nonce;
  for (std::uint64_t value = draw_number(); nonce.size() < 10; value /= kLetters.size())
    nonce += kLetters[value % kLetters.size()];
  return nonce;
}

}  // namespace rekindle
