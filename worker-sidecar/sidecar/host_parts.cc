#include "worker-sidecar/sidecar/host_parts.h"

#include <algorithm>
#include <array>

#include "common/base/format.h"
#include "common/base/json_fields.h"
#include "common/system/clock.h"
#include "worker-sidecar/checkpoint/restore_plan.h"
#include "worker-sidecar/sidecar/job_memory.h"

namespace rekindle::sidecar {
namespace {

constexpr std::chrono::microseconds kPollSoon{200};
constexpr std::chrono::milliseconds kPollLater{1};
constexpr std::chrono::milliseconds kPollSoonFor{50};
// A job that is parked may stay so until its pods are gone.
constexpr std::chrono::milliseconds kPollParked{10};
constexpr std::chrono::seconds kPollLaterFor{2};
// The first step may take a moment or, with a compiler in it, minutes.
constexpr std::chrono::milliseconds kFirstStepPoll{1};
constexpr std::chrono::milliseconds kFirstStepPollMax{50};
// What kept an attempt from beginning is over when one begins.
constexpr std::array kProblemsOfStarting{"checkpoints_unreadable", "restore_failed", "attempt_not_claimed"};

}  // namespace

Host::Parts::Parts(asio::io_context& loop_, Options options_)
    : loop(loop_),
      settings(std::move(options_.settings)),
      observer(options_.observer),
      peers(options_.peers),
      config(options_.coordination),
      coordination(options_.coordination),
      repository(std::make_shared<CheckpointRepository>(real_file_system(), settings, options_.create_checkpoint_root)),
      ranks(loop_, settings.run_folder, settings.world_size(),
            [this](std::uint32_t rank, RankStatus word) { on_rank_died(rank, word); }),
      wake_timer(loop_),
      poll_timer(loop_),
      first_step_timer(loop_),
      disk(loop_, 2) {}

// --- events, time, status ---

void Host::Parts::handle(CoordinationEvent event) {
  events.push_back(std::move(event));
  // Performing an output may bring a new event; it waits its turn so that outputs stay in order.
  if (performing) return;
  performing = true;
  while (!events.empty()) {
    const CoordinationEvent next = std::move(events.front());
    events.pop_front();
    for (const CoordinationOutput& output : coordination.advance(next, monotonic_now())) perform(output);
  }
  performing = false;
  arm_wake();
}

void Host::Parts::arm_wake() {
  const std::optional<Instant> at = coordination.next_wake();
  if (!at) {
    wake_timer.cancel();
    return;
  }
  const Duration left = std::max(*at - monotonic_now(), Duration::zero());
  wake_timer.expires_after(std::chrono::duration_cast<asio::steady_timer::duration>(left));
  wake_timer.async_wait([weak = weak_from_this()](std::error_code error) {
    if (const auto self = weak.lock(); self && !error) self->handle(Tick{});
  });
}

void Host::Parts::log(Severity level, std::string_view message, Facts fields) const {
  if (observer != nullptr) observer->log(level, message, fields);
}

void Host::Parts::note_problem(const std::string& code, const std::string& message) {
  std::string& known = problems[code];
  if (known == message) return;
  known = message;
  if (observer != nullptr) observer->problem(code, message);
  log(Severity::warning, "problem", {{"code", code}, {"message", message}});
}

void Host::Parts::end_problem(const std::string& code) {
  if (problems.erase(code) == 0) return;
  if (observer != nullptr) observer->problem_over(code);
  log(Severity::info, "a problem is over", {{"code", code}});
}

void Host::Parts::poll_words() {
  if (!holding) return;
  for (const auto& [rank, word] : ranks.changed_words())
    handle(RankSeen{rank, word, ranks.shadow_steps(rank, coordination.attempt())});
  if (!holding) return;
  const Duration held = monotonic_now() - hold_began;
  asio::steady_timer::duration pause = kPollSoon;
  if (held >= kPollSoonFor) pause = held < kPollLaterFor ? kPollLater : kPollParked;
  poll_timer.expires_after(pause);
  poll_timer.async_wait([weak = weak_from_this()](std::error_code error) {
    if (const auto self = weak.lock(); self && !error) self->poll_words();
  });
}

void Host::Parts::watch_first_step() {
  if (!awaited_first_step) return;
  for (const std::uint32_t rank : ranks.live_ranks()) {
    const ControlFile* const control = ranks.control_of(rank);
    if (control->attempt() != coordination.attempt() || control->word().step < *awaited_first_step) continue;
    const std::uint64_t step = *std::exchange(awaited_first_step, std::nullopt);
    if (observer != nullptr) observer->first_step(coordination.attempt(), step, monotonic_now());
    return;
  }
  first_step_timer.expires_after(first_step_pause);
  first_step_pause = std::min<asio::steady_timer::duration>(first_step_pause * 11 / 10, kFirstStepPollMax);
  first_step_timer.async_wait([weak = weak_from_this()](std::error_code error) {
    if (const auto self = weak.lock(); self && !error) self->watch_first_step();
  });
}

void Host::Parts::await_first_step(std::uint64_t step) {
  awaited_first_step = step;
  first_step_pause = kFirstStepPoll;
  watch_first_step();
}

HostStatus Host::Parts::status() const {
  HostStatus status{.attempt = coordination.attempt(),
                    .phase = coordination.phase(),
                    .coordinating = coordination.coordinating(),
                    .live_ranks = coordination.live_ranks(),
                    .breakpoints_durable = durable_count,
                    .breakpoints_failed = failed_count,
                    .periodic_durable = periodic_count,
                    .storage_ready = storage == StorageState::ready};
  for (std::uint32_t rank = settings.first_rank(); rank < settings.first_rank() + settings.ranks_per_pod; ++rank) {
    const ControlFile* const control = ranks.control_of(rank);
    if (control == nullptr) continue;
    status.step = std::max(status.step, control->word().step);
    if (ranks.alive(rank)) ++status.local_live_ranks;
  }
  return status;
}

std::string Host::Parts::status_text() const {
  const HostStatus now = status();
  Json text{{"job", format("{}/{}", settings.job_namespace, settings.job)},
            {"attempt", now.attempt},
            {"step", now.step},
            {"phase", to_string(now.phase)},
            {"coordinating", now.coordinating},
            {"live_ranks", now.live_ranks},
            {"world_size", settings.world_size()},
            {"storage_ready", now.storage_ready},
            {"machines", coordination.describe()},
            {"ranks", Json::array()},
            {"problems", Json::array()}};
  text["checkpoints"] = {{"every", describe(settings.checkpoints.snapshots)},
                         {"periodic_durable", now.periodic_durable}};
  if (const std::optional<Protection> protection = coordination.protection()) {
    text["protection"] = {{"state", protection->full ? "full" : "partial"}, {"message", protection->message}};
  }
  for (std::uint32_t rank = settings.first_rank(); rank < settings.first_rank() + settings.ranks_per_pod; ++rank) {
    const ControlFile* const control = ranks.control_of(rank);
    if (control == nullptr) continue;
    const RankStatus word = control->word();
    text["ranks"].push_back({{"rank", rank},
                             {"alive", ranks.alive(rank)},
                             {"connected", ranks.link_of(rank).has_value()},
                             {"step", word.step},
                             {"phase", to_string(word.phase)},
                             {"held", control->held()}});
  }
  for (const auto& [code, message] : problems) text["problems"].push_back({{"code", code}, {"message", message}});
  return dump_json(text);
}

// --- ranks and tools on the Unix socket ---

void Host::Parts::open_storage() {
  storage = StorageState::trying;
  on_disk([kept = repository] { return kept->open(); },
          [](Parts& self, Status opened) {
            self.storage = opened ? StorageState::ready : StorageState::broken;
            if (!opened) self.storage_error = opened.error();
            for (PendingHello& waiting : std::exchange(self.pending_hellos, {})) {
              self.admit(waiting.link, waiting.hello, waiting.attempt, std::move(waiting.process));
            }
            if (!opened) return self.note_problem("storage", opened.error().message);
            self.end_problem("storage");
            self.log(Severity::info, "the checkpoint folder is usable", {{"path", self.repository->job_folder()}});
          });
}

void Host::Parts::on_hello(LinkId link, const HelloMessage& hello, std::uint32_t attempt, FileDescriptor process) {
  // What was wrong with the folder may have been put right since; a rank that comes is a reason to
  // try it again.
  if (storage == StorageState::broken) open_storage();
  if (storage == StorageState::trying) {
    pending_hellos.push_back({link, hello, attempt, std::move(process)});
    return;
  }
  admit(link, hello, attempt, std::move(process));
}

void Host::Parts::refuse(LinkId link, const Error& error) {
  server->send(link, RefusedMessage{error}, coordination.attempt());
  server->close_after_sending(link);
  log(Severity::warning, "a rank was refused", {{"message", error.message}});
}

// A process that is the first of its container does not end by SIGTERM while it waits in rk_open,
// and would keep the pod for its whole grace.
void Host::Parts::end_waits() {
  ending = true;
  for (const LinkId link : std::exchange(latecomers, {})) {
    refuse(link, {ErrorCode::unavailable,
                  "this pod is being ended, and the attempt that it has part in began without this process; no step is "
                  "lost, and the job goes on in the pod that replaces it",
                  Retry::yes});
  }
}

void Host::Parts::admit(LinkId link, const HelloMessage& hello, std::uint32_t attempt, FileDescriptor process) {
  if (!server->connected(link)) return;
  if (hello.world_size != settings.world_size()) {
    return refuse(
        link, {ErrorCode::invalid_input,
               format("rank {} says that the job has {} ranks, this sidecar was told {} ({} pods with {} each); make "
                      "REKINDLE_WORLD_SIZE, or the "
                      "annotation rekindle.dev/ranks-per-pod, fit",
                      hello.rank, hello.world_size, settings.world_size(), settings.pods, settings.ranks_per_pod)});
  }
  if (!settings.hosts_rank(hello.rank)) {
    return refuse(
        link, {ErrorCode::invalid_input,
               format("rank {} does not belong to this pod, which has ranks {} to {}; check REKINDLE_RANK", hello.rank,
                      settings.first_rank(), settings.first_rank() + settings.ranks_per_pod - 1)});
  }
  const bool known = attempt != 0 || ranks.lost_connection(hello.rank, hello.pid);
  if (!known && storage == StorageState::broken) return refuse(link, storage_error);
  if (!known && ranks.alive(hello.rank)) {
    return refuse(link, {ErrorCode::already_exists,
                         format("another process has rank {} already; give each process a REKINDLE_RANK of its own",
                                hello.rank)});
  }
  if (!known && coordination.attempt() != 0) {
    // A container that was started again inside a pod. The attempt that this sidecar serves goes on
    // or ends without it; the process waits in rk_open until the pod is replaced.
    latecomers.push_back(link);
    if (ending) return end_waits();
    log(Severity::warning,
        "a new process came for a rank of an attempt that has begun; it waits until the job is restarted",
        {{"rank", std::to_string(hello.rank)}});
    return;
  }
  if (hello.state_bytes_max > UINT32_MAX) {
    return refuse(link, {ErrorCode::invalid_input,
                         format("rank {} asks for {} bytes of small state; register large arrays as tensors",
                                hello.rank, hello.state_bytes_max)});
  }

  Result<const ControlFile*> control =
      known ? ranks.readmit(hello.rank, hello.pid, link, std::move(process))
            : ranks.admit(hello.rank, hello.pid, static_cast<std::uint32_t>(hello.state_bytes_max), link,
                          std::move(process));
  if (!control) {
    refuse(link, control.error());
    return note_problem("control_block", control.error().message);
  }
  server->send(link,
               ControlMessage{.slot_bytes = (*control)->slot_bytes(),
                              .incarnation = (*control)->incarnation(),
                              .checkpoint_dir = repository->job_folder(),
                              .ranks_here = settings.ranks_per_pod},
               coordination.attempt(), (*control)->descriptor());
  const RankStatus word = (*control)->word();
  const bool held = (*control)->held();
  // It may have been carried out while no sidecar was here.
  ranks.settle_rebuild(hello.rank);
  const std::uint64_t rebuild_term = (*control)->rebuild_term();
  handle(RankConnected{.rank = hello.rank,
                       .attempt = attempt,
                       .term = std::max(hello.term, rebuild_term),
                       .word = word,
                       .held = held,
                       .rebuilds = hello.rebuilds,
                       .rebuild_term = rebuild_term});
  log(Severity::info, known ? "a rank came back" : "a rank came",
      {{"rank", std::to_string(hello.rank)},
       {"pid", std::to_string(hello.pid)},
       {"library_version", hello.library_version}});
  if (!known) end_problem("control_block");
}

void Host::Parts::on_message(LinkId link, const LocalMessage& message) {
  const std::optional<std::uint32_t> found = ranks.rank_of(link);
  if (!found) return;  // it was refused, or another connection has taken its rank
  const std::uint32_t rank = *found;
  if (const auto* registered = std::get_if<RegisteredMessage>(&message)) {
    ranks.set_registered(rank, *registered);
    handle(RankRegistered{rank, *registered});
  } else if (const auto* loaded = std::get_if<LoadedMessage>(&message)) {
    handle(RankLoaded{rank, *loaded});
    if (loaded->ok && !loaded->way.empty()) {
      log(Severity::info, "a rank has loaded a checkpoint",
          {{"rank", std::to_string(rank)},
           {"path", loaded->path},
           {"bytes", std::to_string(loaded->bytes_read)},
           {"way", loaded->way}});
    }
  } else if (const auto* written = std::get_if<WrittenMessage>(&message)) {
    handle(RankWritten{rank, *written});
    log(Severity::info, "a rank has written its part",
        {{"rank", std::to_string(rank)},
         {"file", written->written.file},
         {"bytes", std::to_string(written->written.bytes)},
         {"way", written->written.way}});
  } else if (const auto* failed = std::get_if<WriteFailedMessage>(&message)) {
    handle(RankWriteFailed{rank, *failed});
    log(Severity::warning, "a rank could not write its part",
        {{"rank", std::to_string(rank)}, {"message", failed->error.message}});
  } else if (const auto* collective = std::get_if<CollectiveFailedMessage>(&message)) {
    handle(RankCollectiveFailed{rank, *collective});
    log(Severity::warning, "a collective failed", {{"rank", std::to_string(rank)}, {"why", collective->why}});
  } else if (const auto* rebuilt = std::get_if<RebuiltMessage>(&message)) {
    ranks.settle_rebuild(rank);
    log(Severity::info, "a rank makes its communicators anew and goes on",
        {{"rank", std::to_string(rank)}, {"step", std::to_string(rebuilt->step)}});
  } else if (const auto* kept = std::get_if<KeptMessage>(&message)) {
    handle(RankKept{rank, kept->serial, kept->ok ? Status() : Status(std::unexpected(kept->error))});
  } else if (const auto* taken = std::get_if<SnapshottedMessage>(&message)) {
    handle(RankSnapshotted{rank, taken->step, taken->microseconds,
                           taken->ok ? Status() : Status(std::unexpected(taken->error))});
  } else if (const auto* wanted = std::get_if<CheckpointWantedMessage>(&message)) {
    handle(RankRequestedCheckpoint{rank, wanted->step});
  } else if (std::holds_alternative<FinishedMessage>(message)) {
    ranks.mark_finished(rank);
    handle(RankFinished{rank});
  }
}

void Host::Parts::on_link_ended(LinkId link, const std::string& why) {
  std::erase_if(pending_hellos, [&](const PendingHello& waiting) { return waiting.link == link; });
  std::erase(latecomers, link);
  if (const std::optional<std::uint32_t> rank = ranks.rank_of(link)) {
    ranks.link_ended(link);
    return log(Severity::debug, "the connection of a rank ended", {{"rank", std::to_string(*rank)}, {"why", why}});
  }
  // Hooks are known to the machine by the number of their connection; one that was answered already
  // is none of its business any more.
  handle(HookGone{link});
}

void Host::Parts::on_rank_died(std::uint32_t rank, RankStatus word) {
  // The end of the process may be seen before the goodbye that it sent; its word says that rk_close
  // was called.
  if (word.phase == RankPhase::finished && !ranks.finished(rank)) {
    ranks.mark_finished(rank);
    handle(RankFinished{rank});
  }
  const bool finished = ranks.finished(rank);
  if (observer != nullptr) observer->rank_died(rank, word, finished, monotonic_now());
  handle(RankDied{rank, word, static_cast<std::uint32_t>(coordination.attempt()),
                  ranks.shadow_steps(rank, coordination.attempt())});
  log(finished ? Severity::info : Severity::warning, finished ? "a rank ended" : "a rank died",
      {{"rank", std::to_string(rank)},
       {"step", std::to_string(word.step)},
       {"phase", std::string(to_string(word.phase))}});
}

// --- what the machines order ---

void Host::Parts::perform(const CoordinationOutput& output) {
  std::visit([this](const auto& what) { on(what); }, output);
}

void Host::Parts::send_to_rank(std::uint32_t rank, const LocalMessage& message, int descriptor) {
  if (const std::optional<LinkId> link = ranks.link_of(rank))
    server->send(*link, message, coordination.attempt(), descriptor);
}

void Host::Parts::on(const SendToPeer& output) {
  if (peers != nullptr) peers->send(output.ordinal, output.message, coordination.attempt());
}

void Host::Parts::on(const WelcomeRank& output) { send_to_rank(output.rank, WelcomeMessage{}); }

void Host::Parts::on(const OfferToRank& output) { send_to_rank(output.rank, output.offer); }

// Where pods do not share their folder, each writes to its own and every checkpoint looks complete.
void Host::Parts::on(const TakeForRank& output) {
  if (settings.pods == 1) return send_to_rank(output.rank, output.take);
  on_disk([kept = repository, attempt = output.take.attempt] { return kept->find_attempt(attempt); },
          [output](Parts& self, const Status& found) {
            if (found) return self.send_to_rank(output.rank, output.take);
            self.note_problem("storage", found.error().message);
            self.on(RefuseRank{output.rank, found.error()});
          });
}

void Host::Parts::on(const RefuseRank& output) {
  send_to_rank(output.rank, RefusedMessage{output.error});
  log(Severity::error, "a rank is refused", {{"rank", std::to_string(output.rank)}, {"message", output.error.message}});
}

void Host::Parts::on(const ListCandidates&) {
  on_disk([kept = repository] { return kept->candidates(); },
          [](Parts& self, Result<CandidateOrder> order) {
            if (!order) return self.handle(CandidatesListed{std::unexpected(order.error())});
            std::vector<RestoreCandidate> candidates;
            for (const Candidate& usable : order->usable) {
              candidates.push_back({.path = usable.path,
                                    .attempt = static_cast<std::uint32_t>(usable.attempt),
                                    .step = usable.step,
                                    .manifest_hash = usable.sealed.hash,
                                    .summary = summarize(usable.sealed.manifest)});
            }
            self.handle(CandidatesListed{std::move(candidates)});
            for (const RefusedFolder& refused : order->refused) {
              self.log(refused.complete || refused.published ? Severity::warning : Severity::info,
                       "a checkpoint is not considered", {{"path", refused.path}, {"reason", refused.reason}});
            }
            for (const std::string& note : order->notes)
              self.log(Severity::info, "about the checkpoint folder", {{"note", note}});
          });
}

void Host::Parts::on(const VerifyCandidate& output) {
  on_disk([kept = repository, output] { return kept->verify(output); },
          [path = output.path](Parts& self, Status verified) {
            self.handle(CandidateVerified{path, std::move(verified)});
          });
}

void Host::Parts::on(const ClaimAttempt& output) {
  AttemptRecord record{.attempt = 0,
                       .parent = output.parent,
                       .job_uid = settings.job_uid,
                       .pods = {{.name = settings.pod_name, .uid = settings.pod_uid}},
                       .time = to_micro_text(wall_now())};
  struct Claimed {
    Result<AttemptRecord> record;
    FailureHistory failures;
  };
  on_disk(
      [kept = repository, record = std::move(record)] {
        Claimed claimed{.record = kept->claim(record), .failures = {}};
        if (claimed.record) claimed.failures = kept->failures_before(claimed.record->attempt);
        return claimed;
      },
      [](Parts& self, Claimed claimed) {
        if (!claimed.record)
          return self.handle(AttemptClaimed{.attempt = std::unexpected(claimed.record.error()), .failures = {}});
        self.handle(AttemptClaimed{.attempt = static_cast<std::uint32_t>(claimed.record->attempt),
                                   .failures = claimed.failures});
      });
}

void Host::Parts::on(const AttemptBegun& output) {
  if (observer != nullptr) observer->attempt_begun(output, monotonic_now());
  if (!output.rejoined) await_first_step(output.step + 1);
  for (const char* const code : kProblemsOfStarting) end_problem(code);
  log(Severity::info, output.rejoined ? "the attempt goes on" : "an attempt begins",
      {{"attempt", std::to_string(output.attempt)}, {"step", std::to_string(output.step)}, {"path", output.path}});
}

void Host::Parts::on(const HoldRanks&) {
  ranks.hold_live();
  ranks.forget_words();
  hold_began = monotonic_now();
  const bool polling = std::exchange(holding, true);
  if (polling) poll_timer.cancel();
  poll_words();
}

void Host::Parts::on(const PermitUpdate& output) {
  for (const std::uint32_t rank : output.ranks) ranks.permit(rank, output.step);
}

void Host::Parts::on(const StartWrite& output) {
  const ControlFile* const control = ranks.control_of(output.rank);
  if (control == nullptr || !ranks.link_of(output.rank)) {
    return handle(
        RankWriteFailed{output.rank,
                        {.term = output.write.term,
                         .error = {ErrorCode::unavailable, format("rank {} is not connected", output.rank)}}});
  }
  WriteMessage write = output.write;
  write.hold = control->hold_number();
  send_to_rank(output.rank, write);
}

void Host::Parts::on(const WriteStates& output) {
  // The slots are read here and now: they are in memory, and a hold keeps them as they are.
  RankTable::Captured captured = ranks.capture(output.ranks, output.step, coordination.attempt());
  on_disk(
      [kept = repository, output, states = std::move(captured.states), missing = std::move(captured.missing),
       ordinal = settings.ordinal]() -> Result<StatesOfPod> {
        Result<WrittenStates> written = kept->write_states(output.path, ordinal, states);
        if (!written) return std::unexpected(written.error());
        return StatesOfPod{.file = written->file, .states = written->states, .missing = missing};
      },
      [term = output.term](Parts& self, Result<StatesOfPod> written) {
        self.handle(StatesWritten{term, std::move(written)});
      });
  for (const std::string& reason : captured.reasons) {
    log(Severity::warning, "small state of a rank is not there",
        {{"step", std::to_string(output.step)}, {"reason", reason}});
  }
}

void Host::Parts::on(const ReleaseRanks& output) {
  holding = false;
  poll_timer.cancel();
  if (output.order != GateOrder::rebuild) return ranks.release_all(output.order);
  if (Status released = ranks.release_to_rebuild(output.rebuild); !released) {
    ranks.release_all(GateOrder::stop);
    log(Severity::error, "the ranks cannot be told to rebuild and stop instead",
        {{"message", released.error().message}});
  }
}

void Host::Parts::on(const EndRanks& output) {
  for (const std::uint32_t rank : output.ranks) send_to_rank(rank, EndMessage{output.exit_code});
}

void Host::Parts::on(const AnswerHook& output) {
  server->send(output.hook, output.done, coordination.attempt());
  server->close_after_sending(output.hook);
}

void Host::Parts::on(const AnswerCheckpoint& output) { send_to_rank(output.rank, output.done); }

void Host::Parts::on(const CreateFolder& output) {
  on_disk([kept = repository, output] { return kept->create_folder(output.attempt, output.step); },
          [term = output.term](Parts& self, Result<std::string> path) {
            self.handle(FolderCreated{term, std::move(path)});
          });
}

void Host::Parts::on(const PublishCheckpoint& output) {
  Manifest manifest = output.manifest;
  manifest.job = repository->job();
  manifest.time = to_micro_text(wall_now());
  on_disk(
      [kept = repository, path = output.path, manifest = std::move(manifest)]() -> Result<PublishedCheckpoint> {
        Result<std::string> hash = kept->publish(path, manifest);
        if (!hash) return std::unexpected(hash.error());
        return PublishedCheckpoint{.manifest_hash = *hash, .bytes = file_bytes(manifest)};
      },
      [term = output.term](Parts& self, Result<PublishedCheckpoint> published) {
        const bool durable = published.has_value();
        self.handle(CheckpointPublished{term, std::move(published)});
        if (!durable) return;
        self.on_disk([kept = self.repository, attempt = self.coordination.attempt()] { return kept->prune(attempt); },
                     [](Parts& after, Result<PruneReport> pruned) {
                       if (!pruned)
                         return after.log(Severity::warning, "old checkpoints were not removed",
                                          {{"message", pruned.error().message}});
                       for (const Removal& removal : pruned->removed) {
                         after.log(Severity::info, "an old checkpoint was removed",
                                   {{"path", removal.path}, {"reason", removal.reason}});
                       }
                       for (const Error& error : pruned->failures) {
                         after.log(Severity::warning, "an old checkpoint could not be removed",
                                   {{"message", error.message}});
                       }
                     });
      });
}

void Host::Parts::on(const ReportBreakpoint& output) {
  const BreakpointRecord& record = output.record;
  const auto [known, fresh] = states_of_terms.try_emplace(record.term, record.state);
  const bool ended = (fresh || known->second != record.state);
  known->second = record.state;
  if (ended && record.state == SaveState::durable) ++durable_count;
  if (ended && record.state == SaveState::failed) ++failed_count;
  while (states_of_terms.size() > 64) states_of_terms.erase(states_of_terms.begin());
  if (observer != nullptr) observer->breakpoint(record, coordination.attempt(), monotonic_now());
  log(record.state == SaveState::failed ? Severity::error : Severity::info, "breakpoint",
      {{"state", std::string(to_string(record.state))},
       {"step", std::to_string(record.step)},
       {"record", to_text(record)}});
}

void Host::Parts::on(const ReportRestore& output) {
  for (const std::string& refused : output.refused)
    log(Severity::warning, "a checkpoint was refused", {{"reason", refused}});
  log(Severity::info, output.step == 0 ? "nothing to restore" : "restored",
      {{"attempt", std::to_string(output.attempt)}, {"step", std::to_string(output.step)}, {"path", output.path}});
}

void Host::Parts::on(const RememberJob& output) {
  if (Status remembered = remember_job(settings.run_folder, output); !remembered)
    return note_problem("job_memory", remembered.error().message);
  end_problem("job_memory");
}

// ---- periodic checkpoints and shadows ----

void Host::Parts::on(const KeepForRank& output) {
  Result<std::shared_ptr<const ShadowFile>> shadow =
      ranks.make_shadow(output.rank, {.serial = output.term,
                                      .snapshots = output.snapshots,
                                      .shadow_every_steps = output.shadow_every_steps,
                                      .pieces = output.pieces});
  if (shadow && !ranks.link_of(output.rank))
    shadow = fail(ErrorCode::unavailable, format("rank {} is not connected", output.rank), Retry::yes);
  if (!shadow) return handle(RankKept{output.rank, output.term, std::unexpected(shadow.error())});
  send_to_rank(output.rank, KeepMessage{output.term}, (*shadow)->descriptor());
}

void Host::Parts::on(const OrderSnapshot& output) {
  ranks.request_snapshot(output.step);
  if (output.step != 0) on(InspectRanks{});
}

void Host::Parts::on(const InspectRanks&) {
  for (const auto& [rank, word] : ranks.live_words())
    handle(RankSeen{rank, word, ranks.shadow_steps(rank, coordination.attempt())});
}

void Host::Parts::on(const WriteFromShadow& output) {
  const std::shared_ptr<const RankTable::Shadow> shadow = ranks.shadow_of(output.rank);
  if (!shadow) {
    return handle(RankWriteFailed{
        output.rank,
        {.term = output.write.term,
         .error = {ErrorCode::not_found, format("there is no shadow of rank {} here", output.rank), Retry::yes}}});
  }
  WriteOptions options;
  options.bytes_per_second_max = settings.checkpoints.bytes_per_second_max;
  on_disk(
      [kept = repository, shadow, order = output.write, attempt = coordination.attempt(), options] {
        return write_from_shadow(real_file_system(), kept->job_folder(), order, attempt, shadow->layout, *shadow->file,
                                 options);
      },
      [rank = output.rank, term = output.write.term](Parts& self, Result<WrittenFile> written) {
        if (!written) return self.handle(RankWriteFailed{rank, {.term = term, .error = written.error()}});
        const Facts facts{{"rank", std::to_string(rank)},
                          {"file", written->file},
                          {"bytes", std::to_string(written->bytes)},
                          {"way", written->way}};
        self.handle(RankWritten{rank, {.term = term, .written = *std::move(written)}});
        self.log(Severity::info, "the share of a rank was written from its copy in memory", facts);
      });
}

void Host::Parts::on(const RemoveFolder& output) {
  on_disk([kept = repository, path = output.path] { return kept->remove(path); },
          [path = output.path](Parts& self, Status removed) {
            if (removed) return self.log(Severity::info, "an unfinished checkpoint was removed", {{"path", path}});
            self.log(Severity::warning, "an unfinished checkpoint could not be removed",
                     {{"path", path}, {"message", removed.error().message}});
          });
}

void Host::Parts::on(const ReportPeriodic& output) {
  ++periodic_count;
  if (observer != nullptr) observer->periodic(output, coordination.attempt(), monotonic_now());
  end_problem("periodic_checkpoint");
  log(Severity::info, "periodic checkpoint",
      {{"step", std::to_string(output.step)},
       {"path", output.path},
       {"bytes", std::to_string(output.bytes)},
       {"stopped_milliseconds", std::to_string(output.stopped_milliseconds)},
       {"written_milliseconds", std::to_string(output.written_milliseconds)},
       {"rhythm", output.rhythm}});
}

void Host::Parts::on(const NoteProblem& output) { note_problem(output.code, output.message); }

void Host::Parts::on(const ExitAllowed&) {
  if (observer != nullptr) observer->exit_allowed();
}

}  // namespace rekindle::sidecar
