// Messages between a rank (or a tool) and its sidecar, kinds 1 to 22 of docs/formats/frames.md.
// Each struct has its number on the wire (kKind) and its name in errors (kName). Values only:
// descriptors that travel beside a frame are the caller's. Decoding believes nothing:
// wrong types, counts and lengths over the limits, and values out of range are an Error
// (invalid_input) with the message and the field in its text. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/enum_names.h"
#include "common/base/error.h"
#include "common/contract/exit_codes.h"
#include "worker-sidecar/checkpoint/layout.h"
#include "worker-sidecar/checkpoint/manifest.h"
#include "worker-sidecar/checkpoint/plan.h"
#include "worker-sidecar/checkpoint/written.h"
#include "worker-sidecar/protocol/encoded_message.h"

namespace rekindle {

// of a job; the ordinal of a pod has 16 bits in a term
inline constexpr std::uint32_t kRanksMax = 65'536;
inline constexpr std::size_t kMessageTextBytesMax = 4096;  // one text field: paths, sentences
inline constexpr std::size_t kStatesMax = 10'000;          // small states of one rank
// pieces of one plan, entries of one report
inline constexpr std::size_t kPiecesMax = 100'000;

// The first message of a rank. `attempt` of the frame is not 0 when the rank already lives in one
// (its sidecar was restarted); it then sends registered again.
struct HelloMessage {
  static constexpr std::uint16_t kKind = 1;
  static constexpr std::string_view kName = "hello";

  std::uint32_t rank = 0;
  std::uint32_t world_size = 0;
  std::int64_t pid = 0;
  std::uint64_t state_bytes_max = 0;
  std::string library_version;
  std::uint64_t term = 0;  // the highest that this rank has seen in a write, 0 for none
  bool rebuilds = false;   // it can make its communicators anew in the process (RK_REBUILDS)

  bool operator==(const HelloMessage&) const = default;
};

struct ControlMessage {
  static constexpr std::uint16_t kKind = 2;
  static constexpr std::string_view kName = "control";

  std::uint32_t slot_bytes = 0;
  std::uint64_t incarnation = 0;
  std::string checkpoint_dir;
  std::uint32_t ranks_here = 1;  // of this pod: they read the same files when they restore

  bool operator==(const ControlMessage&) const = default;
};

// The whole job is there: rk_open returns. The attempt is not known yet, it comes with take.
struct WelcomeMessage {
  static constexpr std::uint16_t kKind = 3;
  static constexpr std::string_view kName = "welcome";

  bool operator==(const WelcomeMessage&) const = default;
};

struct RegisteredMessage {
  static constexpr std::uint16_t kKind = 4;
  static constexpr std::string_view kName = "registered";

  Layout layout;
  std::vector<StateDescription> states;
  bool late = false;

  bool operator==(const RegisteredMessage&) const = default;
};

// Path empty: there is nothing to restore.
struct OfferMessage {
  static constexpr std::uint16_t kKind = 5;
  // between sidecars
  static constexpr std::uint16_t kPeerKind = 104;
  static constexpr std::string_view kName = "offer";

  std::string path;  // name of the folder inside the job's folder, as in every message
  std::uint64_t step = 0;
  std::string manifest_hash;
  // the tensors of all ranks have been compared with it (list_job_differences)
  bool job_checked = false;

  bool operator==(const OfferMessage&) const = default;
};

// `path` and `step` are those of the offer that is answered. `error` is meant only when ok is
// false.
struct LoadedMessage {
  static constexpr std::uint16_t kKind = 6;
  static constexpr std::string_view kName = "loaded";

  std::string path;
  std::uint64_t step = 0;
  bool ok = false;
  Error error;
  bool state_missing = false;
  std::string way = {};  // how the files were read, for people; empty: nothing was
  std::uint64_t bytes_read = 0;

  bool operator==(const LoadedMessage&) const = default;
};

// The whole job took the offer; rk_restore returns in this attempt. The summary of what was taken
// goes to every pod, so that each can report it to the operator; absent when there was nothing to
// restore.
struct TakeMessage {
  static constexpr std::uint16_t kKind = 7;
  // between sidecars
  static constexpr std::uint16_t kPeerKind = 106;
  static constexpr std::string_view kName = "take";

  std::uint32_t attempt = 0;
  std::string path;
  std::uint64_t step = 0;
  std::string manifest_hash;
  std::optional<CheckpointSummary> summary;
  std::string job_layout_hash = {};  // of what every rank registered, between sidecars

  bool operator==(const TakeMessage&) const = default;
};

struct WriteMessage {
  static constexpr std::uint16_t kKind = 8;
  static constexpr std::string_view kName = "write";

  std::uint64_t term = 0;
  std::uint32_t hold = 0;
  std::uint64_t step = 0;
  std::string path;
  std::string file;
  std::vector<PiecePlan> pieces;

  bool operator==(const WriteMessage&) const = default;
};

struct WrittenMessage {
  static constexpr std::uint16_t kKind = 9;
  static constexpr std::string_view kName = "written";

  std::uint64_t term = 0;
  WrittenFile written;

  bool operator==(const WrittenMessage&) const = default;
};

struct WriteFailedMessage {
  static constexpr std::uint16_t kKind = 10;
  static constexpr std::string_view kName = "write_failed";

  std::uint64_t term = 0;
  Error error;

  bool operator==(const WriteFailedMessage&) const = default;
};

struct CollectiveFailedMessage {
  static constexpr std::uint16_t kKind = 11;
  static constexpr std::string_view kName = "collective_failed";

  std::uint64_t step = 0;
  std::string why;
  // term of the newest order to rebuild that this rank has carried out: what failed was made after
  // it
  std::uint64_t rebuilt = 0;

  bool operator==(const CollectiveFailedMessage&) const = default;
};

// Answered by checkpoint_done. `step`: the last that the rank has committed, which the checkpoint
// is to hold or a newer one.
struct CheckpointWantedMessage {
  static constexpr std::uint16_t kKind = 12;
  static constexpr std::string_view kName = "checkpoint_wanted";

  std::uint64_t step = 0;

  bool operator==(const CheckpointWantedMessage&) const = default;
};

struct FinishedMessage {
  static constexpr std::uint16_t kKind = 13;
  static constexpr std::string_view kName = "finished";

  std::int64_t exit_code = 0;

  bool operator==(const FinishedMessage&) const = default;
};

struct EndMessage {
  static constexpr std::uint16_t kKind = 14;
  static constexpr std::string_view kName = "end";

  std::int64_t exit_code = kStoppedExitCode;

  bool operator==(const EndMessage&) const = default;
};

// rk_open, or rk_restore after welcome, fails with this.
struct RefusedMessage {
  static constexpr std::uint16_t kKind = 15;
  static constexpr std::string_view kName = "refused";

  Error error;

  bool operator==(const RefusedMessage&) const = default;
};

// `state_text` is the JSON object as text; "{}" asks.
struct StatusMessage {
  static constexpr std::uint16_t kKind = 16;
  static constexpr std::string_view kName = "status";

  std::string state_text = "{}";

  bool operator==(const StatusMessage&) const = default;
};

struct HookMessage {
  static constexpr std::uint16_t kKind = 17;
  static constexpr std::string_view kName = "hook";

  std::string container;
  double seconds_left = 0;

  bool operator==(const HookMessage&) const = default;
};

enum class HookOutcome : std::uint8_t { durable, failed, nothing_to_save };
constexpr auto enum_names(HookOutcome) {
  return std::to_array<EnumName<HookOutcome>>({
      {HookOutcome::durable, "durable"},
      {HookOutcome::failed, "failed"},
      {HookOutcome::nothing_to_save, "nothing_to_save"},
  });
}

struct HookDoneMessage {
  static constexpr std::uint16_t kKind = 18;
  static constexpr std::string_view kName = "hook_done";

  HookOutcome outcome = HookOutcome::failed;
  std::uint64_t step = 0;
  std::string path;
  std::uint64_t milliseconds = 0;
  std::string message;

  bool operator==(const HookDoneMessage&) const = default;
};

// Keep copies in the shadow whose descriptor travels beside it (docs/formats/shadow.md); the one
// before is over. Answered by kept.
struct KeepMessage {
  static constexpr std::uint16_t kKind = 19;
  static constexpr std::string_view kName = "keep";

  std::uint64_t serial = 0;

  bool operator==(const KeepMessage&) const = default;
};

// `error` is meant only when ok is false: the rank goes on without a shadow.
struct KeptMessage {
  static constexpr std::uint16_t kKind = 20;
  static constexpr std::string_view kName = "kept";

  std::uint64_t serial = 0;
  bool ok = false;
  Error error;

  bool operator==(const KeptMessage&) const = default;
};

// The rank's share at this step is in the snapshot slot; training stood for the copy.
struct SnapshottedMessage {
  static constexpr std::uint16_t kKind = 21;
  static constexpr std::string_view kName = "snapshotted";

  std::uint64_t step = 0;
  std::uint64_t microseconds = 0;
  bool ok = true;
  Error error;  // meant only when ok is false

  bool operator==(const SnapshottedMessage&) const = default;
};

// An order to rebuild was carried out: this rank is at `step` and goes on behind it.
struct RebuiltMessage {
  static constexpr std::uint16_t kKind = 22;
  static constexpr std::string_view kName = "rebuilt";

  std::uint64_t term = 0;
  std::uint64_t step = 0;

  bool operator==(const RebuiltMessage&) const = default;
};

// `requested` is the step of the request; `step` and `path` are of what is durable. `message` says
// why the requested step is not, where it is not.
struct CheckpointDoneMessage {
  static constexpr std::uint16_t kKind = 23;
  static constexpr std::string_view kName = "checkpoint_done";

  std::uint64_t requested = 0;
  HookOutcome outcome = HookOutcome::failed;
  std::uint64_t step = 0;
  std::string path = {};
  std::string message = {};

  bool operator==(const CheckpointDoneMessage&) const = default;
};

using LocalMessage =
    std::variant<HelloMessage, ControlMessage, WelcomeMessage, RegisteredMessage, OfferMessage, LoadedMessage,
                 TakeMessage, WriteMessage, WrittenMessage, WriteFailedMessage, CollectiveFailedMessage,
                 CheckpointWantedMessage, FinishedMessage, EndMessage, RefusedMessage, StatusMessage, HookMessage,
                 HookDoneMessage, KeepMessage, KeptMessage, SnapshottedMessage, RebuiltMessage, CheckpointDoneMessage>;

std::uint16_t local_kind_of(const LocalMessage& message);

EncodedMessage encode_local_message(const LocalMessage& message);

// not_found for a kind that is no local message: within a known major version it is skipped.
Result<LocalMessage> decode_local_message(std::uint16_t kind, std::string_view body);

}  // namespace rekindle
