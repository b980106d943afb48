#include "tests/support/coordination_harness.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "worker-sidecar/checkpoint/names.h"

namespace rekindle::sidecar {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// A run that goes this wrong has told enough.
constexpr std::size_t kViolationsMost = 20;

}  // namespace

const Layout& harness_layout() {
  static const Layout kLayout{
      {whole_tensor("w", Dtype::f32, {64, 4}), whole_tensor("b", Dtype::f32, {}), whole_tensor("m", Dtype::f32, {10})}};
  return kLayout;
}

std::optional<Layout> layout_for(std::string_view parallel, std::uint32_t rank, std::uint32_t world_size) {
  const auto rows = [](std::string name, std::uint64_t all, std::uint64_t begin, std::uint64_t end) {
    TensorDescription tensor = whole_tensor(std::move(name), Dtype::f32, {all, 4});
    tensor.offset = {begin, 0};
    tensor.shape = {end - begin, 4};
    return tensor;
  };
  if (parallel == "data") return harness_layout();
  if (parallel == "tensor")
    return Layout{{rows("w", 64, rank % 2 * 32, rank % 2 * 32 + 32), whole_tensor("norm", Dtype::f32, {16})}};
  if (parallel == "pipeline")
    return Layout{{whole_tensor("stage" + std::to_string(rank % 2) + ".w", Dtype::f32, {64, 4})}};
  if (parallel == "zero") {
    const std::uint64_t parts = world_size;
    return Layout{
        {whole_tensor("w", Dtype::f32, {64, 4}), rows("moment", 64, 64 * rank / parts, 64 * (rank + 1) / parts)}};
  }
  return std::nullopt;
}

CoordinationHarness::CoordinationHarness(HarnessOptions options) : options_(options), prng_(options.seed) {
  config_.pods = options.pods;
  config_.ranks_per_pod = options.ranks_per_pod;
  config_.after_fault = options.after_fault;
  config_.limits = options.limits;
  pods_.resize(options.pods);
  ranks_.resize(config_.world_size());
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank)
    ranks_[rank].rebuilds = options.rebuilds && !options.unable.contains(rank);
  for (std::uint32_t pod = 0; pod < options.pods; ++pod) {
    CoordinationConfig own = config_;
    own.ordinal = pod;
    pods_[pod].machine = std::make_unique<Coordination>(own);
    pods_[pod].up = true;
  }
}

// --- time ---

void CoordinationHarness::after(Duration delay, std::function<void()> what) {
  queue_.push({now_ + delay, ++order_, std::move(what)});
}

Duration CoordinationHarness::between(Duration least, Duration most) {
  return least +
         Duration(static_cast<Duration::rep>(prng_.below(static_cast<std::uint64_t>((most - least).count()) + 1)));
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
  const Result<PeerMessage> message = decode_peer_message(encoded.kind, encoded.body);
  if (!message) {
    violate("a message that cannot be read: " + message.error().message);
    return;
  }
  if (prng_.unit() < options_.drop) return;
  const int copies = prng_.unit() < options_.duplicate ? 2 : 1;
  const std::uint64_t link = links_broken_[{std::min(pod, to), std::max(pod, to)}];
  for (int i = 0; i < copies; ++i) {
    // A connection keeps the order of its messages. Two that arrive at one time stay in order too.
    Instant& newest = newest_arrival_[{pod, to}];
    newest = std::max(newest, now_ + between(microseconds(50), options_.delay_most));
    after(newest - now_, [this, pod, to, link, message = *message, attempt = pods_[pod].machine->attempt(),
                          from_generation = pods_[pod].generation, to_generation = pods_[to].generation] {
      if (pods_[pod].generation != from_generation || pods_[to].generation != to_generation || !linked(pod, to)) return;
      // What was under way on a connection that broke is lost with it.
      if (links_broken_[{std::min(pod, to), std::max(pod, to)}] != link) return;
      deliver(to, PeerMessageArrived{pod, attempt, message});
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
      deliver(pod_of(number), RankRegistered{number, registered_by(number)});
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
    if (listing_error_) deliver_later(pod, milliseconds(1), CandidatesListed{std::unexpected(*listing_error_)});
    else deliver_later(pod, milliseconds(1), CandidatesListed{candidates_});
  } else if (const auto* verify = std::get_if<VerifyCandidate>(&output)) {
    const auto bad = bad_.find(verify->path);
    deliver_later(pod, milliseconds(1),
                  CandidateVerified{verify->path, bad == bad_.end() ? Status{} : Status{std::unexpected(bad->second)}});
  } else if (const auto* claim = std::get_if<ClaimAttempt>(&output)) {
    log(who + "claims attempt " + std::to_string(next_attempt_) + " from " +
        (claim->parent ? claim->parent->path : "the start"));
    if (claim_error_) deliver_later(pod, milliseconds(1), AttemptClaimed{std::unexpected(*claim_error_), {}});
    else deliver_later(pod, milliseconds(1), AttemptClaimed{next_attempt_++});
  } else if (const auto* begun = std::get_if<AttemptBegun>(&output)) {
    pods_[pod].begun = *begun;
    log(who + "lives in attempt " + std::to_string(begun->attempt) +
        (begun->rejoined ? ", rejoined" : " from step " + std::to_string(begun->step)));
  } else if (const auto* remember = std::get_if<RememberJob>(&output)) {
    pods_[pod].remembered = *remember;
  } else if (std::get_if<HoldRanks>(&output)) {
    hold(pod);
  } else if (const auto* permit = std::get_if<PermitUpdate>(&output)) {
    if (permit->step != 0)
      log(who + "permits rank " + comma_separated(permit->ranks) + " the update to step " +
          std::to_string(permit->step));
    for (const std::uint32_t number : permit->ranks) {
      ranks_[number].permit = permit->step;
      act_later(number, microseconds(10), microseconds(300));
    }
  } else if (const auto* start = std::get_if<StartWrite>(&output)) {
    perform(pod, *start);
  } else if (const auto* from_shadow = std::get_if<WriteFromShadow>(&output)) {
    perform(pod, *from_shadow);
  } else if (const auto* states = std::get_if<WriteStates>(&output)) {
    perform(pod, *states);
  } else if (const auto* released = std::get_if<ReleaseRanks>(&output)) {
    release(pod, *released);
  } else if (const auto* end = std::get_if<EndRanks>(&output)) {
    log(who + "ends rank " + comma_separated(end->ranks) + " with " + std::to_string(end->exit_code));
    for (const std::uint32_t number : end->ranks) ranks_[number].ended = ranks_[number].alive;
    for (const std::uint32_t number : end->ranks) after(milliseconds(1), [this, number] { kill_rank(number); });
  } else if (const auto* answer = std::get_if<AnswerHook>(&output)) {
    answer_hook(*answer);
  } else if (const auto* create = std::get_if<CreateFolder>(&output)) {
    const std::string path =
        checkpoint_folder_name({create->attempt, create->step, "n" + std::to_string(next_folder_++)});
    if (folder_error_) {
      deliver_later(pod, milliseconds(1), FolderCreated{create->term, std::unexpected(*folder_error_)});
      return;
    }
    log(who + "makes folder " + path);
    deliver_later(pod, between(microseconds(200), milliseconds(2)), FolderCreated{create->term, path});
  } else if (const auto* remove = std::get_if<RemoveFolder>(&output)) {
    log(who + "removes folder " + remove->path);
    removed_.insert(remove->path);
    if (std::ranges::any_of(published_, [&](const Published& each) { return each.path == remove->path; }))
      violate(remove->path + " was published, and is removed");
  } else if (const auto* publish = std::get_if<PublishCheckpoint>(&output)) {
    perform(pod, *publish);
  } else if (const auto* report = std::get_if<ReportBreakpoint>(&output)) {
    records_.push_back(report->record);
    BreakpointRecord shown = report->record;
    // they follow from the times of the lines
    shown.agreed_milliseconds = shown.durable_milliseconds = 0;
    log(who + to_text(shown));
  } else if (const auto* restore = std::get_if<ReportRestore>(&output)) {
    log(who + "restored step " + std::to_string(restore->step) +
        ", refused on the way: " + std::to_string(restore->refused.size()));
  } else if (const auto* problem = std::get_if<NoteProblem>(&output)) {
    log(who + "problem " + problem->code + ": " + problem->message);
  } else if (std::get_if<ExitAllowed>(&output)) {
    pods_[pod].exit_allowed = true;
    log(who + "may exit");
  }
}

// --- faults and triggers ---

void CoordinationHarness::connect_rank(std::uint32_t number) {
  Rank& rank = ranks_[number];
  rank.alive = true;
  deliver(pod_of(number), RankConnected{number, rank.attempt, std::max(rank.highest_term, rank.order.term), rank.word,
                                        rank.held, rank.rebuilds, rank.order.term});
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
  if (!run_until([this] { return all_running(); }, std::chrono::seconds(60)))
    violate("the job did not come together: " + describe());
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
  log("rank " + std::to_string(number) + " dies " + std::string(to_string(rank.word.phase)) + " at step " +
      std::to_string(rank.word.step));
  if (pods_[pod_of(number)].up)
    deliver_later(pod_of(number), microseconds(200), RankDied{number, rank.word, rank.attempt, rank.shadow_steps});
}

void CoordinationHarness::kill_pod(std::uint32_t pod) {
  if (!pods_[pod].up) return;
  log("pod " + std::to_string(pod) + " is gone");
  for (std::uint32_t number = 0; number < ranks_.size(); ++number) {
    if (pod_of(number) == pod && ranks_[number].alive) {
      ranks_[number].alive = false;
      ++ranks_[number].generation;
    }
    if (pod_of(number) == pod) ranks_[number].shadow_steps.clear();
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
    // its connection is gone with the sidecar
    if (hook.pod == pod && !hook.answer) hook.pod_died = true;
  }
  if (const auto& left = pods_[pod].remembered; left) deliver(pod, JobRemembered{left->attempt, left->job_layout_hash});
  if (table_) deliver_later(pod, milliseconds(5), *table_);
  for (std::uint32_t other = 0; other < config_.pods; ++other) {
    if (other == pod || !linked(pod, other)) continue;
    deliver(other, PeerLost{pod});
    after(milliseconds(20),
          [this, pod, other, generation = pods_[pod].generation, other_generation = pods_[other].generation] {
            // A restart after this one, or of the other, connects them.
            if (pods_[pod].generation != generation || pods_[other].generation != other_generation) return;
            if (!linked(pod, other)) return;
            deliver(other, PeerConnected{pod});
            deliver(pod, PeerConnected{other});
          });
  }
  for (std::uint32_t number = 0; number < ranks_.size(); ++number) {
    if (pod_of(number) != pod) continue;
    after(milliseconds(10), [this, number, pod, generation = pods_[pod].generation] {
      if (pods_[pod].generation != generation) return;
      if (!ranks_[number].alive) {
        deliver(pod, RankDied{number, ranks_[number].word, ranks_[number].attempt, ranks_[number].shadow_steps});
        return;
      }
      connect_rank(number);
      deliver(pod, RankRegistered{number, registered_by(number)});
    });
  }
}

void CoordinationHarness::set_link(std::uint32_t a, std::uint32_t b, bool up) {
  const std::pair link(std::min(a, b), std::max(a, b));
  if (up == !links_down_.contains(link)) return;
  if (up) {
    links_down_.erase(link);
  } else {
    links_down_.insert(link);
    ++links_broken_[link];
  }
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
  hooks_[id] = {.pod = pod,
                .until = now_ + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds))};
  log("hook of pod " + std::to_string(pod));
  deliver(pod, HookCalled{id, "main", seconds});
}

void CoordinationHarness::hook_goes(std::uint64_t id) {
  Hook& hook = hooks_.at(id);
  hook.gone = true;
  deliver(hook.pod, HookGone{id});
}

void CoordinationHarness::answer_hook(const AnswerHook& answer) {
  const auto hook = hooks_.find(answer.hook);
  if (hook == hooks_.end()) {
    violate("an answer to a hook that was not called");
    return;
  }
  if (hook->second.answer) violate("a hook was answered twice");
  if (hook->second.gone) violate("a hook was answered that is gone");
  if (now_ > hook->second.until) violate("a hook was answered after its time");
  hook->second.answer = answer.done;
  log("hook of pod " + std::to_string(hook->second.pod) + " is told " + std::string(to_string(answer.done.outcome)) +
      " step=" + std::to_string(answer.done.step) +
      (answer.done.outcome == HookOutcome::failed ? ": " + answer.done.message : ""));
}

void CoordinationHarness::order(const std::string& breakpoint, AfterBreakpoint after_it, double seconds) {
  log("the operator orders " + breakpoint + ", " + std::string(to_string(after_it)));
  for (std::uint32_t pod = 0; pod < config_.pods; ++pod)
    deliver(pod, OrderArrived{breakpoint, "a fault elsewhere", seconds, after_it});
}

void CoordinationHarness::want_checkpoint(std::uint32_t number) {
  if (!ranks_[number].alive) return;
  log("rank " + std::to_string(number) + " wants a checkpoint");
  deliver(pod_of(number), RankWantsCheckpoint{number});
}

void CoordinationHarness::fail_collective(std::uint32_t number) {
  if (!ranks_[number].alive) return;
  log("rank " + std::to_string(number) + " says that a collective failed");
  report_failed_collective(number);
}

void CoordinationHarness::break_communicators() {
  for (const Rank& rank : ranks_) broken_until_ = std::max(broken_until_, rank.rebuilt);
  any_broken_ = true;
  log("all communicators break");
}

void CoordinationHarness::terminate(std::uint32_t pod, double seconds) {
  log("sidecar of pod " + std::to_string(pod) + " is told to end");
  deliver(pod, Terminating{seconds});
}

bool CoordinationHarness::quiet() const {
  for (const Pod& pod : pods_) {
    if (!pod.up) continue;
    const SidecarPhase phase = pod.machine->phase();
    if (phase == SidecarPhase::saving) return false;
    if (pod.machine->describe().find("coordinator=idle") == std::string::npos &&
        pod.machine->describe().find("coordinator=settled") == std::string::npos) {
      return false;
    }
  }
  return std::ranges::all_of(
      hooks_, [](const auto& entry) { return entry.second.answer || entry.second.pod_died || entry.second.gone; });
}

std::string CoordinationHarness::describe() const {
  std::string text;
  for (std::uint32_t pod = 0; pod < pods_.size(); ++pod) {
    text += "pod " + std::to_string(pod) + ": " + (pods_[pod].up ? pods_[pod].machine->describe() : "gone") + "\n";
  }
  for (std::uint32_t number = 0; number < ranks_.size(); ++number) {
    const Rank& rank = ranks_[number];
    text += "rank " + std::to_string(number) + ": " +
            (rank.finished ? "finished"
             : rank.alive  ? "alive"
                           : "dead") +
            " step=" + std::to_string(rank.word.step) + " phase=" + std::string(to_string(rank.word.phase)) +
            (rank.held ? " held" : "") + "\n";
  }
  return text;
}

}  // namespace rekindle::sidecar
