// Everything that the shell reports to the coordination machines. Values only.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/attempt.h"
#include "worker-sidecar/checkpoint/interval.h"
#include "worker-sidecar/checkpoint/manifest.h"
#include "worker-sidecar/protocol/control_block.h"
#include "worker-sidecar/protocol/local_message.h"
#include "worker-sidecar/protocol/peer_message.h"

namespace rekindle::sidecar {

// --- other pods ---

struct PeerTableEntry {
  std::uint32_t ordinal = 0;
  bool stale = false;  // being deleted or finished
};

// The operator's answer. A pod that is not in it is gone.
struct PeerTableSeen {
  std::vector<PeerTableEntry> pods;
  bool start_allowed = false;
};

// The connection to that pod is up, hellos exchanged. Every pair of sidecars has one.
struct PeerConnected {
  std::uint32_t ordinal = 0;
};
struct PeerLost {
  std::uint32_t ordinal = 0;
};

// `attempt` of the frame.
struct PeerMessageArrived {
  std::uint32_t from = 0;
  std::uint32_t attempt = 0;
  PeerMessage message;
};

// An order of the operator. Every sidecar gets it and passes it on; it is carried out once for each
// `breakpoint`.
struct OrderArrived {
  std::string breakpoint;
  std::string detail;
  double seconds_left = 0;
  AfterBreakpoint after = AfterBreakpoint::park;
};

// From the sidecar process before this one.
struct JobRemembered {
  std::uint32_t attempt = 0;
  std::string job_layout_hash;
};

// --- ranks of this pod ---

// After hello and control. attempt and term not 0: the rank lives already, this sidecar was
// restarted.
struct RankConnected {
  std::uint32_t rank = 0;
  std::uint32_t attempt = 0;
  std::uint64_t term = 0;
  RankStatus word;                 // of the control block
  bool held = false;               // the control block's hold is not 0
  bool rebuilds = false;           // of its hello
  std::uint64_t rebuild_term = 0;  // of the control block; `term` is not below it
};
struct RankRegistered {
  std::uint32_t rank = 0;
  RegisteredMessage registered;
};
struct RankLoaded {
  std::uint32_t rank = 0;
  LoadedMessage loaded;
};

// The word of a live rank. Due for every live local rank after HoldRanks, and again on each change
// while the hold lasts. `shadow_steps`, here and in RankDied: steps of this attempt of which its
// shadow holds a complete copy, sorted.
struct RankSeen {
  std::uint32_t rank = 0;
  RankStatus word;
  std::vector<std::uint64_t> shadow_steps = {};
};

// The process is over; the last word and the attempt of its control block. After RankFinished it
// says nothing new. A sidecar that was restarted also reports the ranks whose control block it
// finds without a process.
struct RankDied {
  std::uint32_t rank = 0;
  RankStatus word;
  std::uint32_t attempt = 0;
  std::vector<std::uint64_t> shadow_steps = {};
};
struct RankFinished {
  std::uint32_t rank = 0;
};
struct RankWritten {
  std::uint32_t rank = 0;
  WrittenMessage written;
};
struct RankWriteFailed {
  std::uint32_t rank = 0;
  WriteFailedMessage failed;
};
struct RankCollectiveFailed {
  std::uint32_t rank = 0;
  CollectiveFailedMessage failed;
};
// Answered by AnswerCheckpoint where there is a step: the last that the rank had committed when it
// asked. Without one somebody else asked, and nobody waits.
struct RankRequestedCheckpoint {
  std::uint32_t rank = 0;
  std::optional<std::uint64_t> step = {};
};
// Answer to KeepForRank: the rank has its new shadow, or goes on without one.
struct RankKept {
  std::uint32_t rank = 0;
  std::uint64_t term = 0;
  Status kept;
};
// The rank's share at this step is in its snapshot slot.
struct RankSnapshotted {
  std::uint32_t rank = 0;
  std::uint64_t step = 0;
  std::uint64_t microseconds = 0;
  Status taken;
};

// --- this pod ---

// `hook` is any number that names the connection; it is answered exactly once, by AnswerHook.
struct HookCalled {
  std::uint64_t hook = 0;
  std::string container;
  double seconds_left = 0;
};

// The connection of a hook that was not answered is gone.
struct HookGone {
  std::uint64_t hook = 0;
};

// SIGTERM to this sidecar. ExitAllowed follows, at the latest when the seconds are over.
struct Terminating {
  double seconds_left = 0;
};

// --- answers to actions ---

struct RestoreCandidate {
  std::string path;
  std::uint32_t attempt = 0;
  std::uint64_t step = 0;
  std::string manifest_hash;
  CheckpointSummary summary;

  bool operator==(const RestoreCandidate&) const = default;
};

// Newest first, those of abandoned lines left out (P15).
struct CandidatesListed {
  Result<std::vector<RestoreCandidate>> candidates;
};
struct CandidateVerified {
  std::string path;
  Status verified;
};
struct AttemptClaimed {
  Result<std::uint32_t> attempt;
  FailureHistory failures;  // of the attempts before it
};
struct FolderCreated {
  std::uint64_t term = 0;
  Result<std::string> path;  // name of the folder
};

struct StatesOfPod {
  ManifestFile file;  // name empty: no rank of this pod has small state of that step
  std::vector<ManifestState> states;
  std::vector<std::uint32_t> missing;  // ranks whose slots hold another step or a wrong checksum
};
struct StatesWritten {
  std::uint64_t term = 0;
  Result<StatesOfPod> written;
};
struct PublishedCheckpoint {
  std::string manifest_hash;
  std::uint64_t bytes = 0;
};
struct CheckpointPublished {
  std::uint64_t term = 0;
  Result<PublishedCheckpoint> published;
};

// Nothing but time has passed.
struct Tick {};

using CoordinationEvent =
    std::variant<PeerTableSeen, PeerConnected, PeerLost, PeerMessageArrived, OrderArrived, RankConnected,
                 RankRegistered, RankLoaded, RankSeen, RankDied, RankFinished, RankWritten, RankWriteFailed,
                 RankCollectiveFailed, RankRequestedCheckpoint, HookCalled, HookGone, Terminating, CandidatesListed,
                 CandidateVerified, AttemptClaimed, FolderCreated, StatesWritten, CheckpointPublished, Tick, RankKept,
                 RankSnapshotted, JobRemembered>;

}  // namespace rekindle::sidecar
