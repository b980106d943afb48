// One connection of the rank to its sidecar: messages out, messages and a descriptor in, over a
// Unix stream socket that never blocks.
//
// Threads: one owner. Descriptors are close-on-exec, and a peer that is gone never raises SIGPIPE.
// A broken frame or message ends the connection with a message in problem().
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "worker-sidecar/protocol/frame.h"
#include "worker-sidecar/protocol/local_message.h"

namespace rekindle::runtime {

class SidecarSocket {
 public:
  struct Arrival {
    std::uint32_t attempt = 0;
    LocalMessage message;
  };

  SidecarSocket() = default;
  ~SidecarSocket() { close(); }
  SidecarSocket(const SidecarSocket&) = delete;
  SidecarSocket& operator=(const SidecarSocket&) = delete;

  // A fresh connection; an earlier one is closed. False with problem() set when no sidecar listens.
  bool connect(const std::string& path);
  void close();
  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  const std::string& problem() const { return problem_; }

  // Queues a message; `passed_descriptor` (-1: none) travels with its first byte and stays the
  // caller's until flush() has sent it.
  void send(const EncodedMessage& message, std::uint32_t attempt, int passed_descriptor = -1);
  bool has_unsent() const { return sent_bytes_ < unsent_.size(); }
  // Sends what goes without waiting.
  void flush();

  // Reads what is there and appends whole messages to `arrivals`. Messages of unknown kinds are
  // skipped.
  void receive(std::deque<Arrival>& arrivals);

  // The oldest descriptor that was not taken yet, -1 if none; the caller owns it.
  int take_descriptor();

 private:
  void end(std::string problem);
  bool decode(std::deque<Arrival>& arrivals);

  int descriptor_ = -1;
  int passed_descriptor_ = -1;
  std::deque<int> received_descriptors_;
  std::string unsent_;
  std::size_t sent_bytes_ = 0;  // of unsent_, at its beginning
  FrameEncoder encoder_;
  FrameDecoder decoder_;
  std::string problem_;
};

}  // namespace rekindle::runtime
