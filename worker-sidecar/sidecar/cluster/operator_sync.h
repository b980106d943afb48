// The one call between sidecar and operator as values (docs/formats/operator-protocol.md). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/coordination/event.h"
#include "worker-sidecar/coordination/record.h"

namespace rekindle::sidecar {

struct TimedRecord {
  BreakpointRecord record;
  std::string time;  // wall clock of its beginning
};

struct RestoredReport {
  std::uint32_t attempt = 0;  // 0: nothing to tell
  std::uint64_t step = 0;
  std::string path;
  std::uint64_t first_step = 0;  // 0: not yet
  std::string manifest_hash;
  std::optional<CheckpointSummary> summary;
};

struct SyncReport {
  std::uint32_t attempt = 0;
  std::uint64_t step = 0;
  std::string phase;
  std::uint32_t ranks_expected = 0;
  std::uint32_t ranks_live = 0;
  RestoredReport restored;
  std::vector<TimedRecord> breakpoints;  // newest last
  std::vector<std::pair<std::string, std::string>> problems;
};

struct SyncRequest {
  std::string pod_name;
  std::string pod_uid;
  std::string address;
  std::uint16_t port = 0;
  std::uint32_t ordinal = 0;
  std::uint64_t seen = 0;
  std::uint32_t wait_seconds = 25;
  bool coordinating = false;
  SyncReport report;
};

struct SyncPod {
  std::string name;
  std::string uid;
  std::uint32_t ordinal = 0;
  std::string address;  // empty: it has not called yet
  std::uint16_t port = 0;
  bool old = false;
};

struct SyncAnswer {
  std::uint64_t version = 0;
  std::string job_uid;
  std::uint32_t pods_expected = 0;
  std::vector<SyncPod> pods;
  bool start_allowed = false;
  std::vector<OrderArrived> orders;
};

// `pod_names[ordinal]` is what a person calls that pod; shorter, or empty there, when it is not
// known.
std::string encode_sync_request(const SyncRequest& request, const std::vector<std::string>& pod_names);

Result<SyncAnswer> decode_sync_answer(std::string_view text);

}  // namespace rekindle::sidecar
