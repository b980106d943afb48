// How a breakpoint ended, as every pod is informed. Pure values.
#pragma once

#include <variant>

#include "worker-sidecar/protocol/peer_message.h"

namespace rekindle::sidecar {

using Outcome = std::variant<CommittedMessage, FailedMessage>;

inline bool is_durable(const Outcome& outcome) { return std::holds_alternative<CommittedMessage>(outcome); }
inline std::uint64_t term_of(const Outcome& outcome) {
  return std::visit([](const auto& message) { return message.term; }, outcome);
}
inline AfterBreakpoint after_of(const Outcome& outcome) {
  return std::visit([](const auto& message) { return message.after; }, outcome);
}
// The ranks train on, at once or when they have made their communicators anew.
inline bool goes_on(AfterBreakpoint after) {
  return after == AfterBreakpoint::go_on || after == AfterBreakpoint::rebuild;
}
// Durable, and no step is made behind it: it holds whatever comes.
inline bool is_final(const Outcome& outcome) { return is_durable(outcome) && !goes_on(after_of(outcome)); }
inline PeerMessage message_of(const Outcome& outcome) {
  return std::visit([](const auto& message) { return PeerMessage(message); }, outcome);
}

}  // namespace rekindle::sidecar
