// What the operator answers to a sidecar as values (docs/formats/operator-protocol.md). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/contract/after_breakpoint.h"
#include "common/contract/trigger_cause.h"

namespace rekindle {

struct SyncPod {
  std::string name;
  std::string uid;
  std::uint64_t ordinal = 0;
  std::string address;  // empty: it has not called yet
  std::uint16_t port = 0;
  bool stale = false;  // being deleted or finished

  bool operator==(const SyncPod&) const = default;
};

// Every sidecar gets it; it is carried out once for each `breakpoint`.
struct SyncOrder {
  std::string breakpoint;
  TriggerCause cause = TriggerCause::operator_order;  // for people
  std::string detail;
  std::int64_t seconds_left = 0;
  AfterBreakpoint after = AfterBreakpoint::park;

  bool operator==(const SyncOrder&) const = default;
};

struct SyncAnswer {
  std::uint64_t version = 0;
  std::string job_namespace;
  std::string job_name;
  std::string job_uid;
  std::uint64_t pods_expected = 0;
  std::vector<SyncPod> pods;
  bool start_allowed = false;
  std::vector<SyncOrder> orders;

  bool operator==(const SyncAnswer&) const = default;
};

std::string encode_sync_answer(const SyncAnswer& answer);

// Numbers of pods and places are at most those of the largest job, the time that is left is whole
// seconds and at most kMessageSecondsMax.
Result<SyncAnswer> decode_sync_answer(std::string_view text);

}  // namespace rekindle
