#include "worker-sidecar/sidecar/cluster/ready.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "common/base/format.h"
#include "worker-sidecar/protocol/frame.h"
#include "worker-sidecar/protocol/local_message.h"
#include "worker-sidecar/sidecar/unix_link.h"

namespace rekindle::sidecar {

std::string find_why_not_ready(const std::string& socket_path, Duration patience) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof address.sun_path) return format("the path {} is too long for a socket", socket_path);
  std::memcpy(address.sun_path, socket_path.c_str(), socket_path.size() + 1);
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval limit{.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(patience).count(), .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return format("no sidecar answers on {}: {}", socket_path, std::strerror(errno));
  }
  const EncodedMessage question = encode_local_message(StatusMessage{});
  const std::string bytes = encode_frame(question.kind, 0, 1, question.body);
  if (::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size()))
    return "the sidecar closed the connection";
  FrameDecoder decoder;
  while (true) {
    const auto frame = decoder.next();
    if (!frame) return std::string(explain(frame.error()));
    if (*frame) return {};
    std::array<char, 4096> buffer{};
    const ssize_t got = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (got <= 0) return "the sidecar did not answer";
    decoder.feed({buffer.data(), static_cast<std::size_t>(got)});
  }
}

}  // namespace rekindle::sidecar
