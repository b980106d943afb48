#include "worker-sidecar/coordination/job_start.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/format.h"

namespace rekindle::sidecar {
namespace {

bool reached(const ReadyMessage& ready, std::uint32_t ranks_per_pod, ReadyState state) {
  return ready.ranks.size() == ranks_per_pod && std::all_of(ready.ranks.begin(), ready.ranks.end(),
                                                            [&](const ReadyRank& rank) { return rank.state >= state; });
}

}  // namespace

void JobStart::send(std::uint32_t ordinal, PeerMessage message, CoordinationOutputs& out) const {
  out.push_back(SendToPeer{ordinal, std::move(message)});
}
void JobStart::send_to_all(const PeerMessage& message, CoordinationOutputs& out) const {
  for (const std::uint32_t pod : pods_.reachable_pods()) send(pod, message, out);
}

// --- member ---

void JobStart::on_rank_connected(std::uint32_t rank, Instant now, CoordinationOutputs& out) {
  welcomed_.erase(rank);
  offered_ranks_.erase(rank);
  on_change(now, out);
}

void JobStart::on_change(Instant now, CoordinationOutputs& out) {
  if (running() || rejoin(now, out)) return;
  next_ready_ = now + 2 * config_.limits.resend;
  send(pods_.lowest_reachable(), ready(), out);
  drive(now, out);
}

// The ranks of the pod live in one attempt already, or died in it: it was this sidecar that was
// away.
bool JobStart::rejoin(Instant now, CoordinationOutputs& out) {
  std::uint32_t attempt = 0;
  for (const auto& [number, rank] : ranks_.all()) attempt = std::max(attempt, rank.attempt);
  if (attempt == 0) return false;
  if (!rejoin_at_) rejoin_at_ = now + config_.limits.rejoin_wait;
  if (!ranks_.all_known() && now < *rejoin_at_) return false;
  for (const auto& [number, rank] : ranks_.all()) {
    if (rank.attempt != attempt) return false;
  }
  taken_ = {.attempt = attempt};
  rejoined_ = true;
  out.push_back(AttemptBegun{.attempt = attempt, .rejoined = true});
  for (const std::uint32_t pod : pods_.reachable_pods()) {
    if (pod != config_.ordinal) on_pod_met(pod, out);
  }
  return true;
}

ReadyMessage JobStart::ready() const {
  ReadyMessage message{.ordinal = config_.ordinal, .attempt = taken_.attempt};
  bool all_registered = true;
  for (const auto& [number, rank] : ranks_.all()) {
    if (!rank.alive) continue;
    ReadyState state = ReadyState::connected;
    if (rank.registered) state = ReadyState::registered;
    if (rank.loaded && rank.loaded->ok) state = ReadyState::loaded;
    if (running()) state = ReadyState::running;
    all_registered = all_registered && rank.registered.has_value();
    message.ranks.push_back({number, state});
  }
  if (!message.ranks.empty() && all_registered) {
    message.layout_hash = layouts_.common_hash(config_.first_rank(), config_.ranks_per_pod);
    if (message.layout_hash.empty())
      message.layouts = layouts_.list(config_.first_rank(), config_.ranks_per_pod, layouts_.hashes());
  }
  if (running()) {
    message.step = taken_.step;
    message.path = taken_.path;
    message.manifest_hash = taken_.manifest_hash;
  } else if (offered_) {
    message.step = offered_->step;
    message.path = offered_->path;
    message.manifest_hash = offered_->manifest_hash;
  }
  return message;
}

void JobStart::on_begin(std::uint32_t from, const BeginMessage& begin, CoordinationOutputs& out) {
  if (from != config_.ordinal) layouts_.adopt(from, begin.layouts, !running());
  if (running()) {
    // Of a pod that came back.
    if (!begin.layout_hashes.empty() && from != config_.ordinal) send_layouts(from, begin.layout_hashes, out);
    return;
  }
  for (const auto& [number, rank] : ranks_.all()) {
    if (!rank.alive || !welcomed_.insert(number).second) continue;
    welcomed_any_ = true;
    out.push_back(WelcomeRank{number});
  }
  if (begin.layout_hashes.empty()) return;
  ReadyMessage answer = ready();
  if (!reached(answer, config_.ranks_per_pod, ReadyState::registered)) return;
  for (std::vector<HeldLayout>& layouts :
       one_layout_each(layouts_.list(config_.first_rank(), config_.ranks_per_pod, begin.layout_hashes))) {
    if (std::none_of(layouts.begin(), layouts.end(), [](const HeldLayout& held) { return held.layout.has_value(); }))
      continue;
    answer.layouts = std::move(layouts);
    send(from, answer, out);
  }
}

void JobStart::on_offer(std::uint32_t from, const OfferMessage& offer, CoordinationOutputs& out) {
  if (running()) return;
  offered_by_ = from;
  if (!offered_ || *offered_ != offer) {
    offered_ = offer;
    offered_ranks_.clear();
  }
  for (const auto& [number, rank] : ranks_.all()) {
    if (!rank.alive || !rank.registered || !offered_ranks_.insert(number).second) continue;
    ranks_.find(number)->loaded.reset();
    out.push_back(OfferToRank{number, offer});
  }
  answer_if_loaded(out);
}

void JobStart::on_rank_loaded(const RankLoaded& loaded, CoordinationOutputs& out) {
  LocalRank* rank = ranks_.find(loaded.rank);
  if (running() || rank == nullptr || !offered_ || loaded.loaded.path != offered_->path ||
      !offered_ranks_.contains(loaded.rank))
    return;
  rank->loaded = loaded.loaded;
  answer_if_loaded(out);
}

// One answer for the pod once all its ranks have one. After a failure the same offer may come again
// and is then tried again.
void JobStart::answer_if_loaded(CoordinationOutputs& out) {
  if (closed_) return;
  PodLoadedMessage answer{.ordinal = config_.ordinal, .path = offered_->path, .step = offered_->step, .ok = true};
  for (const auto& [number, rank] : ranks_.all()) {
    if (!rank.alive) continue;
    if (!rank.loaded || rank.loaded->path != offered_->path) return;
    if (answer.ok && !rank.loaded->ok) {
      answer.ok = false;
      answer.error = with_context(rank.loaded->error, format("rank {}", number));
    }
  }
  if (!answer.ok) offered_ranks_.clear();
  send(offered_by_, answer, out);
}

void JobStart::on_take(const TakeMessage& take, CoordinationOutputs& out) {
  if (running() || take.attempt == 0 || !ranks_.all_connected()) return;
  for (const auto& [number, rank] : ranks_.all()) {
    if (!rank.alive || !rank.loaded || !rank.loaded->ok || rank.loaded->path != take.path ||
        rank.loaded->step != take.step)
      return;
  }
  taken_ = take;
  layouts_.learn_if_alike(take.job_layout_hash);
  for (const auto& [number, rank] : ranks_.all()) out.push_back(TakeForRank{number, take});
  for (const std::uint32_t pod : pods_.reachable_pods()) {
    if (pod != config_.ordinal) on_pod_met(pod, out);
  }
  out.push_back(AttemptBegun{.attempt = take.attempt,
                             .step = take.step,
                             .path = take.path,
                             .manifest_hash = take.manifest_hash,
                             .summary = take.summary});
}

void JobStart::on_refused(const FailedMessage& failed, CoordinationOutputs& out) {
  if (running()) return;
  refuse_waiting_ranks(failed.error, out);
  out.push_back(NoteProblem{"restore_failed", failed.error.message});
}

// Not those that live in an attempt already.
void JobStart::refuse_waiting_ranks(const Error& error, CoordinationOutputs& out) {
  for (const std::uint32_t number : ranks_.live()) {
    LocalRank& rank = *ranks_.find(number);
    if (rank.attempt != 0) continue;
    out.push_back(RefuseRank{number, error});
    // it ends with the error; what counts is the process that comes after it
    rank.alive = false;
  }
}

void JobStart::close(Instant now, CoordinationOutputs& out) {
  if (running() || std::exchange(closed_, true)) return;
  refuse_waiting_ranks(closed_error(), out);
  on_change(now, out);
}

Error JobStart::closed_error() {
  return {ErrorCode::unavailable,
          "no attempt begins here any more, since this pod or run is being ended; no step is lost, and the job goes on "
          "when it is started again",
          Retry::yes};
}

// --- coordinator ---

void JobStart::on_pod_lost(std::uint32_t ordinal, Instant now, CoordinationOutputs& out) {
  ready_.erase(ordinal);
  on_change(now, out);
}

void JobStart::on_ready(std::uint32_t from, const ReadyMessage& ready, Instant now, CoordinationOutputs& out) {
  if (running()) {
    if (ready.attempt != 0 || from == config_.ordinal) return;
    send(from, this->ready(), out);
    // The take did not reach it: what it has loaded is what the job took. A fresh process has
    // loaded nothing, so it is never let in here.
    if (!rejoined_ && reached(ready, config_.ranks_per_pod, ReadyState::loaded) && ready.path == taken_.path &&
        ready.step == taken_.step) {
      send(from, taken_, out);
    }
    return;
  }
  ready_[from] = ready;
  if (from != config_.ordinal) {
    if (!ready.layout_hash.empty()) {
      HeldLayout all{.hash = ready.layout_hash, .ranks = {}, .layout = {}};
      for (std::uint32_t i = 0; i < config_.ranks_per_pod; ++i) all.ranks.push_back(from * config_.ranks_per_pod + i);
      layouts_.adopt(from, {all});
    }
    layouts_.adopt(from, ready.layouts);
  }
  drive(now, out);
}

bool JobStart::all_pods(ReadyState state) const {
  if (!pods_.all_reachable() || ready_.size() != config_.pods) return false;
  return std::all_of(ready_.begin(), ready_.end(), [&](const auto& entry) {
    return entry.second.attempt == 0 && reached(entry.second, config_.ranks_per_pod, state);
  });
}

// True while a layout is not here yet.
bool JobStart::request_layouts(CoordinationOutputs& out) {
  if (layouts_.knows_all()) return false;
  for (std::uint32_t rank = 0; rank < config_.world_size(); ++rank) {
    const std::uint32_t pod = config_.pod_of(rank);
    if (!layouts_.knows(rank) && requested_.insert(pod).second)
      send(pod, BeginMessage{.layout_hashes = layouts_.hashes()}, out);
  }
  return true;
}

void JobStart::send_layouts(std::uint32_t pod, const std::vector<std::string>& it_has, CoordinationOutputs& out) const {
  for (std::vector<HeldLayout>& layouts : one_layout_each(layouts_.list(0, config_.world_size(), it_has))) {
    send(pod, BeginMessage{.layouts = std::move(layouts)}, out);
  }
}

void JobStart::on_pod_met(std::uint32_t ordinal, CoordinationOutputs& out) const {
  if (running() && !layouts_.knows_all()) send(ordinal, BeginMessage{.layout_hashes = layouts_.hashes()}, out);
}

void JobStart::drive(Instant now, CoordinationOutputs& out) {
  if (running()) return;
  if (!coordinating()) {
    state_ = JobStartState::gathering;
    retry_at_.reset();
    return;
  }
  if (state_ != JobStartState::gathering &&
      !all_pods(state_ == JobStartState::registering ? ReadyState::connected : ReadyState::registered)) {
    state_ = JobStartState::gathering;
    retry_at_.reset();
  }
  if (state_ == JobStartState::gathering) {
    if (!pods_.start_allowed() || !all_pods(ReadyState::connected)) return;
    state_ = JobStartState::registering;
    requested_.clear();
    next_resend_ = now + 2 * config_.limits.resend;
    send_to_all(BeginMessage{}, out);
  }
  if (state_ == JobStartState::registering && all_pods(ReadyState::registered)) {
    if (request_layouts(out)) return;
    if (const auto shards = layouts_.shards(); !shards) {
      refuse_all(shards.error(), out);
      return;
    }
    // The coordinator of a later breakpoint must know what ranks held that are gone by then. Where
    // all are alike the take says so.
    for (const std::uint32_t pod : pods_.reachable_pods()) {
      if (pod != config_.ordinal && !layouts_.all_alike()) send_layouts(pod, {}, out);
    }
    refused_.clear();
    forget_failures();
    state_ = JobStartState::listing;
    out.push_back(ListCandidates{});
  }
}

void JobStart::on_candidates(const CandidatesListed& listed, Instant now, CoordinationOutputs& out) {
  if (state_ != JobStartState::listing) return;
  if (!listed.candidates) {
    // Storage that cannot be read is no reason to start from the beginning.
    out.push_back(NoteProblem{"checkpoints_unreadable", listed.candidates.error().message});
    // What is damaged stays so; a person has to decide.
    if (count_failure(listed.candidates.error().code, now) == AfterFailure::try_again) retry_later(now);
    else refuse_all(listed.candidates.error(), out);
    return;
  }
  candidates_ = *listed.candidates;
  candidate_ = 0;
  forget_failures();
  try_candidate(now, out);
}

OfferMessage JobStart::current_offer() const {
  if (candidate_ >= candidates_.size()) return {};
  const RestoreCandidate& candidate = candidates_[candidate_];
  return {
      .path = candidate.path, .step = candidate.step, .manifest_hash = candidate.manifest_hash, .job_checked = true};
}

void JobStart::try_candidate(Instant, CoordinationOutputs& out) {
  retry_at_.reset();
  if (candidate_ < candidates_.size()) {
    state_ = JobStartState::verifying;
    VerifyCandidate verify{.path = candidates_[candidate_].path,
                           .manifest_hash = candidates_[candidate_].manifest_hash};
    if (const auto shards = layouts_.shards()) {
      // Ranks of one layout share it.
      const std::set<std::shared_ptr<const Layout>> distinct((*shards)->layouts.begin(), (*shards)->layouts.end());
      verify.layouts.assign(distinct.begin(), distinct.end());
    }
    out.push_back(std::move(verify));
  } else if (candidates_.empty()) {
    offer(out);
  } else {
    std::string message = format("{} checkpoints exist and none can be used", candidates_.size());
    for (const std::string& refused : refused_) message += "; " + refused;
    refuse_all({ErrorCode::corrupt,
                message + ". Repair the storage, or move the job's checkpoint folder away to start from step 0"},
               out);
  }
}

AfterFailure JobStart::count_failure(ErrorCode code, Instant now) {
  if (failures_ == 0) first_failure_ = now;
  return after_failure(code, ++failures_, now - first_failure_, config_.limits.restore);
}

void JobStart::forget_failures() { failures_ = 0; }

void JobStart::refuse_candidate(const Error& error, Instant now, CoordinationOutputs& out) {
  const std::string path = candidate_ < candidates_.size() ? candidates_[candidate_].path : "the start";
  switch (count_failure(error.code, now)) {
    case AfterFailure::try_again: retry_later(now); return;
    case AfterFailure::stop: {
      Error reason = with_context(error, path);
      if (candidate_ < candidates_.size() && error.code != ErrorCode::invalid_input)
        reason.message += why_no_older(path);
      refuse_all(std::move(reason), out);
      return;
    }
    case AfterFailure::next_older: break;
  }
  refused_.push_back(format("{}: {}", path, error.message));
  out.push_back(NoteProblem{"checkpoint_refused", refused_.back()});
  ++candidate_;
  forget_failures();
  if (candidate_ > candidates_.size()) refuse_all(error, out);
  else try_candidate(now, out);
}

void JobStart::on_verified(const CandidateVerified& verified, Instant now, CoordinationOutputs& out) {
  if (state_ != JobStartState::verifying || candidate_ >= candidates_.size() ||
      verified.path != candidates_[candidate_].path)
    return;
  if (verified.verified) offer(out);
  else refuse_candidate(verified.verified.error(), now, out);
}

void JobStart::offer(CoordinationOutputs& out) {
  state_ = JobStartState::loading;
  loaded_.clear();
  send_to_all(current_offer(), out);
}

void JobStart::on_pod_loaded(std::uint32_t from, const PodLoadedMessage& loaded, Instant now,
                             CoordinationOutputs& out) {
  if (state_ != JobStartState::loading || retry_at_ || loaded.path != current_offer().path) return;
  if (!loaded.ok) {
    refuse_candidate(with_context(loaded.error, format("pod {}", from)), now, out);
    return;
  }
  loaded_.insert(from);
  if (loaded_.size() < config_.pods) return;
  state_ = JobStartState::claiming;
  ClaimAttempt claim;
  if (candidate_ < candidates_.size()) {
    const RestoreCandidate& candidate = candidates_[candidate_];
    claim.parent = ParentPoint{candidate.attempt, candidate.step, candidate.path};
  }
  out.push_back(std::move(claim));
}

void JobStart::on_claimed(const AttemptClaimed& claimed, Instant now, CoordinationOutputs& out) {
  if (state_ != JobStartState::claiming) return;
  if (!claimed.attempt) {
    out.push_back(NoteProblem{"attempt_not_claimed", claimed.attempt.error().message});
    retry_later(now);
    return;
  }
  state_ = JobStartState::taking;
  const OfferMessage taken = current_offer();
  TakeMessage take{.attempt = *claimed.attempt,
                   .path = taken.path,
                   .step = taken.step,
                   .manifest_hash = taken.manifest_hash,
                   .summary = {},
                   .job_layout_hash = layouts_.job_hash()};
  if (candidate_ < candidates_.size()) take.summary = candidates_[candidate_].summary;
  out.push_back(ReportRestore{*claimed.attempt, taken.step, taken.path, refused_});
  send_to_all(take, out);
}

void JobStart::refuse_all(Error error, CoordinationOutputs& out) {
  state_ = JobStartState::gathering;
  retry_at_.reset();
  ready_.clear();
  send_to_all(FailedMessage{.term = 0, .error = std::move(error)}, out);
}

// --- time ---

void JobStart::on_wake(Instant now, CoordinationOutputs& out) {
  if (running()) return;
  if (rejoin_at_ && now >= *rejoin_at_) {
    if (rejoin(now, out)) return;
    rejoin_at_ = now + config_.limits.rejoin_wait;
  }
  if (now >= next_ready_) {
    next_ready_ = now + 2 * config_.limits.resend;
    if (!ranks_.all().empty()) send(pods_.lowest_reachable(), ready(), out);
    // Asks those that run already, if there are any, for the take that did not reach this pod.
    if (coordinating() && offered_) send_to_all(ready(), out);
  }
  if (!coordinating()) return;
  if (now >= next_resend_) {
    next_resend_ = now + 2 * config_.limits.resend;
    if (state_ == JobStartState::registering) {
      send_to_all(BeginMessage{}, out);
      requested_.clear();
      if (all_pods(ReadyState::registered)) request_layouts(out);
    }
    if (state_ == JobStartState::loading && !retry_at_) {
      for (const std::uint32_t pod : pods_.reachable_pods()) {
        if (!loaded_.contains(pod)) send(pod, current_offer(), out);
      }
    }
  }
  if (!retry_at_ || now < *retry_at_) return;
  retry_at_.reset();
  switch (state_) {
    case JobStartState::listing: out.push_back(ListCandidates{}); break;
    case JobStartState::verifying: try_candidate(now, out); break;
    case JobStartState::loading: offer(out); break;
    case JobStartState::claiming: {
      // The claim alone is repeated: everything is loaded.
      state_ = JobStartState::loading;
      on_pod_loaded(config_.ordinal, {.ordinal = config_.ordinal, .path = current_offer().path, .ok = true}, now, out);
      break;
    }
    default: break;
  }
}

std::optional<Instant> JobStart::next_wake() const {
  if (running()) return std::nullopt;
  Instant wake = std::max(next_ready_, Instant{});
  if (rejoin_at_) wake = std::min(wake, *rejoin_at_);
  if (coordinating()) {
    wake = std::min(wake, next_resend_);
    if (retry_at_) wake = std::min(wake, *retry_at_);
  }
  return wake;
}

}  // namespace rekindle::sidecar
