#include "tests/support/coordination_harness.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "common/base/format.h"
#include "worker-sidecar/checkpoint/hash.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/checkpoint/plan.h"

namespace rekindle::sidecar {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// A run that goes this wrong has shown enough.
constexpr std::size_t kViolationsMax = 20;

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
    if (violations_.size() > kViolationsMax) return false;
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
    violate(format("pod {} wants to be woken in the past: {}", pod, pods_[pod].machine->describe()));
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
    perform(pod, *take);
  } else if (const auto* refuse = std::get_if<RefuseRank>(&output)) {
    perform(pod, *refuse);
  } else if (std::get_if<ListCandidates>(&output)) {
    if (listing_error_) deliver_later(pod, milliseconds(1), CandidatesListed{std::unexpected(*listing_error_)});
    else deliver_later(pod, milliseconds(1), CandidatesListed{candidates_});
  } else if (const auto* verify = std::get_if<VerifyCandidate>(&output)) {
    const auto bad = bad_.find(verify->path);
    deliver_later(pod, milliseconds(1),
                  CandidateVerified{verify->path, bad == bad_.end() ? Status{} : Status{std::unexpected(bad->second)}});
  } else if (const auto* claim = std::get_if<ClaimAttempt>(&output)) {
    log(format("{}claims attempt {} from {}", who, next_attempt_, claim->parent ? claim->parent->path : "the start"));
    if (claim_error_) deliver_later(pod, milliseconds(1), AttemptClaimed{std::unexpected(*claim_error_), {}});
    else deliver_later(pod, milliseconds(1), AttemptClaimed{next_attempt_++});
  } else if (const auto* begun = std::get_if<AttemptBegun>(&output)) {
    pods_[pod].begun = *begun;
    log(format("{}lives in attempt {}{}", who, begun->attempt,
               begun->rejoined ? ", rejoined" : " from step " + std::to_string(begun->step)));
  } else if (const auto* remember = std::get_if<RememberJob>(&output)) {
    pods_[pod].remembered = *remember;
  } else if (std::get_if<HoldRanks>(&output)) {
    hold(pod);
  } else if (const auto* permit = std::get_if<PermitUpdate>(&output)) {
    if (permit->step != 0)
      log(format("{}permits rank {} the update to step {}", who, comma_separated(permit->ranks), permit->step));
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
    log(format("{}ends rank {} with {}", who, comma_separated(end->ranks), end->exit_code));
    for (const std::uint32_t number : end->ranks) ranks_[number].ended = ranks_[number].alive;
    for (const std::uint32_t number : end->ranks) after(milliseconds(1), [this, number] { kill_rank(number); });
  } else if (const auto* answer = std::get_if<AnswerHook>(&output)) {
    answer_hook(*answer);
  } else if (const auto* told = std::get_if<AnswerCheckpoint>(&output)) {
    answer_checkpoint(*told);
  } else if (const auto* create = std::get_if<CreateFolder>(&output)) {
    const std::string path =
        checkpoint_folder_name({create->attempt, create->step, "n" + std::to_string(next_folder_++)});
    if (folder_error_) {
      deliver_later(pod, milliseconds(1), FolderCreated{create->term, std::unexpected(*folder_error_)});
      return;
    }
    log(format("{}makes folder {}", who, path));
    deliver_later(pod, between(microseconds(200), milliseconds(2)), FolderCreated{create->term, path});
  } else if (const auto* remove = std::get_if<RemoveFolder>(&output)) {
    log(format("{}removes folder {}", who, remove->path));
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
    log(format("{}restored step {}, refused on the way: {}", who, restore->step, restore->refused.size()));
  } else if (const auto* problem = std::get_if<NoteProblem>(&output)) {
    log(format("{}problem {}: {}", who, problem->code, problem->message));
  } else if (const auto* exit = std::get_if<ExitAllowed>(&output)) {
    perform(pod, *exit);
  }
}

void CoordinationHarness::perform(std::uint32_t pod, const TakeForRank& take) {
  if (pods_[pod].exit_allowed) violate(format("rank {} begins an attempt in a pod that may exit", take.rank));
  Rank& rank = ranks_[take.rank];
  rank.attempt = take.take.attempt;
  rank.slots[0] = rank.slots[1] = take.take.step;
  set_word(take.rank, {take.take.step, RankPhase::between, 0});
  if (options_.trains) act_later(take.rank, microseconds(10), milliseconds(1));
}

void CoordinationHarness::perform(std::uint32_t pod, const RefuseRank& refuse) {
  log(format("pod {} refuses rank {}: {}", pod, refuse.rank, refuse.error.message));
  if (ranks_[refuse.rank].attempt != 0) return;
  // Its rk_open fails, and the program ends.
  after(milliseconds(1), [this, number = refuse.rank, generation = ranks_[refuse.rank].generation] {
    if (ranks_[number].generation == generation) kill_rank(number);
  });
}

// As the shell does it: a moment later the sidecar is gone, and soon the rest of the pod.
void CoordinationHarness::perform(std::uint32_t pod, const ExitAllowed&) {
  log(format("pod {} may exit", pod));
  pods_[pod].exit_allowed = true;
  for (std::uint32_t number = 0; number < ranks_.size(); ++number) {
    const Rank& rank = ranks_[number];
    const bool trains = rank.alive && !rank.finished && rank.attempt != 0 && !rank.held && !rank.stop;
    if (pod_of(number) == pod && trains && now_ < *pods_[pod].ends_until)
      violate(format("pod {} may exit while rank {} trains", pod, number));
  }
  after(milliseconds(300), [this, pod, generation = pods_[pod].generation] {
    if (pods_[pod].generation == generation) kill_pod(pod);
  });
}

// --- faults and triggers ---

void CoordinationHarness::connect_rank(std::uint32_t number) {
  Rank& rank = ranks_[number];
  rank.alive = true;
  deliver(pod_of(number), RankConnected{number, rank.attempt, std::max(rank.highest_term, rank.order.term), rank.word,
                                        rank.held, rank.rebuilds, rank.order.term});
  // As the library does, for a sidecar that has come back.
  if (const auto wanted = checkpoints_wanted_.find(number); wanted != checkpoints_wanted_.end())
    deliver(pod_of(number), RankRequestedCheckpoint{number, wanted->second});
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
  checkpoints_wanted_.erase(number);
  log(format("rank {} dies {} at step {}", number, to_string(rank.word.phase), rank.word.step));
  if (pods_[pod_of(number)].up)
    deliver_later(pod_of(number), microseconds(200), RankDied{number, rank.word, rank.attempt, rank.shadow_steps});
}

void CoordinationHarness::kill_pod(std::uint32_t pod) {
  if (!pods_[pod].up) return;
  log(format("pod {} is gone", pod));
  for (std::uint32_t number = 0; number < ranks_.size(); ++number) {
    if (pod_of(number) == pod && ranks_[number].alive) {
      ranks_[number].alive = false;
      ++ranks_[number].generation;
      checkpoints_wanted_.erase(number);
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
  log(format("sidecar of pod {} is restarted", pod));
  ++pods_[pod].generation;
  pods_[pod].wake.reset();
  pods_[pod].exit_allowed = false;
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
  log(format("hook of pod {}", pod));
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
  log(format("hook of pod {} is told {} step={}{}", hook->second.pod, to_string(answer.done.outcome), answer.done.step,
             answer.done.outcome == HookOutcome::failed ? ": " + answer.done.message : ""));
}

void CoordinationHarness::answer_checkpoint(const AnswerCheckpoint& answer) {
  log(format("rank {} is told {} step={} of its request at step {}: {}", answer.rank, to_string(answer.done.outcome),
             answer.done.step, answer.done.requested, answer.done.message));
  checkpoint_answers_.push_back(answer);
  const auto wanted = checkpoints_wanted_.find(answer.rank);
  // The answer to a request that a newer one has replaced means nothing to the rank.
  if (wanted == checkpoints_wanted_.end() || wanted->second != answer.done.requested) return;
  checkpoints_wanted_.erase(wanted);
  if (answer.done.outcome != HookOutcome::durable) return;
  if (answer.done.step < answer.done.requested ||
      std::ranges::none_of(published_, [&](const Published& each) { return each.step == answer.done.step; }))
    violate(format("rank {} was told that step {} is durable", answer.rank, answer.done.step));
}

void CoordinationHarness::order(const std::string& breakpoint, AfterBreakpoint after_it, double seconds) {
  log(format("the operator orders {}, {}", breakpoint, to_string(after_it)));
  for (std::uint32_t pod = 0; pod < config_.pods; ++pod)
    deliver(pod, OrderArrived{breakpoint, "a fault elsewhere", seconds, after_it});
}

void CoordinationHarness::want_checkpoint(std::uint32_t number) {
  if (!ranks_[number].alive || ranks_[number].attempt == 0) return;
  log(format("rank {} wants a checkpoint", number));
  checkpoints_wanted_[number] = ranks_[number].word.step;
  deliver(pod_of(number), RankRequestedCheckpoint{number, ranks_[number].word.step});
}

void CoordinationHarness::fail_collective(std::uint32_t number) {
  if (!ranks_[number].alive) return;
  log(format("rank {} says that a collective failed", number));
  report_failed_collective(number);
}

void CoordinationHarness::break_communicators() {
  for (const Rank& rank : ranks_) broken_until_ = std::max(broken_until_, rank.rebuilt);
  any_broken_ = true;
  log("all communicators break");
}

void CoordinationHarness::terminate(std::uint32_t pod, double seconds) {
  if (!pods_[pod].up) return;
  log(format("sidecar of pod {} is told to end", pod));
  pods_[pod].ends_until = now_ + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  deliver(pod, Terminating{seconds});
}

void CoordinationHarness::freeze(Duration duration) {
  log(format("everything is frozen for {} ms", std::chrono::duration_cast<milliseconds>(duration).count()));
  now_ += duration;
  std::priority_queue<Happening> later;
  for (; !queue_.empty(); queue_.pop()) {
    Happening happening = queue_.top();
    happening.at = std::max(happening.at, now_);
    later.push(std::move(happening));
  }
  queue_ = std::move(later);
  for (std::uint32_t pod = 0; pod < config_.pods; ++pod) deliver(pod, Tick{});
}

bool CoordinationHarness::quiet() const {
  if (!checkpoints_wanted_.empty()) return false;
  for (std::uint32_t ordinal = 0; ordinal < pods_.size(); ++ordinal) {
    const Pod& pod = pods_[ordinal];
    if (!pod.up) continue;
    if (pod.machine->attempt() == 0) {
      // It waits for other pods; one that came back to ranks that live finds them first.
      for (std::uint32_t number = 0; number < ranks_.size(); ++number) {
        if (pod_of(number) == ordinal && ranks_[number].alive && ranks_[number].attempt != 0) return false;
      }
      continue;
    }
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
    text += format("pod {}: {}\n", pod, pods_[pod].up ? pods_[pod].machine->describe() : "gone");
  }
  for (std::uint32_t number = 0; number < ranks_.size(); ++number) {
    const Rank& rank = ranks_[number];
    text += format("rank {}: {} step={} phase={}{}\n", number,
                   rank.finished ? "finished"
                   : rank.alive  ? "alive"
                                 : "dead",
                   rank.word.step, to_string(rank.word.phase), rank.held ? " held" : "");
  }
  return text;
}

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
  log(format("rank {} writes {} pieces of step {}", start.rank, start.write.pieces.size(), start.write.step));
  Rank& writer = ranks_[start.rank];
  writer.highest_term = std::max(writer.highest_term, start.write.term);
  const RankStatus at_start = writer.word;
  after(between(write_time_ / 2, write_time_), [this, pod, start, at_start, generation = writer.generation] {
    Rank& rank = ranks_[start.rank];
    if (!rank.alive || rank.generation != generation || rank.highest_term != start.write.term) return;
    if (const auto failing = write_errors_.find(start.rank);
        failing != write_errors_.end() && failing->second.times_left-- > 0) {
      deliver(pod, RankWriteFailed{start.rank, {start.write.term, failing->second.error}});
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
  log(format("pod {} writes {} pieces of step {} from the shadow of rank {}", pod, start.write.pieces.size(),
             start.write.step, start.rank));
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
    if (!registered) violate(format("rank {} is to write rows of {} that it does not hold", rank, piece.tensor));
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
        violate(format("{} does not have \"{}\" of rank {}", publish.path, tensor.name, number));
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
    log(format("pod {} published {}{}", pod, publish.path,
               publish.manifest.inexact_ranks.empty()
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
  log(format("pod {} releases its ranks, order {}", pod, name));
  for (std::uint32_t number = 0; number < ranks_.size(); ++number) {
    Rank& rank = ranks_[number];
    if (pod_of(number) != pod || !rank.alive) continue;
    rank.held = false;
    rank.permit = 0;
    rank.stop = rank.stop || order == GateOrder::stop;
    if (order == GateOrder::rebuild) {
      if (!rank.rebuilds) violate(format("rank {} is told to rebuild and cannot", number));
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
    log(format("rank {} rebuilds at step {}", number, order.step));
    be_there();
    return;
  }
  log(format("rank {} loads step {} from {} to rebuild", number, order.step, order.path));
  if (rank.word.step > order.step) violate(format("rank {} is beyond the step that it is told to rebuild at", number));
  const bool there =
      std::any_of(published_.begin(), published_.end(),
                  [&](const Published& one) { return one.path == order.path && one.step == order.step; }) ||
      std::any_of(candidates_.begin(), candidates_.end(),
                  [&](const RestoreCandidate& one) { return one.path == order.path && one.step == order.step; });
  if (!there) violate(format("a rank is to rebuild from {}, which nobody has published", order.path));
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
  log(format("rank {} leaves at step {}", number, rank.word.step));
  finish_rank(number);
}

void CoordinationHarness::finish_rank(std::uint32_t number) {
  Rank& rank = ranks_[number];
  rank.finished = true;
  rank.word.phase = RankPhase::finished;
  checkpoints_wanted_.erase(number);
  deliver(pod_of(number), RankFinished{number});
  rank.alive = false;
  ++rank.generation;
  deliver(pod_of(number), RankDied{number, rank.word, rank.attempt, rank.shadow_steps});
}

}  // namespace rekindle::sidecar
