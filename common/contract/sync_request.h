// What a sidecar tells the operator: the body of POST /v1/sync as values
// (docs/formats/operator-protocol.md). Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/enum_names.h"
#include "common/base/error.h"
#include "common/contract/trigger_cause.h"

namespace rekindle {

// `unknown`, here and below: a word of a newer sidecar, which is kept beside it as it was written.
enum class SidecarPhase : std::uint8_t { waiting, restoring, training, saving, parked, finished, unknown };

constexpr auto enum_names(SidecarPhase) {
  return std::to_array<EnumName<SidecarPhase>>({{SidecarPhase::waiting, "waiting"},
                                                {SidecarPhase::restoring, "restoring"},
                                                {SidecarPhase::training, "training"},
                                                {SidecarPhase::saving, "saving"},
                                                {SidecarPhase::parked, "parked"},
                                                {SidecarPhase::finished, "finished"},
                                                {SidecarPhase::unknown, "unknown"}});
}

enum class SaveState : std::uint8_t { collecting, writing, durable, failed, unknown };

constexpr auto enum_names(SaveState) {
  return std::to_array<EnumName<SaveState>>({{SaveState::collecting, "collecting"},
                                             {SaveState::writing, "writing"},
                                             {SaveState::durable, "durable"},
                                             {SaveState::failed, "failed"},
                                             {SaveState::unknown, "unknown"}});
}

struct RankCounts {
  std::uint64_t expected = 0;
  std::uint64_t live = 0;

  bool operator==(const RankCounts&) const = default;
};

struct ReportedBreakpoint {
  // name of the Breakpoint that asked for it; empty when the sidecars began by themselves
  std::string id;
  std::uint64_t term = 0;
  TriggerCause cause = TriggerCause::unknown;
  std::string unknown_cause;
  std::string pod;  // name of the pod that the cause is about, empty when it is about none
  std::string detail;
  SaveState state = SaveState::collecting;
  std::string unknown_state;
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

// The word of the cause as it is written.
std::string_view cause_word(const ReportedBreakpoint& breakpoint);

struct ReportedRestore {
  std::uint64_t attempt = 0;
  std::uint64_t step = 0;  // 0: there was nothing to restore
  std::string path;
  std::uint64_t first_step = 0;  // 0 until the first step is done

  // What the manifest of the checkpoint says, where the sidecar knows it.
  std::string manifest_hash;
  std::optional<std::uint64_t> bytes;
  std::optional<RankCounts> ranks;
  std::optional<std::uint64_t> agreed_milliseconds;

  bool operator==(const ReportedRestore&) const = default;
};

struct ReportedProblem {
  std::string code;
  std::string message;

  bool operator==(const ReportedProblem&) const = default;
};

struct SyncReport {
  std::uint64_t attempt = 0;  // 0 while it waits for the whole job
  std::uint64_t step = 0;
  SidecarPhase phase = SidecarPhase::waiting;
  std::string unknown_phase;
  std::optional<RankCounts> ranks;  // of the job, from the coordinating one
  std::optional<ReportedRestore> restored;
  std::vector<ReportedBreakpoint> breakpoints;  // newest last
  std::vector<ReportedProblem> problems;

  bool operator==(const SyncReport&) const = default;
};

struct SyncSender {
  std::string pod_name;
  std::string pod_uid;
  std::string address;
  std::uint16_t port = 0;
  std::uint32_t ordinal = 0;
  bool coordinating = false;

  bool operator==(const SyncSender&) const = default;
};

struct SyncRequest {
  SyncSender sender;
  std::uint64_t seen = 0;
  std::chrono::seconds wait{25};     // how long the operator may hold it; at most 30
  std::optional<SyncReport> report;  // without one, the last report stands

  bool operator==(const SyncRequest&) const = default;
};

std::string encode_sync_request(const SyncRequest& request);

// Limits keep a hostile or broken sidecar from costing memory: texts are cut, lists hold at most 16
// entries (of the breakpoints, the newest).
Result<SyncRequest> decode_sync_request(std::string_view text);

}  // namespace rekindle
