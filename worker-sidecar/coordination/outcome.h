// How a breakpoint ended, as everybody is told. Pure values.
#pragma once

#include <variant>

#include "worker-sidecar/protocol/peer_message.h"

namespace rekindle {

using Outcome = std::variant<CommittedMessage, FailedMessage>;

inline bool is_durable(const Outcome& outcome) { return std::holds_alternative<CommittedMessage>(outcome); }
inline std::uint64_t term_of(const Outcome& outcome) {
  return std::visit([](const auto& message) { return message.term; }, outcome);
}
inline AfterBreakpoint after_of(const Outcome& outcome) {
  return std::visit([](const auto& message) { return message.after; }, outcome);
}
inline PeerMessage message_of(const Outcome& outcome) {
  return std::visit([](const auto& message) { return PeerMessage(message); }, outcome);
}

}  // namespace rekindle
