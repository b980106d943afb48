// What is registered, as the sidecar gets it: one message, kept so that a sidecar that comes
// back gets it again. Many changes in a row go into one message. Not thread-safe: Link guards it.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "worker-sidecar/protocol/frame.h"
#include "worker-sidecar/protocol/local_message.h"
#include "worker-sidecar/runtime/src/failure.h"

namespace rekindle::runtime {

// Of a message from a rank. A sidecar passes on what a rank says, with the numbers of up to 65,536
// ranks beside it.
inline constexpr std::size_t kRankMessageBytesMax = kMessageBodyBytesMax - (1u << 20);

class Announcement {
 public:
  // ARGUMENT when it is too much for one message, and nothing is changed. The others come after
  // this one.
  Done replace(RegisteredMessage registered);
  Done add(TensorDescription tensor);
  Done add(StateDescription state);
  // False when there is no tensor of that name.
  bool remove_tensor(std::string_view name);
  // The job trains already: what is registered from now on does not decide its start.
  void mark_late();

  // It has changed since the sidecar got it.
  bool is_due() const { return due_; }
  // A sidecar that has come back gets it again.
  void make_due() { due_ = registered_.has_value(); }
  void drop() { due_ = false; }
  // The message when it is due, which it then is no more.
  std::optional<RegisteredMessage> take_due();

 private:
  std::optional<RegisteredMessage> registered_;
  // of the message
  std::size_t bytes_ = 0;
  bool due_ = false;
};

}  // namespace rekindle::runtime
