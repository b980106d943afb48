#include "worker-sidecar/hook/hook_call.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <optional>

#include "common/base/error.h"
#include "common/base/format.h"
#include "common/system/clock.h"
#include "worker-sidecar/protocol/frame.h"
#include "worker-sidecar/protocol/local_message.h"

namespace rekindle::hook {
namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(50);
// A sidecar that is restarted is asked again soon; one that hangs up at once is left in peace.
constexpr Duration kLongestPause = std::chrono::seconds(1);

timespec to_timespec(Duration duration) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(duration);
  return {.tv_sec = seconds.count(), .tv_nsec = (duration - seconds).count()};
}

void pause_until(Instant until, Duration longest) {
  const Duration left = std::min(longest, until - monotonic_now());
  if (left <= Duration::zero()) return;
  const timespec pause = to_timespec(left);
  ::nanosleep(&pause, nullptr);
}

class Connection {
 public:
  Connection() = default;
  ~Connection() { close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Waits where nobody takes the connection, and where what is sent finds no room, until then.
  Status open(const std::string& path, Instant until) {
    close();
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
      return fail(ErrorCode::invalid_input, "the path is too long for a socket");
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ < 0) return fail_errno(errno, "making a socket");
    const timespec left = to_timespec(std::max(until - monotonic_now(), kFirstPause));
    const timeval patience{.tv_sec = left.tv_sec, .tv_usec = left.tv_nsec / 1000};
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      return fail_errno(errno, "connecting");
    }
    return {};
  }

  Status send(const std::string& bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
      const ssize_t sent = ::send(socket_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return fail_errno(errno, "sending");
      at += static_cast<std::size_t>(sent);
    }
    return {};
  }

  // The answer to the hook; no value when the connection ended or the time is over.
  Result<HookDoneMessage> wait_for_answer(Instant until) {
    FrameDecoder decoder;
    while (true) {
      const auto frame = decoder.next();
      if (!frame) return fail(ErrorCode::corrupt, std::string(explain(frame.error())));
      if (*frame) {
        const Result<LocalMessage> message = decode_local_message((*frame)->header.kind, (*frame)->body);
        if (!message) continue;
        if (const auto* done = std::get_if<HookDoneMessage>(&*message)) return *done;
        if (const auto* refused = std::get_if<RefusedMessage>(&*message)) return std::unexpected(refused->error);
        continue;
      }
      const Duration left = until - monotonic_now();
      if (left <= Duration::zero()) return fail(ErrorCode::deadline_exceeded, "no answer in time");
      pollfd waiting{.fd = socket_, .events = POLLIN, .revents = 0};
      const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(left).count() + 1;
      if (::poll(&waiting, 1, static_cast<int>(milliseconds)) <= 0) continue;
      std::array<char, 4096> buffer{};
      const ssize_t got = ::recv(socket_, buffer.data(), buffer.size(), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return fail(ErrorCode::unavailable, "the sidecar ended before it answered", Retry::yes);
      decoder.feed({buffer.data(), static_cast<std::size_t>(got)});
    }
  }

 private:
  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }
  int socket_ = -1;
};

HookResult result_of(const HookDoneMessage& done) {
  switch (done.outcome) {
    case HookOutcome::durable:
      return {0,
              format("rekindle-hook: step {} is durable in {} after {} ms", done.step, done.path, done.milliseconds)};
    case HookOutcome::nothing_to_save:
      return {0, format("rekindle-hook: nothing to save{}", done.message.empty() ? "" : ": " + done.message)};
    case HookOutcome::failed: break;
  }
  return {1, format("rekindle-hook: the checkpoint could not be written: {}. The job resumes from the one before.",
                    done.message)};
}

}  // namespace

HookResult call_sidecar(const HookOptions& options) {
  const Instant answer_until = monotonic_now() + options.answer_limit;
  std::string why;
  Duration pause = kFirstPause;
  while (true) {
    if (monotonic_now() >= answer_until) {
      return {1, format("rekindle-hook: the sidecar on {} did not answer within {} s ({}); the container ends without "
                        "waiting. The job resumes from its newest checkpoint; see the log of the container "
                        "rekindle-sidecar.",
                        options.socket_path, to_seconds(options.answer_limit), why)};
    }
    // The limit on connecting begins anew when a sidecar that had answered is restarted.
    const Instant connect_until = std::min(monotonic_now() + options.connect_limit, answer_until);
    Connection connection;
    Status connected = connection.open(options.socket_path, connect_until);
    while (!connected && monotonic_now() < connect_until) {
      pause_until(connect_until, kFirstPause);
      connected = connection.open(options.socket_path, connect_until);
    }
    if (!connected) {
      if (why.empty()) why = connected.error().message;
      return {
          1,
          format("rekindle-hook: no sidecar answers on {} ({}); nothing was saved at this point and the container "
                 "ends without "
                 "waiting. The job resumes from its newest checkpoint; see the log of the container rekindle-sidecar.",
                 options.socket_path, why)};
    }
    const EncodedMessage question =
        encode_local_message(HookMessage{.container = options.container, .seconds_left = 0});
    Status sent = connection.send(encode_frame(static_cast<std::uint16_t>(question.kind), 0, 1, question.body));
    Result<HookDoneMessage> answer = sent ? connection.wait_for_answer(answer_until) : std::unexpected(sent.error());
    if (answer) return result_of(*answer);
    why = answer.error().message;
    if (answer.error().code != ErrorCode::unavailable) {
      return {1, format("rekindle-hook: the sidecar did not save: {}", why)};
    }
    pause_until(answer_until, pause);
    pause = std::min(pause * 2, kLongestPause);
  }
}

}  // namespace rekindle::hook
