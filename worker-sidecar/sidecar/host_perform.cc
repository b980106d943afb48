// Host: what the machines want done.
#include <algorithm>

#include "common/base/format.h"
#include "common/system/clock.h"
#include "worker-sidecar/checkpoint/restore_plan.h"
#include "worker-sidecar/checkpoint/restore_policy.h"
#include "worker-sidecar/sidecar/host_parts.h"
#include "worker-sidecar/sidecar/job_memory.h"
#include "worker-sidecar/storage/files.h"
#include "worker-sidecar/storage/publisher.h"

namespace rekindle::sidecar {
namespace {

// The manifest is the one that was offered and its files are there with their sizes. Their bytes
// are hashed by the ranks, each file by whoever reads it, before anybody takes the offer.
Status look_at_candidate(CheckpointRepository& repository, const VerifyCandidate& wanted) {
  const std::string& path = wanted.path;
  FileSystem& files = real_file_system();
  Result<SealedManifest> sealed = read_manifest(files, repository.job_folder(), path);
  if (!sealed) return std::unexpected(as_damage(sealed.error()));
  if (sealed->hash != wanted.manifest_hash) {
    return fail(ErrorCode::corrupt, format("{} has a manifest with another hash than the one that was listed", path));
  }
  if (Status ours = check_job(sealed->manifest, repository.job()); !ours) return ours;
  std::vector<const Layout*> layouts;
  for (const std::shared_ptr<const Layout>& layout : wanted.layouts) layouts.push_back(layout.get());
  if (const std::vector<std::string> differences = list_job_differences(sealed->manifest, layouts);
      !differences.empty()) {
    return fail(ErrorCode::invalid_input, format("the checkpoint of step {} does not fit what the job has "
                                                 "registered: {}. Restore the program as it was, or give the new one "
                                                 "another name or checkpoint folder",
                                                 sealed->manifest.step, describe_differences(differences)));
  }
  for (const ManifestFile& file : sealed->manifest.files) {
    const std::string name = join_path(join_path(repository.job_folder(), path), file.name);
    Result<FileInfo> info = info_of(files, name);
    if (!info) return std::unexpected(info.error());
    if (info->bytes != file.bytes) {
      return fail(ErrorCode::corrupt, format("{} has {} bytes, the manifest says {}", name, info->bytes, file.bytes));
    }
  }
  return {};
}

}  // namespace

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

void Host::Parts::on(const TakeForRank& output) { send_to_rank(output.rank, output.take); }

void Host::Parts::on(const RefuseRank& output) {
  log(Severity::error, "a rank is refused", {{"rank", std::to_string(output.rank)}, {"message", output.error.message}});
  send_to_rank(output.rank, RefusedMessage{output.error});
}

void Host::Parts::on(const ListCandidates&) {
  on_disk([kept = repository] { return kept->candidates(); },
          [](Parts& self, Result<CandidateOrder> order) {
            if (!order) return self.tell(CandidatesListed{std::unexpected(order.error())});
            for (const RefusedFolder& refused : order->refused) {
              self.log(refused.complete || refused.published ? Severity::warning : Severity::info,
                       "a checkpoint is not considered", {{"path", refused.path}, {"reason", refused.reason}});
            }
            for (const std::string& note : order->notes)
              self.log(Severity::info, "about the checkpoint folder", {{"note", note}});
            std::vector<RestoreCandidate> candidates;
            for (const Candidate& usable : order->usable) {
              candidates.push_back({.path = usable.path,
                                    .attempt = static_cast<std::uint32_t>(usable.attempt),
                                    .step = usable.step,
                                    .manifest_hash = usable.sealed.hash,
                                    .summary = summarize(usable.sealed.manifest)});
            }
            self.tell(CandidatesListed{std::move(candidates)});
          });
}

void Host::Parts::on(const VerifyCandidate& output) {
  on_disk(
      [kept = repository, output] { return look_at_candidate(*kept, output); },
      [path = output.path](Parts& self, Status verified) { self.tell(CandidateVerified{path, std::move(verified)}); });
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
          return self.tell(AttemptClaimed{.attempt = std::unexpected(claimed.record.error()), .failures = {}});
        self.tell(AttemptClaimed{.attempt = static_cast<std::uint32_t>(claimed.record->attempt),
                                 .failures = claimed.failures});
      });
}

void Host::Parts::on(const AttemptBegun& output) {
  log(Severity::info, output.rejoined ? "the attempt goes on" : "an attempt begins",
      {{"attempt", std::to_string(output.attempt)}, {"step", std::to_string(output.step)}, {"path", output.path}});
  if (observer != nullptr) observer->attempt_begun(output, monotonic_now());
  if (output.rejoined) return;
  await_first_step(output.step + 1);
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
    return tell(RankWriteFailed{output.rank,
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
  for (const std::string& reason : captured.reasons) {
    log(Severity::warning, "small state of a rank is not there",
        {{"step", std::to_string(output.step)}, {"reason", reason}});
  }
  on_disk(
      [kept = repository, output, states = std::move(captured.states), missing = std::move(captured.missing),
       ordinal = settings.ordinal]() -> Result<StatesOfPod> {
        Result<WrittenStates> written = kept->write_states(output.path, ordinal, states);
        if (!written) return std::unexpected(written.error());
        return StatesOfPod{.file = written->file, .states = written->states, .missing = missing};
      },
      [term = output.term](Parts& self, Result<StatesOfPod> written) {
        self.tell(StatesWritten{term, std::move(written)});
      });
}

void Host::Parts::on(const ReleaseRanks& output) {
  holding = false;
  poll_timer.cancel();
  if (output.order != GateOrder::rebuild) return ranks.release_all(output.order);
  if (Status released = ranks.release_to_rebuild(output.rebuild); !released) {
    log(Severity::error, "the ranks cannot be told to rebuild and stop instead",
        {{"message", released.error().message}});
    ranks.release_all(GateOrder::stop);
  }
}

void Host::Parts::on(const EndRanks& output) {
  for (const std::uint32_t rank : output.ranks) send_to_rank(rank, EndMessage{output.exit_code});
}

void Host::Parts::on(const AnswerHook& output) {
  server->send(output.hook, output.done, coordination.attempt());
  server->close_after_sending(output.hook);
}

void Host::Parts::on(const CreateFolder& output) {
  on_disk(
      [kept = repository, output] { return kept->create_folder(output.attempt, output.step); },
      [term = output.term](Parts& self, Result<std::string> path) { self.tell(FolderCreated{term, std::move(path)}); });
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
        self.tell(CheckpointPublished{term, std::move(published)});
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
  log(record.state == SaveState::failed ? Severity::error : Severity::info, "breakpoint",
      {{"state", std::string(to_string(record.state))},
       {"step", std::to_string(record.step)},
       {"record", to_text(record)}});
  if (observer != nullptr) observer->breakpoint(record, coordination.attempt(), monotonic_now());
}

void Host::Parts::on(const ReportRestore& output) {
  for (const std::string& refused : output.refused)
    log(Severity::warning, "a checkpoint was refused", {{"reason", refused}});
  log(Severity::info, output.step == 0 ? "nothing to restore" : "restored",
      {{"attempt", std::to_string(output.attempt)}, {"step", std::to_string(output.step)}, {"path", output.path}});
  if (observer != nullptr) observer->restore_report(output.attempt, output.step, output.path, output.refused);
}

void Host::Parts::on(const RememberJob& output) { remember_job(settings.run_folder, output); }

// ---- periodic checkpoints and shadows ----

void Host::Parts::on(const KeepForRank& output) {
  Result<std::shared_ptr<const ShadowFile>> shadow =
      ranks.make_shadow(output.rank, {.serial = output.term,
                                      .snapshots = output.snapshots,
                                      .shadow_every_steps = output.shadow_every_steps,
                                      .pieces = output.pieces});
  if (shadow && !ranks.link_of(output.rank))
    shadow = fail(ErrorCode::unavailable, format("rank {} is not connected", output.rank), Retry::yes);
  if (!shadow) return tell(RankKept{output.rank, output.term, std::unexpected(shadow.error())});
  send_to_rank(output.rank, KeepMessage{output.term}, (*shadow)->descriptor());
}

void Host::Parts::on(const OrderSnapshot& output) {
  ranks.want_snapshot(output.step);
  if (output.step != 0) on(LookAtRanks{});
}

void Host::Parts::on(const LookAtRanks&) {
  for (const auto& [rank, word] : ranks.live_words())
    tell(RankSeen{rank, word, ranks.shadow_steps(rank, coordination.attempt())});
}

void Host::Parts::on(const WriteFromShadow& output) {
  const std::shared_ptr<const RankTable::Shadow> shadow = ranks.shadow_of(output.rank);
  if (!shadow) {
    return tell(RankWriteFailed{
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
        if (!written) return self.tell(RankWriteFailed{rank, {.term = term, .error = written.error()}});
        self.log(Severity::info, "the share of a rank was written from its copy in memory",
                 {{"rank", std::to_string(rank)},
                  {"file", written->file},
                  {"bytes", std::to_string(written->bytes)},
                  {"way", written->way}});
        self.tell(RankWritten{rank, {.term = term, .written = *std::move(written)}});
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
  problems.erase("periodic_checkpoint");
  log(Severity::info, "periodic checkpoint",
      {{"step", std::to_string(output.step)},
       {"path", output.path},
       {"bytes", std::to_string(output.bytes)},
       {"stopped_milliseconds", std::to_string(output.stopped_milliseconds)},
       {"written_milliseconds", std::to_string(output.written_milliseconds)},
       {"rhythm", output.rhythm}});
  if (observer != nullptr) observer->periodic(output, coordination.attempt(), monotonic_now());
}

void Host::Parts::on(const NoteProblem& output) { note_problem(output.code, output.message); }

void Host::Parts::on(const ExitAllowed&) {
  if (observer != nullptr) observer->exit_allowed();
}

}  // namespace rekindle::sidecar
