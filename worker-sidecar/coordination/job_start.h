// Start and restore: brings all ranks of the job together and makes the one restore decision
// (PROTOCOL P15, P17).
//
// Expected flow, in every sidecar: ranks connect -> ready -> begin (welcome) -> registered ->
// offers, loaded -> take: running. In the coordinator (lowest ordinal that can be reached) besides:
// all pods there and go -> begin -> all registered -> candidates listed -> each verified, offered,
// loaded by all -> attempt claimed -> take.
//
// Guarantees: no rank is offered anything before all have registered and their layouts make one
// job; where they differ every pod that can be reached has been told them all; a take names what
// every rank has loaded; the attempt is claimed with its parent before any rank leaves rk_restore.
// Checkpoints that exist and cannot be used never lead to a silent start from step 0: the ranks are
// refused with the reasons. Assumptions: ready comes again until the attempt begins. A coordinator
// that is lost is replaced by the next ordinal, which begins anew; a take that reached some pods
// only is passed on by any of them. A sidecar that comes back to ranks that live in an attempt
// rejoins it without asking anybody.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/enum_names.h"
#include "worker-sidecar/checkpoint/restore_policy.h"
#include "worker-sidecar/coordination/config.h"
#include "worker-sidecar/coordination/event.h"
#include "worker-sidecar/coordination/job_layouts.h"
#include "worker-sidecar/coordination/local_ranks.h"
#include "worker-sidecar/coordination/membership.h"
#include "worker-sidecar/coordination/output.h"

namespace rekindle::sidecar {

enum class JobStartState : std::uint8_t { gathering, registering, listing, verifying, loading, claiming, taking };
constexpr auto enum_names(JobStartState) {
  return std::to_array<EnumName<JobStartState>>({
      {JobStartState::gathering, "gathering"},
      {JobStartState::registering, "registering"},
      {JobStartState::listing, "listing"},
      {JobStartState::verifying, "verifying"},
      {JobStartState::loading, "loading"},
      {JobStartState::claiming, "claiming"},
      {JobStartState::taking, "taking"},
  });
}

class JobStart {
 public:
  JobStart(const CoordinationConfig& config, const Membership& pods, LocalRanks& ranks, JobLayouts& layouts)
      : config_(config), pods_(pods), ranks_(ranks), layouts_(layouts) {}

  // Ranks of this pod, connections or the table have changed.
  void on_change(Instant now, CoordinationOutputs& out);
  void on_rank_connected(std::uint32_t rank, Instant now, CoordinationOutputs& out);
  void on_rank_loaded(const RankLoaded& loaded, CoordinationOutputs& out);
  void on_pod_lost(std::uint32_t ordinal, Instant now, CoordinationOutputs& out);
  // The pod is being ended: its ranks that wait are refused, and nothing but an attempt that they
  // live in already begins here.
  void close(Instant now, CoordinationOutputs& out);
  bool closed() const { return closed_; }
  // What a rank is told that comes to a pod that is closed.
  static Error closed_error();
  // What a sidecar that came back, or that a message did not reach, does not know of the others'
  // layouts, it asks every pod that it meets.
  void on_pod_met(std::uint32_t ordinal, CoordinationOutputs& out) const;

  void on_ready(std::uint32_t from, const ReadyMessage& ready, Instant now, CoordinationOutputs& out);
  void on_begin(std::uint32_t from, const BeginMessage& begin, CoordinationOutputs& out);
  void on_offer(std::uint32_t from, const OfferMessage& offer, CoordinationOutputs& out);
  void on_pod_loaded(std::uint32_t from, const PodLoadedMessage& loaded, Instant now, CoordinationOutputs& out);
  void on_take(const TakeMessage& take, CoordinationOutputs& out);
  void on_refused(const FailedMessage& failed, CoordinationOutputs& out);

  void on_candidates(const CandidatesListed& listed, Instant now, CoordinationOutputs& out);
  void on_verified(const CandidateVerified& verified, Instant now, CoordinationOutputs& out);
  void on_claimed(const AttemptClaimed& claimed, Instant now, CoordinationOutputs& out);

  void on_wake(Instant now, CoordinationOutputs& out);
  std::optional<Instant> next_wake() const;

  bool running() const { return taken_.attempt != 0; }
  const TakeMessage& taken() const { return taken_; }
  bool rejoined() const { return rejoined_; }
  bool restoring() const { return welcomed_any_ && !running(); }
  JobStartState state() const { return state_; }

 private:
  bool coordinating() const { return !closed_ && pods_.lowest_reachable() == config_.ordinal; }
  void send(std::uint32_t ordinal, PeerMessage message, CoordinationOutputs& out) const;
  void send_to_all(const PeerMessage& message, CoordinationOutputs& out) const;
  bool rejoin(Instant now, CoordinationOutputs& out);
  ReadyMessage ready() const;
  void answer_if_loaded(CoordinationOutputs& out);
  void refuse_waiting_ranks(const Error& error, CoordinationOutputs& out);

  void drive(Instant now, CoordinationOutputs& out);
  bool all_pods(ReadyState reached) const;
  bool request_layouts(CoordinationOutputs& out);
  void send_layouts(std::uint32_t pod, const std::vector<std::string>& it_has, CoordinationOutputs& out) const;
  void try_candidate(Instant now, CoordinationOutputs& out);
  void offer(CoordinationOutputs& out);
  void refuse_candidate(const Error& error, Instant now, CoordinationOutputs& out);
  void refuse_all(Error error, CoordinationOutputs& out);
  OfferMessage current_offer() const;
  void retry_later(Instant now) { retry_at_ = now + config_.limits.restore.pause; }
  AfterFailure count_failure(ErrorCode code, Instant now);
  void forget_failures();

  const CoordinationConfig& config_;
  const Membership& pods_;
  LocalRanks& ranks_;
  JobLayouts& layouts_;

  // As a member.
  TakeMessage taken_;  // attempt 0: not yet
  bool rejoined_ = false;
  bool closed_ = false;
  std::optional<Instant> rejoin_at_;  // with the ranks that are there by then
  bool welcomed_any_ = false;
  std::set<std::uint32_t> welcomed_;
  std::optional<OfferMessage> offered_;
  std::set<std::uint32_t> offered_ranks_;
  std::uint32_t offered_by_ = 0;
  Instant next_ready_;

  // As the coordinator.
  JobStartState state_ = JobStartState::gathering;
  std::map<std::uint32_t, ReadyMessage> ready_;
  // pods that were asked for their layouts since the last resend
  std::set<std::uint32_t> requested_;
  std::vector<RestoreCandidate> candidates_;
  std::size_t candidate_ = 0;   // index; candidates_.size(): nothing to restore
  std::uint32_t failures_ = 0;  // of the list, or of this candidate
  Instant first_failure_;
  std::set<std::uint32_t> loaded_;
  std::vector<std::string> refused_;
  std::optional<Instant> retry_at_;
  Instant next_resend_;
};

}  // namespace rekindle::sidecar
