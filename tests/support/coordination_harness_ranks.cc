// The simulated ranks, gates and storage of the coordination harness.
#include <algorithm>

#include "tests/support/coordination_harness.h"
#include "worker-sidecar/checkpoint/hash.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/checkpoint/plan.h"

namespace rekindle::sidecar {

using std::chrono::microseconds;
using std::chrono::milliseconds;

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string comma_separated(const std::vector<std::uint32_t>& list) {
  std::string text;
  for (const auto number : list) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text.empty() ? "none" : text;
}

// --- storage ---

void CoordinationHarness::perform(std::uint32_t pod, const StartWrite& start) {
  log("rank " + std::to_string(start.rank) + " writes " + std::to_string(start.write.pieces.size()) +
      " pieces of step " + std::to_string(start.write.step));
  Rank& writer = ranks_[start.rank];
  writer.highest_term = std::max(writer.highest_term, start.write.term);
  const RankStatus at_start = writer.word;
  after(between(write_time_ / 2, write_time_), [this, pod, start, at_start, generation = writer.generation] {
    Rank& rank = ranks_[start.rank];
    if (!rank.alive || rank.generation != generation || rank.highest_term != start.write.term) return;
    if (const auto error = write_errors_.find(start.rank); error != write_errors_.end()) {
      deliver(pod, RankWriteFailed{start.rank, {start.write.term, error->second}});
      return;
    }
    // The library looks at its own word before and after each chunk (P4).
    if (rank.word.step != start.write.step || at_start.step != start.write.step || !is_clean(rank.word)) {
      deliver(pod, RankWriteFailed{start.rank,
                                   {start.write.term, {ErrorCode::conflict, "the rank moved while it was written"}}});
      return;
    }
    finish_write(pod, start.rank, start.write);
  });
}

void CoordinationHarness::perform(std::uint32_t pod, const WriteFromShadow& start) {
  log("pod " + std::to_string(pod) + " writes " + std::to_string(start.write.pieces.size()) + " pieces of step " +
      std::to_string(start.write.step) + " from the shadow of rank " + std::to_string(start.rank));
  after(between(write_time_ / 2, write_time_), [this, pod, start, generation = pods_[pod].generation] {
    if (pods_[pod].generation != generation) return;
    const std::vector<std::uint64_t>& held = ranks_[start.rank].shadow_steps;
    if (const auto error = shadow_errors_.find(start.rank); error != shadow_errors_.end()) {
      deliver(pod, RankWriteFailed{start.rank, {start.write.term, error->second}});
    } else if (std::find(held.begin(), held.end(), start.write.step) == held.end()) {
      deliver(pod,
              RankWriteFailed{start.rank, {start.write.term, {ErrorCode::conflict, "the shadow holds another step"}}});
    } else {
      finish_write(pod, start.rank, start.write);
    }
  });
}

const Layout& CoordinationHarness::layout_of(std::uint32_t rank) const {
  const auto found = layouts_.find(rank);
  return found == layouts_.end() ? harness_layout() : found->second;
}

RegisteredMessage CoordinationHarness::registered_by(std::uint32_t rank) const {
  RegisteredMessage registered{.layout = layout_of(rank), .states = {}};
  if (options_.states) registered.states = {{"sampler", 16}};
  return registered;
}

void CoordinationHarness::register_late(std::uint32_t rank, Layout layout) {
  layouts_[rank] = std::move(layout);
  RegisteredMessage registered = registered_by(rank);
  registered.late = true;
  deliver(pod_of(rank), RankRegistered{rank, registered});
}

void CoordinationHarness::finish_write(std::uint32_t pod, std::uint32_t rank, const WriteMessage& write) {
  WrittenFile file{.file = write.file, .bytes = 64};
  for (const PiecePlan& piece : write.pieces) {
    bool registered = false;
    for (const TensorDescription& tensor : layout_of(rank).tensors) {
      if (tensor.name != piece.tensor) continue;
      registered = has_rows(tensor, piece.begin_row, piece.end_row);
      if (!registered) break;
      const std::uint64_t bytes = rows_bytes(tensor, piece.end_row - piece.begin_row);
      file.entries.push_back({piece_key(piece.tensor, piece.begin_row, piece.end_row, row_count(tensor)), piece.tensor,
                              piece.begin_row, piece.end_row, file.bytes, file.bytes + bytes});
      file.bytes += bytes;
    }
    if (!registered)
      violate("rank " + std::to_string(rank) + " is to write rows of " + piece.tensor + " that it does not hold");
  }
  file.hash = hash_of("step " + std::to_string(write.step) + " rank " + std::to_string(rank));
  const std::string name = write.path + "/" + file.file;
  const auto [known, fresh] = files_.emplace(name, std::pair(write.step, file.hash));
  if (!fresh && known->second.second != file.hash) violate("two contents of " + name);
  deliver(pod, RankWritten{rank, {write.term, file}});
}

void CoordinationHarness::perform(std::uint32_t pod, const WriteStates& write) {
  StatesOfPod states;
  states.file = {.name = state_file_name(pod), .bytes = 64, .hash = hash_of("states " + std::to_string(write.step))};
  for (const std::uint32_t number : write.ranks) {
    const Rank& rank = ranks_[number];
    if (rank.slots[0] != write.step && rank.slots[1] != write.step) {
      states.missing.push_back(number);
      continue;
    }
    states.states.push_back({number, "sampler", states.file.name, state_key(number, "sampler"), 16, states.file.bytes,
                             states.file.bytes + 16});
    states.file.bytes += 16;
  }
  if (states.states.empty()) states.file = {};
  deliver_later(pod, between(milliseconds(1), milliseconds(3)), StatesWritten{write.term, states});
}

void CoordinationHarness::perform(std::uint32_t pod, const PublishCheckpoint& publish) {
  Manifest manifest = publish.manifest;
  manifest.job = {"ns", "job", "uid"};
  manifest.time = "2026-01-01T00:00:00Z";
  if (const Status status = check_manifest(manifest); !status)
    violate("a manifest that breaks a rule: " + status.error().message);
  for (std::uint32_t number = 0; number < ranks_.size(); ++number) {
    for (const TensorDescription& tensor : layout_of(number).tensors) {
      if (std::none_of(manifest.tensors.begin(), manifest.tensors.end(),
                       [&](const ManifestTensor& saved) { return saved.name == tensor.name; })) {
        violate(publish.path + " does not have \"" + tensor.name + "\" of rank " + std::to_string(number));
      }
    }
  }
  for (const ManifestTensor& tensor : manifest.tensors) {
    for (const ManifestPiece& piece : tensor.pieces) {
      const auto file = files_.find(publish.path + "/" + piece.file);
      if (file == files_.end()) violate("a manifest names a file that nobody wrote: " + piece.file);
      else if (file->second.first != manifest.step) violate("a file of another step in " + publish.path);
    }
  }
  const EncodedManifest encoded = encode_manifest(manifest);
  after(between(milliseconds(1), milliseconds(3)), [this, pod, publish, encoded, generation = pods_[pod].generation] {
    if (!pods_[pod].up || pods_[pod].generation != generation) return;  // ended before the link
    if (publish_error_) {
      deliver(pod, CheckpointPublished{publish.term, std::unexpected(*publish_error_)});
      return;
    }
    const auto [known, fresh] = published_contents_.emplace(publish.path, encoded.text);
    if (!fresh) violate("published twice under " + publish.path);
    if (removed_.contains(publish.path)) violate(publish.path + " was removed, and is published");
    published_.push_back({publish.manifest.step, publish.path, publish.term, publish.manifest.inexact_ranks, now_,
                          summarize(publish.manifest)});
    log("pod " + std::to_string(pod) + " published " + publish.path +
        (publish.manifest.inexact_ranks.empty()
             ? ""
             : " inexact for rank " + comma_separated(publish.manifest.inexact_ranks)));
    deliver(pod, CheckpointPublished{publish.term, PublishedCheckpoint{encoded.hash, file_bytes(publish.manifest)}});
  });
}

void CoordinationHarness::load(std::uint32_t pod, std::uint32_t number, const OfferMessage& offer) {
  LoadedMessage loaded{.path = offer.path, .step = offer.step, .ok = true};
  if (const auto error = load_errors_.find(number); error != load_errors_.end() && !offer.path.empty()) {
    loaded.ok = false;
    loaded.error = error->second;
  }
  after(between(microseconds(300), milliseconds(2)),
        [this, pod, number, loaded, generation = ranks_[number].generation] {
          if (ranks_[number].alive && ranks_[number].generation == generation) deliver(pod, RankLoaded{number, loaded});
        });
}

// --- gates and ranks ---

void CoordinationHarness::hold(std::uint32_t pod) {
  for (std::uint32_t number = 0; number < ranks_.size(); ++number) {
    Rank& rank = ranks_[number];
    if (pod_of(number) != pod || !rank.alive || rank.finished) continue;
    rank.held = true;
    after(microseconds(20), [this, number] {
      if (ranks_[number].alive)
        deliver(pod_of(number), RankSeen{number, ranks_[number].word, ranks_[number].shadow_steps});
    });
  }
}

void CoordinationHarness::release(std::uint32_t pod, const ReleaseRanks& released) {
  const GateOrder order = released.order;
  const std::string name = order == GateOrder::stop ? "stop" : order == GateOrder::rebuild ? "rebuild" : "go_on";
  log("pod " + std::to_string(pod) + " releases its ranks, order " + name);
  for (std::uint32_t number = 0; number < ranks_.size(); ++number) {
    Rank& rank = ranks_[number];
    if (pod_of(number) != pod || !rank.alive) continue;
    rank.held = false;
    rank.permit = 0;
    rank.stop = rank.stop || order == GateOrder::stop;
    if (order == GateOrder::rebuild) {
      if (!rank.rebuilds) violate("rank " + std::to_string(number) + " is told to rebuild and cannot");
      rank.order = released.rebuild;
    }
    if (order == GateOrder::stop && !options_.trains) after(milliseconds(1), [this, number] { leave(number); });
    act_later(number, microseconds(10), microseconds(300));
  }
}

void CoordinationHarness::reach_gate(std::uint32_t number) {
  const Rank& rank = ranks_[number];
  if (rank.alive && !rank.held && !rank.stop && rank.must_rebuild()) rebuild(number);
}

void CoordinationHarness::report_failed_collective(std::uint32_t number) {
  Rank& rank = ranks_[number];
  set_word(number, {rank.word.step, RankPhase::collective_failed, rank.word.slot});
  // An order that is there already is the answer.
  if (!rank.held && rank.must_rebuild()) act_later(number, microseconds(10), microseconds(100));
  else deliver(pod_of(number), RankCollectiveFailed{number, {rank.word.step, "ring broken", rank.rebuilt}});
}

// rk_rebuild, as the library does it.
void CoordinationHarness::rebuild(std::uint32_t number) {
  Rank& rank = ranks_[number];
  const RebuildOrder order = rank.order;
  const auto be_there = [this, number, order] {
    Rank& back = ranks_[number];
    back.rebuilt = order.term;
    ++back.rebuilds_made;
    set_word(number, {order.step, RankPhase::between, back.word.slot});
    act_later(number, microseconds(10), milliseconds(1));
  };
  if (rank.word.step == order.step) {
    log("rank " + std::to_string(number) + " rebuilds at step " + std::to_string(order.step));
    be_there();
    return;
  }
  log("rank " + std::to_string(number) + " loads step " + std::to_string(order.step) + " from " + order.path +
      " to rebuild");
  if (rank.word.step > order.step)
    violate("rank " + std::to_string(number) + " is beyond the step that it is told to rebuild at");
  const bool there =
      std::any_of(published_.begin(), published_.end(),
                  [&](const Published& one) { return one.path == order.path && one.step == order.step; }) ||
      std::any_of(candidates_.begin(), candidates_.end(),
                  [&](const RestoreCandidate& one) { return one.path == order.path && one.step == order.step; });
  if (!there) violate("a rank is to rebuild from " + order.path + ", which nobody has published");
  set_word(number, {rank.word.step, RankPhase::restoring, rank.word.slot});
  after(load_time_, [this, number, order, be_there, generation = rank.generation] {
    Rank& back = ranks_[number];
    if (!back.alive || back.generation != generation) return;
    back.slots[0] = back.slots[1] = order.step;
    be_there();
  });
}

void CoordinationHarness::set_word(std::uint32_t number, RankStatus word) {
  Rank& rank = ranks_[number];
  rank.word = word;
  if (!rank.held) return;
  after(between(microseconds(50), milliseconds(1)), [this, number, generation = rank.generation] {
    if (ranks_[number].alive && ranks_[number].generation == generation)
      deliver(pod_of(number), RankSeen{number, ranks_[number].word, ranks_[number].shadow_steps});
  });
}

void CoordinationHarness::commit(std::uint32_t number) {
  Rank& rank = ranks_[number];
  const auto slot = static_cast<std::uint8_t>(1 - rank.word.slot);
  rank.slots[slot] = rank.word.step + 1;
  if (options_.shadow_every != 0 && (rank.word.step + 1) % options_.shadow_every == 0) {
    if (rank.shadow_steps.size() == 2) rank.shadow_steps.erase(rank.shadow_steps.begin());
    rank.shadow_steps.push_back(rank.word.step + 1);
  }
  set_word(number, {rank.word.step + 1, RankPhase::between, slot});
}

void CoordinationHarness::act_later(std::uint32_t number, Duration least, Duration most) {
  after(between(least, most), [this, number, generation = ranks_[number].generation] {
    if (ranks_[number].alive && ranks_[number].generation == generation) act(number);
  });
}

// One decision of a rank, as the library makes it at its gates.
void CoordinationHarness::act(std::uint32_t number) {
  Rank& rank = ranks_[number];
  if (rank.finished || rank.attempt == 0) return;
  const RankStatus word = rank.word;
  const bool at_a_gate = word.phase == RankPhase::between || word.phase == RankPhase::waiting_at_step ||
                         word.phase == RankPhase::waiting_at_update || word.phase == RankPhase::collective_failed;
  if (at_a_gate && !rank.held && !rank.stop && rank.must_rebuild()) return rebuild(number);
  switch (word.phase) {
    case RankPhase::between:
    case RankPhase::waiting_at_step:
      if (rank.stop && options_.trains) {
        leave(number);
      } else if (rank.held) {
        if (word.phase != RankPhase::waiting_at_step)
          set_word(number, {word.step, RankPhase::waiting_at_step, word.slot});
      } else if (options_.trains) {
        set_word(number, {word.step, RankPhase::computing, word.slot});
        act_later(number, microseconds(500), milliseconds(5));
      }
      return;
    case RankPhase::computing: {
      if (!options_.trains) return;
      if (rank.stop) {
        leave(number);
        return;
      }
      auto& contributed = contributions_[{rank.rebuilt, word.step + 1}];
      const bool first = contributed.insert(number).second;
      if (first) {
        act_later(number, microseconds(100), milliseconds(1));
        return;
      }
      const bool broken = (any_broken_ && rank.rebuilt <= broken_until_) ||
                          std::any_of(ranks_.begin(), ranks_.end(), [&](const Rank& other) {
                            return (!other.alive && other.word.step <= word.step) || other.rebuilt > rank.rebuilt;
                          });
      if (broken && prng_.unit() < (contributed.size() == ranks_.size() ? 0.3 : 0.05)) {
        report_failed_collective(number);
        act_later(number, milliseconds(1), milliseconds(2));
        return;
      }
      if (contributed.size() < ranks_.size()) {
        act_later(number, microseconds(500), milliseconds(2));
        return;
      }
      if (!rank.held && rank.must_rebuild()) return rebuild(number);
      const bool through = !rank.held || rank.permit == word.step + 1;
      set_word(number, {word.step, through ? RankPhase::updating : RankPhase::waiting_at_update, word.slot});
      if (through) act_later(number, microseconds(200), milliseconds(1));
      return;
    }
    case RankPhase::waiting_at_update:
      if (rank.stop) {
        leave(number);
      } else if (!rank.held ? options_.trains : rank.permit == word.step + 1) {
        set_word(number, {word.step, RankPhase::updating, word.slot});
        act_later(number, microseconds(200), milliseconds(1));
      }
      return;
    case RankPhase::updating:
      commit(number);
      act_later(number, microseconds(20), microseconds(200));
      return;
    case RankPhase::collective_failed:
      if (rank.stop) leave(number);
      return;
    default: return;
  }
}

// rk_close after RK_STOP.
void CoordinationHarness::leave(std::uint32_t number) {
  Rank& rank = ranks_[number];
  if (!rank.alive) return;
  log("rank " + std::to_string(number) + " leaves at step " + std::to_string(rank.word.step));
  finish_rank(number);
}

void CoordinationHarness::finish_rank(std::uint32_t number) {
  Rank& rank = ranks_[number];
  rank.finished = true;
  rank.word.phase = RankPhase::finished;
  deliver(pod_of(number), RankFinished{number});
  rank.alive = false;
  ++rank.generation;
  deliver(pod_of(number), RankDied{number, rank.word, rank.attempt, rank.shadow_steps});
}

}  // namespace rekindle::sidecar
