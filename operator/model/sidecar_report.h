// What a sidecar tells the operator (docs/formats/operator-protocol.md): the body of POST /v1/sync
// as plain data.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/contract/wall_time.h"

namespace rekindle {

enum class SidecarPhase { waiting, restoring, training, saving, parked, finished };
std::string_view to_string(SidecarPhase phase);

enum class SaveState { collecting, writing, durable, failed };
std::string_view to_string(SaveState state);

struct ReportedBreakpoint {
  // name of the Breakpoint that asked for it; empty when the sidecars began by themselves
  std::string id;
  std::uint64_t term = 0;
  std::string cause;
  std::string pod;  // name of the pod that the cause is about, empty when it is about none
  std::string detail;
  SaveState state = SaveState::collecting;
  std::uint64_t step = 0;
  std::string path;
  std::string manifest_hash;
  std::uint64_t bytes = 0;
  std::uint64_t ranks = 0;
  std::optional<std::uint64_t> agreed_milliseconds;
  std::optional<std::uint64_t> durable_milliseconds;
  std::string message;
  std::string time;
  // nobody is to be restarted: the ranks make their communicators anew, or will, unless something
  // comes in between
  bool rebuild = false;

  bool operator==(const ReportedBreakpoint&) const = default;
};

struct ReportedRestore {
  std::uint64_t attempt = 0;
  std::uint64_t step = 0;  // 0: there was nothing to restore
  std::string path;
  std::uint64_t first_step = 0;  // 0 until the first step is done

  // What the manifest of the checkpoint says; empty and 0 where the sidecar does not know it.
  std::string manifest_hash;
  std::uint64_t bytes = 0;
  std::uint64_t ranks_expected = 0;
  std::uint64_t ranks_live = 0;
  std::optional<std::uint64_t> agreed_milliseconds;

  bool operator==(const ReportedRestore&) const = default;
};

struct ReportedProblem {
  std::string code;
  std::string message;

  bool operator==(const ReportedProblem&) const = default;
};

struct SidecarReport {
  std::string pod_name;
  std::string pod_uid;
  std::string address;
  std::uint16_t port = 0;
  std::int64_t ordinal = 0;
  bool coordinating = false;
  std::uint64_t attempt = 0;  // 0 while it waits for the whole job
  std::uint64_t step = 0;
  SidecarPhase phase = SidecarPhase::waiting;
  std::uint64_t ranks_expected = 0;
  std::uint64_t ranks_live = 0;
  std::optional<ReportedRestore> restored;
  std::vector<ReportedBreakpoint> breakpoints;
  std::vector<ReportedProblem> problems;

  // Written by the operator when the report came in.
  WallTime received{};
  WallTime phase_since{};    // when this phase was first heard of
  WallTime attempt_since{};  // when this attempt was first heard of from this pod

  bool operator==(const SidecarReport&) const = default;
};

struct SyncRequest {
  SidecarReport report;
  bool has_report = false;  // without one, the last report stands
  std::uint64_t seen = 0;
  std::chrono::seconds wait{0};  // at most 30
};

// Limits keep a hostile or broken sidecar from costing memory: texts are cut, lists hold at most 16
// entries (the newest).
Result<SyncRequest> sync_request_from_json(const nlohmann::json& body);

}  // namespace rekindle
