// What is reported about one breakpoint (docs/formats/operator-protocol.md, `breakpoints`). Pure
// values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/contract/sync_request.h"
#include "worker-sidecar/protocol/peer_message.h"

namespace rekindle::sidecar {

struct BreakpointRecord {
  std::string id;  // name of the operator's Breakpoint, or empty
  std::uint64_t term = 0;
  TriggerCause cause = TriggerCause::sidecar;
  std::uint32_t pod = 0;
  std::string detail;
  SaveState state = SaveState::collecting;
  std::uint64_t step = 0;
  std::string path;  // empty when durable: there was nothing to save
  std::string manifest_hash;
  std::uint64_t bytes = 0;
  std::uint32_t ranks = 0;  // that live
  double agreed_milliseconds = 0;
  double durable_milliseconds = 0;
  std::uint64_t steps_lost = 0;
  // no rank is to be restarted: they make their communicators anew, or will, unless something
  // comes in between
  bool rebuild = false;
  std::string message;  // why a step was lost, why it failed, which ranks are inexact

  bool operator==(const BreakpointRecord&) const = default;
};

// One line for logs: every field that is not empty as name=value.
std::string to_text(const BreakpointRecord& record);

}  // namespace rekindle::sidecar
