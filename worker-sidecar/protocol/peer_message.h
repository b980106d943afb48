// Messages between the sidecars of one job, kinds 101 to 121 of docs/formats/frames.md. The rules of local_message.h hold. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/manifest.h"
#include "worker-sidecar/checkpoint/plan.h"
#include "worker-sidecar/checkpoint/written.h"
#include "worker-sidecar/protocol/control_block.h"
#include "worker-sidecar/protocol/local_message.h"
#include "worker-sidecar/protocol/message_kind.h"

namespace rekindle {

// What makes a breakpoint begin.
enum class TriggerCause : std::uint8_t {
  hook,               // preStop of a pod
  operator_order,     // "operator" on the wire: a fault elsewhere, a Breakpoint made by hand
  rank_died,
  pod_lost,
  collective_failed,  // a rank said so
  user,               // rk_checkpoint
  terminated,         // SIGTERM to a sidecar whose ranks live
  sidecar,            // a sidecar found its ranks held and nobody told it why
};
std::string_view to_string(TriggerCause cause);
Result<TriggerCause> parse_trigger_cause(std::string_view text);

// What happens to the ranks when the breakpoint is over; the later value is the stronger one.
enum class AfterBreakpoint : std::uint8_t { go_on = 0, park = 1, stop = 2 };
std::string_view to_string(AfterBreakpoint after);
Result<AfterBreakpoint> parse_after_breakpoint(std::string_view text);

std::string_view to_string(RankPhase phase);
Result<RankPhase> parse_rank_phase(std::string_view text);

// round << 16 | ordinal of the coordinator's pod.
constexpr std::uint64_t make_term(std::uint64_t round, std::uint32_t ordinal) { return round << 16 | (ordinal & 0xffff); }
constexpr std::uint64_t round_of(std::uint64_t term) { return term >> 16; }
constexpr std::uint32_t coordinator_of(std::uint64_t term) { return static_cast<std::uint32_t>(term & 0xffff); }

struct PeerHelloMessage {
  std::string job_uid;
  std::string pod_uid;
  std::uint32_t ordinal = 0;
  std::uint32_t pods = 0;
  std::string version;

  bool operator==(const PeerHelloMessage&) const = default;
};

enum class ReadyState : std::uint8_t { connected, registered, loaded, running };
std::string_view to_string(ReadyState state);

struct ReadyRank {
  std::uint32_t rank = 0;
  ReadyState state = ReadyState::connected;

  bool operator==(const ReadyRank&) const = default;
};

// What a pod's ranks have reached. `attempt`, `step`, `path`, `manifest_hash`: of the take that was seen, attempt 0 before.
struct ReadyMessage {
  std::uint32_t ordinal = 0;
  std::vector<ReadyRank> ranks;
  std::string layout_hash;  // empty until every rank of the pod has registered
  std::uint32_t attempt = 0;
  std::uint64_t step = 0;
  std::string path;
  std::string manifest_hash;

  bool operator==(const ReadyMessage&) const = default;
};

struct BeginMessage {
  bool operator==(const BeginMessage&) const = default;
};

struct PodLoadedMessage {
  std::uint32_t ordinal = 0;
  std::string path;
  std::uint64_t step = 0;
  bool ok = false;
  Error error;

  bool operator==(const PodLoadedMessage&) const = default;
};

// `term`: the one that holds the sender's ranks, 0 when none does.
struct TriggerMessage {
  std::uint64_t term = 0;
  TriggerCause cause = TriggerCause::sidecar;
  std::uint32_t pod = 0;  // ordinal of the pod that it is about
  std::string detail;
  double seconds_left = 0;  // 0: the policy's
  AfterBreakpoint after = AfterBreakpoint::go_on;
  std::string breakpoint;  // name of the operator's Breakpoint, or empty

  bool operator==(const TriggerMessage&) const = default;
};

// The trigger is the merged one, so that whoever takes over knows what for and until when. trigger.term is not used.
struct CollectMessage {
  std::uint64_t term = 0;
  TriggerMessage trigger;

  bool operator==(const CollectMessage&) const = default;
};

struct CollectedRank {
  std::uint32_t rank = 0;
  bool alive = false;
  bool clean = false;
  std::uint64_t step = 0;
  RankPhase phase = RankPhase::starting;

  bool operator==(const CollectedRank&) const = default;
};

// A `term` higher than the one that was asked for refuses it and says what the sender has seen.
struct CollectedMessage {
  std::uint64_t term = 0;
  std::uint32_t ordinal = 0;
  std::vector<CollectedRank> ranks;

  bool operator==(const CollectedMessage&) const = default;
};

struct PermitMessage {
  std::uint64_t term = 0;
  std::uint64_t step = 0;
  std::vector<std::uint32_t> ranks;

  bool operator==(const PermitMessage&) const = default;
};

// Goes to every member, also to one without a writer: its ranks' small state is wanted.
struct AssignMessage {
  std::uint64_t term = 0;
  std::uint64_t step = 0;
  std::string path;
  std::vector<WriterPlan> writers;

  bool operator==(const AssignMessage&) const = default;
};

struct RankWrittenFile {
  std::uint32_t rank = 0;
  WrittenFile written;

  bool operator==(const RankWrittenFile&) const = default;
};

// Sent once all of a pod's writers have written, or with ok false as soon as one cannot.
struct PodWrittenMessage {
  std::uint64_t term = 0;
  std::uint32_t ordinal = 0;
  bool ok = false;
  Error error;
  std::vector<std::uint32_t> failed_ranks;
  std::vector<RankWrittenFile> ranks;
  ManifestFile states_file;  // name empty: nothing was written
  std::vector<ManifestState> states;
  std::vector<std::uint32_t> inexact_ranks;  // ranks of the pod whose small state of that step is not there

  bool operator==(const PodWrittenMessage&) const = default;
};

// Path empty: every rank has finished, or nothing has been learned yet, and there is nothing to save.
struct CommittedMessage {
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
  std::uint64_t term = 0;
  Error error;
  AfterBreakpoint after = AfterBreakpoint::go_on;

  bool operator==(const FailedMessage&) const = default;
};

struct PodFinishedMessage {
  std::uint32_t ordinal = 0;

  bool operator==(const PodFinishedMessage&) const = default;
};

// --- periodic checkpoints and shadows; `number` and `serial` are the leader's, told apart by its ordinal ---

// The terms of periodic checkpoints lie apart from those of breakpoints: they neither refuse nor replace each other.
inline constexpr std::uint64_t kPeriodicTermBit = std::uint64_t{1} << 63;
constexpr bool is_periodic_term(std::uint64_t term) { return (term & kPeriodicTermBit) != 0; }
constexpr std::uint64_t make_periodic_term(std::uint64_t number, std::uint32_t ordinal) { return kPeriodicTermBit | make_term(number, ordinal); }

// What do your ranks hold?
struct SurveyMessage {
  std::uint64_t term = 0;
  std::string layout_hash;  // of the leader's own ranks, where they have one layout

  bool operator==(const SurveyMessage&) const = default;
};

struct RanksLayout {
  std::vector<std::uint32_t> ranks;
  Layout layout;

  bool operator==(const RanksLayout&) const = default;
};

// `layouts` has those ranks whose layout is another than the leader's. term 0: nobody asked; the layout of a rank has changed.
struct SurveyedMessage {
  std::uint64_t term = 0;
  std::uint32_t ordinal = 0;
  std::vector<std::uint32_t> ranks;  // all of this pod that have registered
  std::vector<RanksLayout> layouts;

  bool operator==(const SurveyedMessage&) const = default;
};

// To each pod what its ranks shall keep in their shadows.
struct PeerKeepMessage {
  std::uint64_t term = 0;
  bool snapshots = false;
  std::uint64_t shadow_every_steps = 0;
  std::vector<WriterPlan> shares;  // of this pod's ranks; a rank that is not named keeps nothing but its small state

  bool operator==(const PeerKeepMessage&) const = default;
};

struct PeerKeptMessage {
  std::uint64_t term = 0;
  std::uint32_t ordinal = 0;
  bool ok = false;
  Error error;

  bool operator==(const PeerKeptMessage&) const = default;
};

// Take the snapshot of periodic checkpoint `term` at exactly this step. step 0: it is given up.
struct SnapshotMessage {
  std::uint64_t term = 0;
  std::uint64_t step = 0;

  bool operator==(const SnapshotMessage&) const = default;
};

enum class SnapshotOutcome : std::uint8_t { taken, missed, failed };
std::string_view to_string(SnapshotOutcome outcome);

// All ranks of the pod have taken it, or one had passed the step already, or one cannot.
struct PodSnapshottedMessage {
  std::uint64_t term = 0;
  std::uint32_t ordinal = 0;
  SnapshotOutcome outcome = SnapshotOutcome::taken;
  std::uint64_t microseconds = 0;  // that training stood, the longest of this pod's ranks
  Error error;                     // when it failed

  bool operator==(const PodSnapshottedMessage&) const = default;
};

using PeerMessage =
    std::variant<PeerHelloMessage, ReadyMessage, BeginMessage, OfferMessage, PodLoadedMessage, TakeMessage, TriggerMessage,
                 CollectMessage, CollectedMessage, PermitMessage, AssignMessage, PodWrittenMessage, CommittedMessage,
                 FailedMessage, PodFinishedMessage, SurveyMessage, SurveyedMessage, PeerKeepMessage, PeerKeptMessage,
                 SnapshotMessage, PodSnapshottedMessage>;

MessageKind peer_kind_of(const PeerMessage& message);

EncodedMessage encode_peer_message(const PeerMessage& message);

// not_found for a kind that is no peer message.
Result<PeerMessage> decode_peer_message(std::uint16_t kind, std::string_view body);

}  // namespace rekindle
