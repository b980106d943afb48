// Everything that the coordination machines order. Values only; the shell performs them in
// order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/error.h"
#include "common/contract/exit_codes.h"
#include "worker-sidecar/checkpoint/attempt.h"
#include "worker-sidecar/checkpoint/manifest.h"
#include "worker-sidecar/coordination/record.h"
#include "worker-sidecar/protocol/control_block.h"
#include "worker-sidecar/protocol/local_message.h"
#include "worker-sidecar/protocol/peer_message.h"
#include "worker-sidecar/protocol/rebuild_order.h"

namespace rekindle::sidecar {

// To another pod, never to the own one. Dropped when there is no connection.
struct SendToPeer {
  std::uint32_t ordinal = 0;
  PeerMessage message;
};

// --- start and restore ---

struct WelcomeRank {
  std::uint32_t rank = 0;
};
struct OfferToRank {
  std::uint32_t rank = 0;
  OfferMessage offer;
};
struct TakeForRank {
  std::uint32_t rank = 0;
  TakeMessage take;
};
struct RefuseRank {
  std::uint32_t rank = 0;
  Error error;
};
struct ListCandidates {};  // answered by CandidatesListed
struct VerifyCandidate {   // answered by CandidateVerified
  std::string path;
  std::string manifest_hash;
  // Those of all ranks of the job, each once: the checkpoint has to have exactly their tensors
  // (list_job_differences).
  std::vector<std::shared_ptr<const Layout>> layouts = {};
};
struct ClaimAttempt {                 // answered by AttemptClaimed
  std::optional<ParentPoint> parent;  // empty: nothing is restored
};

// The ranks of this pod live in this attempt now. Frames to peers carry it from here on. rejoined:
// they did before, nothing was restored, and what they began from is not known.
struct AttemptBegun {
  std::uint32_t attempt = 0;
  std::uint64_t step = 0;
  std::string path;  // empty: nothing was restored
  std::string manifest_hash;
  std::optional<CheckpointSummary> summary;  // of what was restored, where it is known
  bool rejoined = false;
};

// What all ranks of the job hold is known, or has changed. To be handed (JobRemembered) to
// the next sidecar process of this pod, which may find a rank dead that cannot say any more
// what it held.
struct RememberJob {
  std::uint32_t attempt = 0;
  std::string job_layout_hash;

  bool operator==(const RememberJob&) const = default;
};

// --- breakpoint ---

// Close the gates of all live local ranks (store hold unless it is not 0, fence, ring) and report
// each with RankSeen.
struct HoldRanks {};

// Let these ranks make the update to `step` although the gates are held.
struct PermitUpdate {
  std::vector<std::uint32_t> ranks;
  std::uint64_t step = 0;
};

// `write.hold` is 0; the shell fills in the number of its hold.
struct StartWrite {
  std::uint32_t rank = 0;
  WriteMessage write;
};

// The same from this rank's shadow of `write.step`, whether the rank lives or not. Answered by
// RankWritten or RankWriteFailed like a rank; pieces that the shadow does not hold, or a slot that
// holds another step by then, are a RankWriteFailed.
struct WriteFromShadow {
  std::uint32_t rank = 0;
  WriteMessage write;
};

// Write the captured state of `step` from the slots of these ranks, dead ones too, to
// state_file_name(ordinal) in that folder. Answered by StatesWritten.
struct WriteStates {
  std::uint64_t term = 0;
  std::uint64_t step = 0;
  std::string path;
  std::vector<std::uint32_t> ranks;
};

// Take the hold away with this order.
struct ReleaseRanks {
  GateOrder order = GateOrder::go_on;
  RebuildOrder rebuild = {};  // of GateOrder::rebuild
};

// Parked for good: order these processes to end.
struct EndRanks {
  std::vector<std::uint32_t> ranks;
  std::int64_t exit_code = kStoppedExitCode;
};

struct AnswerHook {
  std::uint64_t hook = 0;
  HookDoneMessage done;
};

// To a rank whose request had a step.
struct AnswerCheckpoint {
  std::uint32_t rank = 0;
  CheckpointDoneMessage done;
};

// mkdir of a<attempt>-s<step>-<nonce>, exclusive. Answered by FolderCreated.
struct CreateFolder {
  std::uint64_t term = 0;
  std::uint32_t attempt = 0;
  std::uint64_t step = 0;
};

// Everything but job and time is filled in. Answered by CheckpointPublished once it is durable and
// has been read back.
struct PublishCheckpoint {
  std::uint64_t term = 0;
  std::string path;
  Manifest manifest;
};

// --- periodic checkpoints and shadows ---

// Make a shadow for these pieces and give it to the rank. Answered by RankKept.
struct KeepForRank {
  std::uint32_t rank = 0;
  std::uint64_t term = 0;
  bool snapshots = false;
  std::uint64_t shadow_every_steps = 0;
  std::vector<PiecePlan> pieces;
};

// Have all live local ranks take a snapshot at this step (0: none any more), and report their words
// with RankSeen. A rank that took it is RankSnapshotted.
struct OrderSnapshot {
  std::uint64_t step = 0;
};

// Report the word of each live local rank with RankSeen.
struct InspectRanks {};

// A checkpoint that was given up before it was published.
struct RemoveFolder {
  std::string path;
};

// --- for people and the operator ---

// Of this pod's coordination; the newest for one term replaces the earlier ones.
struct ReportBreakpoint {
  BreakpointRecord record;
};

// The coordinator's: what was restored, with what was refused on the way.
struct ReportRestore {
  std::uint32_t attempt = 0;
  std::uint64_t step = 0;
  std::string path;
  std::vector<std::string> refused;  // sentences
};

// A periodic checkpoint is durable.
struct ReportPeriodic {
  std::uint64_t step = 0;
  std::string path;
  std::uint64_t bytes = 0;
  double stopped_milliseconds = 0;
  double written_milliseconds = 0;
  std::string rhythm;  // how often, and why
};

// Something a person should know; code is stable, for `problems` of the report.
struct NoteProblem {
  std::string code;
  std::string message;
};

// After Terminating: nothing here is waited for any more, and no attempt begins.
struct ExitAllowed {};

using CoordinationOutput =
    std::variant<SendToPeer, WelcomeRank, OfferToRank, TakeForRank, RefuseRank, ListCandidates, VerifyCandidate,
                 ClaimAttempt, AttemptBegun, HoldRanks, PermitUpdate, StartWrite, WriteFromShadow, WriteStates,
                 ReleaseRanks, EndRanks, AnswerHook, AnswerCheckpoint, CreateFolder, PublishCheckpoint,
                 ReportBreakpoint, ReportRestore, NoteProblem, ExitAllowed, KeepForRank, OrderSnapshot, InspectRanks,
                 RemoveFolder, ReportPeriodic, RememberJob>;

using CoordinationOutputs = std::vector<CoordinationOutput>;

}  // namespace rekindle::sidecar
