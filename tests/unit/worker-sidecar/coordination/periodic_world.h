// Pods with one rank each whose sidecars make periodic checkpoints; virtual time, messages that
// arrive at once and in order. Smaller than the harness of breakpoints: ranks here move when the
// test says so.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/checkpoint/safetensors.h"
#include "worker-sidecar/coordination/coordination.h"

namespace rekindle::sidecar::testing {

class PeriodicWorld {
 public:
  struct Pod {
    std::unique_ptr<Coordination> sidecar;
    RankStatus word{.step = 0, .phase = RankPhase::between};
    std::uint64_t snapshot_step = 0;
    std::uint64_t taken = 0;
    std::vector<KeepForRank> kept;
    std::optional<Error> no_memory;    // KeepForRank is answered with it
    std::optional<Error> write_error;  // WriteFromShadow is
    bool takes_snapshots = true;
    bool answers_writes = true;
    bool has_state = false;                     // its rank registers small state
    std::vector<std::uint32_t> states_missing;  // of ranks whose state of the step is not there
    std::vector<WriteMessage> unanswered;
    Layout layout;
  };

  PeriodicWorld(std::uint32_t pods, SnapshotSettings settings) : settings_(settings) {
    for (std::uint32_t i = 0; i < pods; ++i) {
      pods_.push_back({});
      pods_.back().layout = {{whole_tensor("w", Dtype::f32, {100, 2})}};
      pods_.back().sidecar = std::make_unique<Coordination>(CoordinationConfig{
          .ordinal = i, .pods = pods, .ranks_per_pod = 1, .wait_for_go = false, .snapshots = settings});
    }
  }

  // All ranks come, restore nothing and train.
  void start() {
    for (std::uint32_t i = 0; i < pods_.size(); ++i) {
      for (std::uint32_t j = 0; j < pods_.size(); ++j) {
        if (i != j) handle(i, PeerConnected{j});
      }
    }
    for (std::uint32_t i = 0; i < pods_.size(); ++i) handle(i, RankConnected{.rank = i});
    run(std::chrono::seconds(2));
  }

  void handle(std::uint32_t pod, const CoordinationEvent& event) {
    queue_.push_back({pod, event});
    drain();
  }

  // Time passes in ticks; the pods look at it when they wanted to be woken.
  void run(Duration time) {
    const Instant until = now + time;
    while (now < until) {
      now += std::chrono::milliseconds(10);
      for (std::uint32_t i = 0; i < pods_.size(); ++i) {
        if (const auto wake = pods_[i].sidecar->next_wake(); wake && *wake <= now) handle(i, Tick{});
      }
    }
  }

  // Every rank makes this many steps, and takes what it is asked for.
  void train(std::uint64_t steps) {
    for (std::uint64_t step = 0; step < steps; ++step) {
      for (std::uint32_t i = 0; i < pods_.size(); ++i) make_step(i);
      run(std::chrono::milliseconds(10));
    }
  }
  void make_step(std::uint32_t pod) {
    Pod& place = pods_[pod];
    ++place.word.step;
    if (place.takes_snapshots && place.snapshot_step == place.word.step && place.taken != place.word.step) {
      place.taken = place.word.step;
      handle(pod, RankSnapshotted{pod, place.word.step, 1500, {}});
    }
  }

  Pod& pod(std::uint32_t ordinal) { return pods_[ordinal]; }

  // The answer to one of `unanswered`, in place of the disk.
  void answer_write(std::uint32_t pod, const WriteMessage& order) {
    handle(pod, RankWritten{pod, {.term = order.term, .written = file_of(order, pods_[pod].layout)}});
  }

  Instant now{std::chrono::hours(1)};
  std::vector<Manifest> published;
  std::vector<ReportPeriodic> reports;
  std::vector<std::string> removed;
  std::vector<std::string> problems;
  std::optional<Error> publish_error;

 private:
  struct Queued {
    std::uint32_t pod;
    CoordinationEvent event;
  };

  void drain() {
    if (draining_) return;
    draining_ = true;
    while (!queue_.empty()) {
      Queued queued = std::move(queue_.front());
      queue_.pop_front();
      for (const CoordinationOutput& output : pods_[queued.pod].sidecar->advance(queued.event, now)) {
        std::visit([&](const auto& what) { perform(queued.pod, what); }, output);
      }
    }
    draining_ = false;
  }
  void later(std::uint32_t pod, CoordinationEvent event) { queue_.push_back({pod, std::move(event)}); }

  template <typename Output>
  void perform(std::uint32_t, const Output&) {}
  void perform(std::uint32_t pod, const SendToPeer& o) {
    later(o.ordinal, PeerMessageArrived{pod, pods_[pod].sidecar->attempt(), o.message});
  }
  void perform(std::uint32_t pod, const WelcomeRank& o) {
    RegisteredMessage registered{.layout = pods_[pod].layout, .states = {}};
    if (pods_[pod].has_state) registered.states = {{"sampler", 16}};
    later(pod, RankRegistered{o.rank, std::move(registered)});
  }
  void perform(std::uint32_t pod, const ListCandidates&) {
    later(pod, CandidatesListed{std::vector<RestoreCandidate>{}});
  }
  void perform(std::uint32_t pod, const OfferToRank& o) {
    later(pod, RankLoaded{o.rank, {.path = o.offer.path, .step = o.offer.step, .ok = true}});
  }
  void perform(std::uint32_t pod, const ClaimAttempt&) { later(pod, AttemptClaimed{.attempt = 1u, .failures = {}}); }
  void perform(std::uint32_t pod, const HoldRanks&) { perform(pod, InspectRanks{}); }
  void perform(std::uint32_t pod, const InspectRanks&) { later(pod, RankSeen{pod, pods_[pod].word}); }
  void perform(std::uint32_t pod, const KeepForRank& o) {
    pods_[pod].kept.push_back(o);
    later(pod,
          RankKept{o.rank, o.term, pods_[pod].no_memory ? Status(std::unexpected(*pods_[pod].no_memory)) : Status()});
  }
  void perform(std::uint32_t pod, const OrderSnapshot& o) {
    pods_[pod].snapshot_step = o.step;
    perform(pod, InspectRanks{});
  }
  void perform(std::uint32_t pod, const CreateFolder& o) {
    later(pod, FolderCreated{o.term, checkpoint_folder_name({o.attempt, o.step, "n" + std::to_string(++folders_)})});
  }
  void perform(std::uint32_t pod, const WriteFromShadow& o) {
    if (!pods_[pod].answers_writes) {
      pods_[pod].unanswered.push_back(o.write);
      return;
    }
    if (pods_[pod].write_error)
      return later(pod, RankWriteFailed{o.rank, {.term = o.write.term, .error = *pods_[pod].write_error}});
    later(pod, RankWritten{o.rank, {.term = o.write.term, .written = file_of(o.write, pods_[pod].layout)}});
  }
  void perform(std::uint32_t pod, const WriteStates& o) {
    StatesOfPod written{.file = {.name = state_file_name(pod), .bytes = 80, .hash = std::string(32, '0')},
                        .states = {},
                        .missing = pods_[pod].states_missing};
    if (written.missing.empty())
      written.states = {{pod, "sampler", written.file.name, state_key(pod, "sampler"), 16, 64, 80}};
    later(pod, StatesWritten{o.term, std::move(written)});
  }
  void perform(std::uint32_t pod, const PublishCheckpoint& o) {
    if (publish_error) return later(pod, CheckpointPublished{o.term, std::unexpected(*publish_error)});
    published.push_back(o.manifest);
    later(pod, CheckpointPublished{o.term, PublishedCheckpoint{"hash", file_bytes(o.manifest)}});
  }
  void perform(std::uint32_t, const RemoveFolder& o) { removed.push_back(o.path); }
  void perform(std::uint32_t, const ReportPeriodic& o) { reports.push_back(o); }
  void perform(std::uint32_t, const NoteProblem& o) { problems.push_back(o.message); }

  static WrittenFile file_of(const WriteMessage& order, const Layout& layout) {
    WrittenFile file{.file = order.file, .bytes = 4096, .hash = std::string(32, '0'), .chunks = {}, .entries = {}};
    std::uint64_t at = 128;
    for (const PiecePlan& piece : order.pieces) {
      const TensorDescription& tensor = *std::ranges::find(layout.tensors, piece.tensor, &TensorDescription::name);
      const std::uint64_t bytes = rows_bytes(tensor, piece.end_row - piece.begin_row);
      file.entries.push_back({entry_of_piece(tensor, piece.begin_row, piece.end_row).key, piece.tensor, piece.begin_row,
                              piece.end_row, at, at + bytes});
      at += bytes;
    }
    return file;
  }

  SnapshotSettings settings_;
  std::vector<Pod> pods_;
  std::deque<Queued> queue_;
  bool draining_ = false;
  int folders_ = 0;
};

}  // namespace rekindle::sidecar::testing
