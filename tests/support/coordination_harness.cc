#include "tests/support/coordination_harness.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "worker-sidecar/checkpoint/hash.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/checkpoint/plan.h"

namespace rekindle {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// A run that goes this wrong has told enough.
constexpr std::size_t kViolationsMost = 20;

std::string numbers(const std::vector<std::uint32_t>& list) {
  std::string text;
  for (const auto number : list) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text.empty() ? "none" : text;
}

}  // namespace

Layout harness_layout() {
  return {{whole_tensor("w", Dtype::f32, {64, 4}), whole_tensor("b", Dtype::f32, {}), whole_tensor("m", Dtype::f32, {10})}};
}

CoordinationHarness::CoordinationHarness(HarnessOptions options) : options_(options), prng_(options.seed) {
  config_.pods = options.pods;
  config_.ranks_per_pod = options.ranks_per_pod;
  config_.after_fault = options.after_fault;
  config_.limits = options.limits;
  pods_.resize(options.pods);
  ranks_.resize(config_.world_size());
  for (std::uint32_t pod = 0; pod < options.pods; ++pod) {
    CoordinationConfig own = config_;
    own.ordinal = pod;
    pods_[pod].machine = std::make_unique<Coordination>(own);
    pods_[pod].up = true;
  }
}

// --- time ---

void CoordinationHarness::after(Duration delay, std::function<void()> what) { queue_.push({now_ + delay, ++order_, std::move(what)}); }

Duration CoordinationHarness::between(Duration least, Duration most) {
  return least + Duration(static_cast<Duration::rep>(prng_.below(static_cast<std::uint64_t>((most - least).count()) + 1)));
}

bool CoordinationHarness::run_until(const std::function<bool()>& condition, Duration most) {
  const Instant end = now_ + most;
  while (!condition()) {
    if (violations_.size() > kViolationsMost) return false;
    if (queue_.empty() || queue_.top().at > end) {
      now_ = end;
      return condition();
    }
    const Happening next = queue_.top();
    queue_.pop();
    now_ = next.at;
    next.what();
  }
  return true;
}

void CoordinationHarness::run_for(Duration duration) {
  run_until([] { return false; }, duration);
}

void CoordinationHarness::log(const std::string& line) {
  char time[32];
  std::snprintf(time, sizeof time, "%8.1f ", to_milliseconds(now_.time_since_epoch()));
  log_.push_back(time + line);
  for (const char c : log_.back()) trace_ = (trace_ ^ static_cast<unsigned char>(c)) * 1099511628211u;
}

std::vector<std::string> CoordinationHarness::take_log() { return std::exchange(log_, {}); }

// --- machines ---

void CoordinationHarness::deliver(std::uint32_t pod, CoordinationEvent event) {
  if (!pods_[pod].up) return;
  const CoordinationOutputs outputs = pods_[pod].machine->advance(event, now_);
  for (const CoordinationOutput& output : outputs) perform(pod, output);
  schedule_wake(pod);
}

void CoordinationHarness::deliver_later(std::uint32_t pod, Duration delay, CoordinationEvent event) {
  after(delay, [this, pod, generation = pods_[pod].generation, event = std::move(event)] {
    if (pods_[pod].generation == generation) deliver(pod, event);
  });
}

void CoordinationHarness::schedule_wake(std::uint32_t pod) {
  const auto wake = pods_[pod].machine->next_wake();
  if (!wake || (pods_[pod].wake && *pods_[pod].wake <= *wake && *pods_[pod].wake > now_)) return;
  if (*wake <= now_) {
    // advance() has just seen this time: asking for it again would spin for ever.
    violate("pod " + std::to_string(pod) + " wants to be woken in the past: " + pods_[pod].machine->describe());
  }
  const Instant at = std::max(*wake, now_ + microseconds(1));
  pods_[pod].wake = at;
  after(at - now_, [this, pod, at, generation = pods_[pod].generation] {
    if (pods_[pod].generation != generation || pods_[pod].wake != at) return;
    pods_[pod].wake.reset();
    deliver(pod, Tick{});
  });
}

bool CoordinationHarness::linked(std::uint32_t a, std::uint32_t b) const {
  return pods_[a].up && pods_[b].up && !links_down_.contains({std::min(a, b), std::max(a, b)});
}

void CoordinationHarness::perform(std::uint32_t pod, const SendToPeer& send) {
  const std::uint32_t to = send.ordinal;
  if (!linked(pod, to)) return;
  // Through the codec, as on the wire.
  const EncodedMessage encoded = encode_peer_message(send.message);
  const Result<PeerMessage> message = decode_peer_message(static_cast<std::uint16_t>(encoded.kind), encoded.body);
  if (!message) {
    violate("a message that cannot be read: " + message.error().message);
    return;
  }
  if (prng_.unit() < options_.drop) return;
  const int copies = prng_.unit() < options_.duplicate ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    after(between(microseconds(50), options_.delay_most),
          [this, pod, to, message = *message, attempt = pods_[pod].machine->attempt(), from_generation = pods_[pod].generation,
           to_generation = pods_[to].generation] {
            if (pods_[pod].generation == from_generation && pods_[to].generation == to_generation && linked(pod, to)) {
              deliver(to, PeerMessageArrived{pod, attempt, message});
            }
          });
  }
}

void CoordinationHarness::perform(std::uint32_t pod, const CoordinationOutput& output) {
  const std::string who = "pod " + std::to_string(pod) + " ";
  if (const auto* send = std::get_if<SendToPeer>(&output)) {
    perform(pod, *send);
  } else if (const auto* welcome = std::get_if<WelcomeRank>(&output)) {
    after(microseconds(100), [this, number = welcome->rank] {
      if (!ranks_[number].alive) return;
      RegisteredMessage registered{.layout = layouts_.contains(number) ? layouts_[number] : harness_layout()};
      if (options_.states) registered.states = {{"sampler", 16}};
      deliver(pod_of(number), RankRegistered{number, registered});
    });
  } else if (const auto* offer = std::get_if<OfferToRank>(&output)) {
    load(pod, offer->rank, offer->offer);
  } else if (const auto* take = std::get_if<TakeForRank>(&output)) {
    Rank& rank = ranks_[take->rank];
    rank.attempt = take->take.attempt;
    rank.slots[0] = rank.slots[1] = take->take.step;
    set_word(take->rank, {take->take.step, RankPhase::between, 0});
    if (options_.trains) act_later(take->rank, microseconds(10), milliseconds(1));
  } else if (const auto* refuse = std::get_if<RefuseRank>(&output)) {
    log(who + "refuses rank " + std::to_string(refuse->rank) + ": " + refuse->error.message);
  } else if (std::get_if<ListCandidates>(&output)) {
    deliver_later(pod, milliseconds(1), CandidatesListed{candidates_});
  } else if (const auto* verify = std::get_if<VerifyCandidate>(&output)) {
    const auto bad = bad_.find(verify->path);
    deliver_later(pod, milliseconds(1), CandidateVerified{verify->path, bad == bad_.end() ? Status{} : Status{std::unexpected(bad->second)}});
  } else if (const auto* claim = std::get_if<ClaimAttempt>(&output)) {
    log(who + "claims attempt " + std::to_string(next_attempt_) + " from " + (claim->parent ? claim->parent->path : "the start"));
    deliver_later(pod, milliseconds(1), AttemptClaimed{next_attempt_++});
  } else if (const auto* begun = std::get_if<AttemptBegun>(&output)) {
    log(who + "lives in attempt " + std::to_string(begun->attempt) + (begun->rejoined ? ", rejoined" : " from step " + std::to_string(begun->step)));
  } else if (std::get_if<HoldRanks>(&output)) {
    hold(pod);
  } else if (const auto* permit = std::get_if<PermitUpdate>(&output)) {
    if (permit->step != 0) log(who + "permits rank " + numbers(permit->ranks) + " the update to step " + std::to_string(permit->step));
    for (const std::uint32_t number : permit->ranks) {
      ranks_[number].permit = permit->step;
      act_later(number, microseconds(10), microseconds(300));
    }
  } else if (const auto* start = std::get_if<StartWrite>(&output)) {
    perform(pod, *start);
  } else if (const auto* states = std::get_if<WriteStates>(&output)) {
    perform(pod, *states);
  } else if (const auto* released = std::get_if<ReleaseRanks>(&output)) {
    release(pod, released->order);
  } else if (const auto* end = std::get_if<EndRanks>(&output)) {
    log(who + "ends rank " + numbers(end->ranks) + " with " + std::to_string(end->exit_code));
    for (const std::uint32_t number : end->ranks) ranks_[number].ended = ranks_[number].alive;
    for (const std::uint32_t number : end->ranks) after(milliseconds(1), [this, number] { kill_rank(number); });
  } else if (const auto* answer = std::get_if<AnswerHook>(&output)) {
    answer_hook(*answer);
  } else if (const auto* create = std::get_if<CreateFolder>(&output)) {
    const std::string path = checkpoint_folder_name({create->attempt, create->step, "n" + std::to_string(next_folder_++)});
    log(who + "makes folder " + path);
    deliver_later(pod, between(microseconds(200), milliseconds(2)), FolderCreated{create->term, path});
  } else if (const auto* publish = std::get_if<PublishCheckpoint>(&output)) {
    perform(pod, *publish);
  } else if (const auto* report = std::get_if<ReportBreakpoint>(&output)) {
    records_.push_back(report->record);
    BreakpointRecord shown = report->record;
    shown.agreed_milliseconds = shown.durable_milliseconds = 0;  // they follow from the times of the lines
    log(who + to_text(shown));
  } else if (const auto* restore = std::get_if<ReportRestore>(&output)) {
    log(who + "restored step " + std::to_string(restore->step) + ", refused on the way: " + std::to_string(restore->refused.size()));
  } else if (const auto* problem = std::get_if<NoteProblem>(&output)) {
    log(who + "problem " + problem->code + ": " + problem->message);
  } else if (std::get_if<ExitAllowed>(&output)) {
    pods_[pod].exit_allowed = true;
    log(who + "may exit");
  }
}

// --- storage ---

void CoordinationHarness::perform(std::uint32_t pod, const StartWrite& start) {
  log("rank " + std::to_string(start.rank) + " writes " + std::to_string(start.write.pieces.size()) + " pieces of step " +
      std::to_string(start.write.step));
  Rank& writer = ranks_[start.rank];
  writer.highest_term = std::max(writer.highest_term, start.write.term);
  const RankWord at_start = writer.word;
  after(between(write_time_ / 2, write_time_), [this, pod, start, at_start, generation = writer.generation] {
    Rank& rank = ranks_[start.rank];
    if (!rank.alive || rank.generation != generation || rank.highest_term != start.write.term) return;
    if (const auto error = write_errors_.find(start.rank); error != write_errors_.end()) {
      deliver(pod, RankWriteFailed{start.rank, {start.write.term, error->second}});
      return;
    }
    // The library looks at its own word before and after each chunk (P4).
    if (rank.word.step != start.write.step || at_start.step != start.write.step || !is_clean(rank.word)) {
      deliver(pod, RankWriteFailed{start.rank, {start.write.term, {ErrorCode::conflict, "the rank moved while it was written"}}});
      return;
    }
    WrittenFile file{.file = start.write.file, .bytes = 64};
    const Layout layout = harness_layout();
    for (const PiecePlan& piece : start.write.pieces) {
      for (const TensorDescription& tensor : layout.tensors) {
        if (tensor.name != piece.tensor) continue;
        const std::uint64_t bytes = row_bytes(tensor) * (piece.end_row - piece.begin_row);
        file.entries.push_back({piece_key(piece.tensor, piece.begin_row, piece.end_row, row_count(tensor)), piece.tensor, piece.begin_row,
                                piece.end_row, file.bytes, file.bytes + bytes});
        file.bytes += bytes;
      }
    }
    file.hash = hash_of("step " + std::to_string(start.write.step) + " rank " + std::to_string(start.rank));
    const std::string name = start.write.path + "/" + file.file;
    const auto [known, fresh] = files_.emplace(name, std::pair(start.write.step, file.hash));
    if (!fresh && known->second.second != file.hash) violate("two contents of " + name);
    deliver(pod, RankWritten{start.rank, {start.write.term, file}});
  });
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
    states.states.push_back({number, "sampler", states.file.name, state_key(number, "sampler"), 16, states.file.bytes, states.file.bytes + 16});
    states.file.bytes += 16;
  }
  if (states.states.empty()) states.file = {};
  deliver_later(pod, between(milliseconds(1), milliseconds(3)), StatesWritten{write.term, states});
}

void CoordinationHarness::perform(std::uint32_t pod, const PublishCheckpoint& publish) {
  Manifest manifest = publish.manifest;
  manifest.job = {"ns", "job", "uid"};
  manifest.time = "2026-01-01T00:00:00Z";
  if (const Status status = check_manifest(manifest); !status) violate("a manifest that breaks a rule: " + status.error().message);
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
    published_.push_back({publish.manifest.step, publish.path, publish.term, publish.manifest.inexact_ranks, now_});
    log("pod " + std::to_string(pod) + " published " + publish.path +
        (publish.manifest.inexact_ranks.empty() ? "" : " inexact for rank " + numbers(publish.manifest.inexact_ranks)));
    deliver(pod, CheckpointPublished{publish.term, PublishedCheckpoint{encoded.hash, file_bytes(publish.manifest)}});
  });
}

void CoordinationHarness::load(std::uint32_t pod, std::uint32_t number, const OfferMessage& offer) {
  LoadedMessage loaded{.path = offer.path, .step = offer.step, .ok = true};
  if (const auto error = load_errors_.find(number); error != load_errors_.end() && !offer.path.empty()) {
    loaded.ok = false;
    loaded.error = error->second;
  }
  after(between(microseconds(300), milliseconds(2)), [this, pod, number, loaded, generation = ranks_[number].generation] {
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
      if (ranks_[number].alive) deliver(pod_of(number), RankSeen{number, ranks_[number].word});
    });
  }
}

void CoordinationHarness::release(std::uint32_t pod, GateOrder order) {
  log("pod " + std::to_string(pod) + " releases its ranks, order " + (order == GateOrder::stop ? "stop" : "go_on"));
  for (std::uint32_t number = 0; number < ranks_.size(); ++number) {
    Rank& rank = ranks_[number];
    if (pod_of(number) != pod || !rank.alive) continue;
    rank.held = false;
    rank.permit = 0;
    rank.stop = rank.stop || order == GateOrder::stop;
    if (order == GateOrder::stop && !options_.trains) after(milliseconds(1), [this, number] { leave(number); });
    act_later(number, microseconds(10), microseconds(300));
  }
}

void CoordinationHarness::set_word(std::uint32_t number, RankWord word) {
  Rank& rank = ranks_[number];
  rank.word = word;
  if (!rank.held) return;
  after(between(microseconds(50), milliseconds(1)), [this, number, generation = rank.generation] {
    if (ranks_[number].alive && ranks_[number].generation == generation) deliver(pod_of(number), RankSeen{number, ranks_[number].word});
  });
}

void CoordinationHarness::commit(std::uint32_t number) {
  Rank& rank = ranks_[number];
  const auto slot = static_cast<std::uint8_t>(1 - rank.word.slot);
  rank.slots[slot] = rank.word.step + 1;
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
  const RankWord word = rank.word;
  switch (word.phase) {
    case RankPhase::between:
    case RankPhase::waiting_at_step:
      if (rank.stop && options_.trains) {
        leave(number);
      } else if (rank.held) {
        if (word.phase != RankPhase::waiting_at_step) set_word(number, {word.step, RankPhase::waiting_at_step, word.slot});
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
      auto& contributed = contributions_[word.step + 1];
      const bool first = contributed.insert(number).second;
      if (first) {
        act_later(number, microseconds(100), milliseconds(1));
        return;
      }
      const bool broken = std::any_of(ranks_.begin(), ranks_.end(), [&](const Rank& other) { return !other.alive && other.word.step <= word.step; });
      if (broken && prng_.unit() < (contributed.size() == ranks_.size() ? 0.3 : 0.05)) {
        set_word(number, {word.step, RankPhase::collective_failed, word.slot});
        deliver(pod_of(number), RankCollectiveFailed{number, {word.step, "ring broken"}});
        act_later(number, milliseconds(1), milliseconds(2));
        return;
      }
      if (contributed.size() < ranks_.size()) {
        act_later(number, microseconds(500), milliseconds(2));
        return;
      }
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
  deliver(pod_of(number), RankDied{number, rank.word, rank.attempt});
}

// --- faults and triggers ---

void CoordinationHarness::connect_rank(std::uint32_t number) {
  Rank& rank = ranks_[number];
  rank.alive = true;
  deliver(pod_of(number), RankConnected{number, rank.attempt, rank.highest_term, rank.word, rank.held});
}

void CoordinationHarness::connect_everything() {
  std::vector<PeerTableEntry> entries;
  for (std::uint32_t pod = 0; pod < config_.pods; ++pod) entries.push_back({pod, false});
  for (std::uint32_t number = 0; number < ranks_.size(); ++number) connect_rank(number);
  for (std::uint32_t a = 0; a < config_.pods; ++a) {
    for (std::uint32_t b = 0; b < config_.pods; ++b) {
      if (a != b) deliver(a, PeerConnected{b});
    }
  }
  table(entries, true);
}

void CoordinationHarness::start(std::optional<RestoreCandidate> restore) {
  if (restore) {
    candidates_ = {*restore};
    next_attempt_ = restore->attempt + 1;
  }
  connect_everything();
  if (!run_until([this] { return all_running(); }, std::chrono::seconds(60))) violate("the job did not come together: " + describe());
}

bool CoordinationHarness::all_running() const {
  return std::all_of(pods_.begin(), pods_.end(), [](const Pod& pod) { return !pod.up || pod.machine->attempt() != 0; });
}

void CoordinationHarness::table(const std::vector<PeerTableEntry>& entries, bool go) {
  table_ = PeerTableSeen{entries, go};
  for (std::uint32_t pod = 0; pod < config_.pods; ++pod) deliver(pod, *table_);
}

void CoordinationHarness::place(std::uint32_t number, std::uint64_t step, RankPhase phase) {
  Rank& rank = ranks_[number];
  rank.slots[0] = step;
  rank.slots[1] = step == 0 ? 0 : step - 1;
  set_word(number, {step, phase, 0});
}

void CoordinationHarness::kill_rank(std::uint32_t number) {
  Rank& rank = ranks_[number];
  if (!rank.alive) return;
  rank.alive = false;
  ++rank.generation;
  log("rank " + std::to_string(number) + " dies " + std::string(to_string(rank.word.phase)) + " at step " + std::to_string(rank.word.step));
  if (pods_[pod_of(number)].up) deliver_later(pod_of(number), microseconds(200), RankDied{number, rank.word, rank.attempt});
}

void CoordinationHarness::kill_pod(std::uint32_t pod) {
  if (!pods_[pod].up) return;
  log("pod " + std::to_string(pod) + " is gone");
  for (std::uint32_t number = 0; number < ranks_.size(); ++number) {
    if (pod_of(number) == pod && ranks_[number].alive) {
      ranks_[number].alive = false;
      ++ranks_[number].generation;
    }
  }
  pods_[pod].up = false;
  ++pods_[pod].generation;
  for (auto& [id, hook] : hooks_) {
    if (hook.pod == pod && !hook.answer) hook.pod_died = true;
  }
  for (std::uint32_t other = 0; other < config_.pods; ++other) {
    if (other != pod) deliver_later(other, between(microseconds(200), milliseconds(2)), PeerLost{pod});
  }
}

void CoordinationHarness::restart_sidecar(std::uint32_t pod) {
  if (!pods_[pod].up) return;
  log("sidecar of pod " + std::to_string(pod) + " is restarted");
  ++pods_[pod].generation;
  pods_[pod].wake.reset();
  CoordinationConfig own = config_;
  own.ordinal = pod;
  pods_[pod].machine = std::make_unique<Coordination>(own);
  for (auto& [id, hook] : hooks_) {
    if (hook.pod == pod && !hook.answer) hook.pod_died = true;  // its connection is gone with the sidecar
  }
  if (table_) deliver_later(pod, milliseconds(5), *table_);
  for (std::uint32_t other = 0; other < config_.pods; ++other) {
    if (other == pod || !linked(pod, other)) continue;
    deliver(other, PeerLost{pod});
    deliver_later(other, milliseconds(20), PeerConnected{pod});
    deliver_later(pod, milliseconds(20), PeerConnected{other});
  }
  for (std::uint32_t number = 0; number < ranks_.size(); ++number) {
    if (pod_of(number) != pod) continue;
    after(milliseconds(10), [this, number, pod, generation = pods_[pod].generation] {
      if (pods_[pod].generation != generation) return;
      if (!ranks_[number].alive) {
        deliver(pod, RankDied{number, ranks_[number].word, ranks_[number].attempt});
        return;
      }
      connect_rank(number);
      RegisteredMessage registered{.layout = harness_layout()};
      if (options_.states) registered.states = {{"sampler", 16}};
      deliver(pod, RankRegistered{number, registered});
    });
  }
}

void CoordinationHarness::set_link(std::uint32_t a, std::uint32_t b, bool up) {
  const std::pair link(std::min(a, b), std::max(a, b));
  if (up == !links_down_.contains(link)) return;
  if (up) links_down_.erase(link);
  else links_down_.insert(link);
  if (!pods_[a].up || !pods_[b].up) return;
  if (up) {
    deliver(a, PeerConnected{b});
    deliver(b, PeerConnected{a});
  } else {
    deliver(a, PeerLost{b});
    deliver(b, PeerLost{a});
  }
}

void CoordinationHarness::set_network(double drop, double duplicate, Duration delay_most) {
  options_.drop = drop;
  options_.duplicate = duplicate;
  options_.delay_most = delay_most;
}

void CoordinationHarness::hook(std::uint32_t pod, double seconds) {
  if (!pods_[pod].up) return;
  const std::uint64_t id = next_hook_++;
  hooks_[id] = {.pod = pod, .until = now_ + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds))};
  log("hook of pod " + std::to_string(pod));
  deliver(pod, HookCalled{id, "main", seconds});
}

void CoordinationHarness::answer_hook(const AnswerHook& answer) {
  const auto hook = hooks_.find(answer.hook);
  if (hook == hooks_.end()) {
    violate("an answer to a hook that was not called");
    return;
  }
  if (hook->second.answer) violate("a hook was answered twice");
  if (now_ > hook->second.until) violate("a hook was answered after its time");
  hook->second.answer = answer.done;
  log("hook of pod " + std::to_string(hook->second.pod) + " is told " + std::string(to_string(answer.done.outcome)) + " step=" +
      std::to_string(answer.done.step) + (answer.done.outcome == HookOutcome::failed ? ": " + answer.done.message : ""));
}

void CoordinationHarness::order(const std::string& breakpoint, AfterBreakpoint after_it, double seconds) {
  log("the operator orders " + breakpoint + ", " + std::string(to_string(after_it)));
  for (std::uint32_t pod = 0; pod < config_.pods; ++pod) deliver(pod, OrderArrived{breakpoint, "a fault elsewhere", seconds, after_it});
}

void CoordinationHarness::want_checkpoint(std::uint32_t number) {
  if (!ranks_[number].alive) return;
  log("rank " + std::to_string(number) + " wants a checkpoint");
  deliver(pod_of(number), RankWantsCheckpoint{number});
}

void CoordinationHarness::fail_collective(std::uint32_t number) {
  if (!ranks_[number].alive) return;
  log("rank " + std::to_string(number) + " says that a collective failed");
  set_word(number, {ranks_[number].word.step, RankPhase::collective_failed, ranks_[number].word.slot});
  deliver(pod_of(number), RankCollectiveFailed{number, {ranks_[number].word.step, "ring broken"}});
}

void CoordinationHarness::terminate(std::uint32_t pod, double seconds) {
  log("sidecar of pod " + std::to_string(pod) + " is told to end");
  deliver(pod, Terminating{seconds});
}

bool CoordinationHarness::quiet() const {
  for (const Pod& pod : pods_) {
    if (!pod.up) continue;
    const PodPhase phase = pod.machine->phase();
    if (phase == PodPhase::saving) return false;
    if (pod.machine->describe().find("coordinator=idle") == std::string::npos &&
        pod.machine->describe().find("coordinator=settled") == std::string::npos) {
      return false;
    }
  }
  return std::all_of(hooks_.begin(), hooks_.end(), [](const auto& entry) { return entry.second.answer || entry.second.pod_died; });
}

std::string CoordinationHarness::describe() const {
  std::string text;
  for (std::uint32_t pod = 0; pod < pods_.size(); ++pod) {
    text += "pod " + std::to_string(pod) + ": " + (pods_[pod].up ? pods_[pod].machine->describe() : "gone") + "\n";
  }
  for (std::uint32_t number = 0; number < ranks_.size(); ++number) {
    const Rank& rank = ranks_[number];
    text += "rank " + std::to_string(number) + ": " + (rank.finished ? "finished" : rank.alive ? "alive" : "dead") + " step=" +
            std::to_string(rank.word.step) + " phase=" + std::string(to_string(rank.word.phase)) + (rank.held ? " held" : "") + "\n";
  }
  return text;
}

}  // namespace rekindle
