#include "worker-sidecar/runtime/src/say.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace rekindle::runtime {

void say(std::string_view message) noexcept {
  constexpr std::string_view kName = "rekindle: ";
  std::array<char, 1024> line{};
  const std::size_t length = std::min(message.size(), line.size() - kName.size() - 1);
  std::memcpy(line.data(), kName.data(), kName.size());
  std::memcpy(line.data() + kName.size(), message.data(), length);
  line[kName.size() + length] = '\n';
  // A pipe that can be written takes this many bytes at once; one that is full loses the message
  // rather than stop training.
  pollfd error_output{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&error_output, 1, 0) != 1 || (error_output.revents & POLLOUT) == 0) return;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), kName.size() + length + 1);
}

}  // namespace rekindle::runtime
