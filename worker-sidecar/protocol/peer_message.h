// Messages between the sidecars of one job, kinds 101 to 120 of docs/formats/frames.md. The rules
// of local_message.h hold. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/enum_names.h"
#include "common/base/error.h"
#include "common/contract/after_breakpoint.h"
#include "common/contract/trigger_cause.h"
#include "worker-sidecar/checkpoint/manifest.h"
#include "worker-sidecar/checkpoint/plan.h"
#include "worker-sidecar/checkpoint/written.h"
#include "worker-sidecar/protocol/control_block.h"
#include "worker-sidecar/protocol/encoded_message.h"
#include "worker-sidecar/protocol/local_message.h"

namespace rekindle {

// round << 16 | ordinal of the coordinator's pod.
constexpr std::uint64_t make_term(std::uint64_t round, std::uint32_t ordinal) {
  return round << 16 | (ordinal & 0xffff);
}
constexpr std::uint64_t round_of(std::uint64_t term) { return term >> 16; }
constexpr std::uint32_t coordinator_of(std::uint64_t term) { return static_cast<std::uint32_t>(term & 0xffff); }

struct PeerHelloMessage {
  static constexpr std::uint16_t kKind = 101;
  static constexpr std::string_view kName = "peer_hello";

  std::string job_uid;
  std::string pod_uid;
  std::uint32_t ordinal = 0;
  std::uint32_t pods = 0;
  std::string version;

  bool operator==(const PeerHelloMessage&) const = default;
};

enum class ReadyState : std::uint8_t { connected, registered, loaded, running };
constexpr auto enum_names(ReadyState) {
  return std::to_array<EnumName<ReadyState>>({
      {ReadyState::connected, "connected"},
      {ReadyState::registered, "registered"},
      {ReadyState::loaded, "loaded"},
      {ReadyState::running, "running"},
  });
}

struct ReadyRank {
  std::uint32_t rank = 0;
  ReadyState state = ReadyState::connected;

  bool operator==(const ReadyRank&) const = default;
};

// Ranks that registered one layout. It is left out where the receiver has it; a message carries at
// most one, so that it fits a frame.
struct HeldLayout {
  std::string hash;
  std::vector<std::uint32_t> ranks;
  std::optional<Layout> layout;

  bool operator==(const HeldLayout&) const = default;
};

// What a pod's ranks have reached. `attempt`, `step`, `path`, `manifest_hash`: of the take that was
// seen, attempt 0 before.
struct ReadyMessage {
  static constexpr std::uint16_t kKind = 102;
  static constexpr std::string_view kName = "ready";

  std::uint32_t ordinal = 0;
  std::vector<ReadyRank> ranks;
  // of all ranks of the pod; empty until every one has registered, and when they differ
  std::string layout_hash;
  std::uint32_t attempt = 0;
  std::uint64_t step = 0;
  std::string path;
  std::string manifest_hash;
  std::vector<HeldLayout> layouts = {};  // when the ranks differ, or the coordinator has asked

  bool operator==(const ReadyMessage&) const = default;
};

// `layout_hashes`: those that the coordinator has, once its own ranks have registered; a pod with
// others sends them in `ready`. `layouts`: what all ranks of the job hold, told when they differ.
struct BeginMessage {
  static constexpr std::uint16_t kKind = 103;
  static constexpr std::string_view kName = "begin";

  std::vector<std::string> layout_hashes = {};
  std::vector<HeldLayout> layouts = {};

  bool operator==(const BeginMessage&) const = default;
};

struct PodLoadedMessage {
  static constexpr std::uint16_t kKind = 105;
  static constexpr std::string_view kName = "loaded";

  std::uint32_t ordinal = 0;
  std::string path;
  std::uint64_t step = 0;
  bool ok = false;
  Error error;

  bool operator==(const PodLoadedMessage&) const = default;
};

// `term`: the one that holds the sender's ranks, 0 when none does.
struct TriggerMessage {
  static constexpr std::uint16_t kKind = 107;
  static constexpr std::string_view kName = "trigger";

  std::uint64_t term = 0;
  TriggerCause cause = TriggerCause::sidecar;
  std::uint32_t pod = 0;  // ordinal of the pod that it is about
  std::string detail;
  double seconds_left = 0;  // 0: the policy's
  AfterBreakpoint after = AfterBreakpoint::go_on;
  std::string breakpoint;     // name of the operator's Breakpoint, or empty
  std::uint64_t rebuilt = 0;  // collective_failed: as in CollectiveFailedMessage

  bool operator==(const TriggerMessage&) const = default;
};

// The trigger is the merged one, so that the next coordinator knows what for and until when.
// trigger.term is not used. `job_layout_hash` is of all that the coordinator knows of who
// registered what; `layout_hashes` are the layouts that it has.
struct CollectMessage {
  static constexpr std::uint16_t kKind = 108;
  static constexpr std::string_view kName = "collect";

  std::uint64_t term = 0;
  TriggerMessage trigger;
  std::string job_layout_hash = {};
  std::vector<std::string> layout_hashes = {};

  bool operator==(const CollectMessage&) const = default;
};

struct CollectedRank {
  std::uint32_t rank = 0;
  bool alive = false;
  bool clean = false;
  std::uint64_t step = 0;
  RankPhase phase = RankPhase::starting;
  // sorted; complete copies of its stripe that its sidecar can read, also after its death
  std::vector<std::uint64_t> shadow_steps = {};
  bool rebuilds = false;           // it can make its communicators anew in the process
  std::uint64_t rebuild_term = 0;  // of the newest order to do so that it was given

  bool operator==(const CollectedRank&) const = default;
};

// A `term` higher than the one that was asked for refuses it and says what the sender has seen.
// `layouts`: what the sender knows and the coordinator does not, of other pods' ranks as well.
// `more`: only layouts, the answer itself follows.
struct CollectedMessage {
  static constexpr std::uint16_t kKind = 109;
  static constexpr std::string_view kName = "collected";

  std::uint64_t term = 0;
  std::uint32_t ordinal = 0;
  std::vector<CollectedRank> ranks;
  std::vector<HeldLayout> layouts = {};
  bool more = false;

  bool operator==(const CollectedMessage&) const = default;
};

struct PermitMessage {
  static constexpr std::uint16_t kKind = 110;
  static constexpr std::string_view kName = "permit";

  std::uint64_t term = 0;
  std::uint64_t step = 0;
  std::vector<std::uint32_t> ranks;

  bool operator==(const PermitMessage&) const = default;
};

// Goes to every member, with the writers of its pod; also to one without a writer: its ranks' small
// state is wanted.
struct AssignMessage {
  static constexpr std::uint16_t kKind = 111;
  static constexpr std::string_view kName = "assign";

  std::uint64_t term = 0;
  std::uint64_t step = 0;
  std::string path;
  std::vector<WriterPlan> writers = {};
  // of that pod, where several messages name them; 0: these are all
  std::uint32_t writers_in_all = 0;

  bool operator==(const AssignMessage&) const = default;
};

struct RankWrittenFile {
  std::uint32_t rank = 0;
  WrittenFile written;

  bool operator==(const RankWrittenFile&) const = default;
};

// Sent once all of a pod's writers have written, or with ok false as soon as one cannot. `more`:
// only some of the ranks' reports, since a frame is limited; the rest follows.
struct PodWrittenMessage {
  static constexpr std::uint16_t kKind = 112;
  static constexpr std::string_view kName = "written";

  std::uint64_t term = 0;
  std::uint32_t ordinal = 0;
  bool ok = false;
  Error error;
  std::vector<std::uint32_t> failed_ranks;
  std::vector<RankWrittenFile> ranks;
  ManifestFile states_file;  // name empty: nothing was written
  std::vector<ManifestState> states;
  // ranks of the pod whose small state of that step is not there
  std::vector<std::uint32_t> inexact_ranks;
  bool more = false;

  bool operator==(const PodWrittenMessage&) const = default;
};

// Path empty: every rank has finished, or nothing has been learned yet, and there is nothing to
// save.
struct CommittedMessage {
  static constexpr std::uint16_t kKind = 113;
  static constexpr std::string_view kName = "committed";

  std::uint64_t term = 0;
  std::uint64_t step = 0;
  std::string path;
  std::string manifest_hash;
  AfterBreakpoint after = AfterBreakpoint::go_on;
  std::uint64_t bytes = 0;
  double seconds = 0;

  bool operator==(const CommittedMessage&) const = default;
};

// term 0: the restore has failed, members refuse their ranks.
struct FailedMessage {
  static constexpr std::uint16_t kKind = 114;
  static constexpr std::string_view kName = "failed";

  std::uint64_t term = 0;
  Error error;
  AfterBreakpoint after = AfterBreakpoint::go_on;

  bool operator==(const FailedMessage&) const = default;
};

struct PodFinishedMessage {
  static constexpr std::uint16_t kKind = 115;
  static constexpr std::string_view kName = "finished";

  std::uint32_t ordinal = 0;

  bool operator==(const PodFinishedMessage&) const = default;
};

// --- periodic checkpoints and shadows; `number` and `serial` are the leader's, told apart by its
// ordinal ---

// The terms of periodic checkpoints lie apart from those of breakpoints: they neither refuse nor
// replace each other.
inline constexpr std::uint64_t kPeriodicTermBit = std::uint64_t{1} << 63;
constexpr bool is_periodic_term(std::uint64_t term) { return (term & kPeriodicTermBit) != 0; }
constexpr std::uint64_t make_periodic_term(std::uint64_t number, std::uint32_t ordinal) {
  return kPeriodicTermBit | make_term(number, ordinal);
}

// What the ranks of a pod hold has changed since the job began.
struct LayoutsMessage {
  static constexpr std::uint16_t kKind = 116;
  static constexpr std::string_view kName = "layouts";

  std::uint32_t ordinal = 0;
  std::vector<HeldLayout> layouts;

  bool operator==(const LayoutsMessage&) const = default;
};

// To the pod of `share.rank` what this rank shall keep in its shadow; one message a rank, so that
// each fits a frame.
struct PeerKeepMessage {
  static constexpr std::uint16_t kKind = 117;
  static constexpr std::string_view kName = "keep";

  std::uint64_t term = 0;
  bool snapshots = false;
  std::uint64_t shadow_every_steps = 0;
  WriterPlan share;  // of one rank; without pieces it keeps nothing but its small state

  bool operator==(const PeerKeepMessage&) const = default;
};

struct PeerKeptMessage {
  static constexpr std::uint16_t kKind = 118;
  static constexpr std::string_view kName = "kept";

  std::uint64_t term = 0;
  std::uint32_t rank = 0;
  bool ok = false;
  Error error;

  bool operator==(const PeerKeptMessage&) const = default;
};

// Take the snapshot of periodic checkpoint `term` at exactly this step. step 0: it is given up.
struct SnapshotMessage {
  static constexpr std::uint16_t kKind = 119;
  static constexpr std::string_view kName = "snapshot";

  std::uint64_t term = 0;
  std::uint64_t step = 0;

  bool operator==(const SnapshotMessage&) const = default;
};

enum class SnapshotOutcome : std::uint8_t { taken, missed, failed };
constexpr auto enum_names(SnapshotOutcome) {
  return std::to_array<EnumName<SnapshotOutcome>>({
      {SnapshotOutcome::taken, "taken"},
      {SnapshotOutcome::missed, "missed"},
      {SnapshotOutcome::failed, "failed"},
  });
}

// All ranks of the pod have taken it, or one had passed the step already, or one cannot.
struct PodSnapshottedMessage {
  static constexpr std::uint16_t kKind = 120;
  static constexpr std::string_view kName = "snapshotted";

  std::uint64_t term = 0;
  std::uint32_t ordinal = 0;
  SnapshotOutcome outcome = SnapshotOutcome::taken;
  std::uint64_t microseconds = 0;  // that training stood, the longest of this pod's ranks
  Error error;                     // when it failed

  bool operator==(const PodSnapshottedMessage&) const = default;
};

using PeerMessage =
    std::variant<PeerHelloMessage, ReadyMessage, BeginMessage, OfferMessage, PodLoadedMessage, TakeMessage,
                 TriggerMessage, CollectMessage, CollectedMessage, PermitMessage, AssignMessage, PodWrittenMessage,
                 CommittedMessage, FailedMessage, PodFinishedMessage, LayoutsMessage, PeerKeepMessage, PeerKeptMessage,
                 SnapshotMessage, PodSnapshottedMessage>;

std::uint16_t peer_kind_of(const PeerMessage& message);

EncodedMessage encode_peer_message(const PeerMessage& message);

// not_found for a kind that is no peer message.
Result<PeerMessage> decode_peer_message(std::uint16_t kind, std::string_view body);

}  // namespace rekindle
