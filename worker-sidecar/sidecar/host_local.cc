// Host: ranks and tools on the Unix socket.

#include <algorithm>

#include "common/base/format.h"
#include "common/system/clock.h"
#include "worker-sidecar/sidecar/host_parts.h"

namespace rekindle::sidecar {

void Host::Parts::open_storage() {
  storage = StorageState::trying;
  on_disk([kept = repository] { return kept->open(); },
          [](Parts& self, Status opened) {
            self.storage = opened ? StorageState::ready : StorageState::broken;
            if (opened) {
              self.problems.erase("storage");
              self.log(Severity::info, "the checkpoint folder is usable", {{"path", self.repository->job_folder()}});
            } else {
              self.storage_error = opened.error();
              self.note_problem("storage", opened.error().message);
            }
            for (PendingHello& waiting : std::exchange(self.pending_hellos, {})) {
              self.admit(waiting.link, waiting.hello, waiting.attempt, std::move(waiting.process));
            }
          });
}

void Host::Parts::on_hello(LinkId link, const HelloMessage& hello, std::uint32_t attempt, FileDescriptor process) {
  // What was wrong with the folder may have been put right since; a rank that comes is a reason to
  // look again.
  if (storage == StorageState::broken) open_storage();
  if (storage == StorageState::trying) {
    pending_hellos.push_back({link, hello, attempt, std::move(process)});
    return;
  }
  admit(link, hello, attempt, std::move(process));
}

void Host::Parts::refuse(LinkId link, const Error& error) {
  log(Severity::warning, "a rank was refused", {{"message", error.message}});
  server->send(link, RefusedMessage{error}, coordination.attempt());
  server->close_after_sending(link);
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
    note_problem("control_block", control.error().message);
    return refuse(link, control.error());
  }
  if (!known) problems.erase("control_block");
  server->send(link,
               ControlMessage{.slot_bytes = (*control)->slot_bytes(),
                              .incarnation = (*control)->incarnation(),
                              .checkpoint_dir = repository->job_folder(),
                              .ranks_here = settings.ranks_per_pod},
               coordination.attempt(), (*control)->descriptor());
  log(Severity::info, known ? "a rank came back" : "a rank came",
      {{"rank", std::to_string(hello.rank)},
       {"pid", std::to_string(hello.pid)},
       {"library_version", hello.library_version}});
  const RankStatus word = (*control)->word();
  const bool held = (*control)->held();
  // It may have been carried out while nobody was here to be told.
  ranks.settle_rebuild(hello.rank);
  const std::uint64_t rebuild_term = (*control)->rebuild_term();
  tell(RankConnected{.rank = hello.rank,
                     .attempt = attempt,
                     .term = std::max(hello.term, rebuild_term),
                     .word = word,
                     .held = held,
                     .rebuilds = hello.rebuilds,
                     .rebuild_term = rebuild_term});
}

void Host::Parts::on_message(LinkId link, const LocalMessage& message) {
  const std::optional<std::uint32_t> found = ranks.rank_of(link);
  if (!found) return;  // it was refused, or another connection has taken its rank
  const std::uint32_t rank = *found;
  if (const auto* registered = std::get_if<RegisteredMessage>(&message)) {
    ranks.set_registered(rank, *registered);
    tell(RankRegistered{rank, *registered});
  } else if (const auto* loaded = std::get_if<LoadedMessage>(&message)) {
    if (loaded->ok && !loaded->way.empty()) {
      log(Severity::info, "a rank has loaded a checkpoint",
          {{"rank", std::to_string(rank)},
           {"path", loaded->path},
           {"bytes", std::to_string(loaded->bytes_read)},
           {"way", loaded->way}});
    }
    tell(RankLoaded{rank, *loaded});
  } else if (const auto* written = std::get_if<WrittenMessage>(&message)) {
    log(Severity::info, "a rank has written its part",
        {{"rank", std::to_string(rank)},
         {"file", written->written.file},
         {"bytes", std::to_string(written->written.bytes)},
         {"way", written->written.way}});
    tell(RankWritten{rank, *written});
  } else if (const auto* failed = std::get_if<WriteFailedMessage>(&message)) {
    log(Severity::warning, "a rank could not write its part",
        {{"rank", std::to_string(rank)}, {"message", failed->error.message}});
    tell(RankWriteFailed{rank, *failed});
  } else if (const auto* collective = std::get_if<CollectiveFailedMessage>(&message)) {
    log(Severity::warning, "a collective failed", {{"rank", std::to_string(rank)}, {"why", collective->why}});
    tell(RankCollectiveFailed{rank, *collective});
  } else if (const auto* rebuilt = std::get_if<RebuiltMessage>(&message)) {
    ranks.settle_rebuild(rank);
    log(Severity::info, "a rank makes its communicators anew and goes on",
        {{"rank", std::to_string(rank)}, {"step", std::to_string(rebuilt->step)}});
  } else if (const auto* kept = std::get_if<KeptMessage>(&message)) {
    tell(RankKept{rank, kept->serial, kept->ok ? Status() : Status(std::unexpected(kept->error))});
  } else if (const auto* taken = std::get_if<SnapshottedMessage>(&message)) {
    tell(RankSnapshotted{rank, taken->step, taken->microseconds,
                         taken->ok ? Status() : Status(std::unexpected(taken->error))});
  } else if (std::holds_alternative<CheckpointWantedMessage>(message)) {
    tell(RankWantsCheckpoint{rank});
  } else if (std::holds_alternative<FinishedMessage>(message)) {
    ranks.mark_finished(rank);
    tell(RankFinished{rank});
  }
}

void Host::Parts::on_link_ended(LinkId link, const std::string& why) {
  std::erase_if(pending_hellos, [&](const PendingHello& waiting) { return waiting.link == link; });
  if (const std::optional<std::uint32_t> rank = ranks.rank_of(link)) {
    log(Severity::debug, "the connection of a rank ended", {{"rank", std::to_string(*rank)}, {"why", why}});
    return ranks.link_ended(link);
  }
  // Hooks are known to the machine by the number of their connection; one that was answered already
  // is none of its business any more.
  tell(HookGone{link});
}

void Host::Parts::on_rank_died(std::uint32_t rank, RankStatus word) {
  // The end of the process may be seen before the goodbye that it sent; its word says that rk_close
  // was called.
  if (word.phase == RankPhase::finished && !ranks.finished(rank)) {
    ranks.mark_finished(rank);
    tell(RankFinished{rank});
  }
  const bool finished = ranks.finished(rank);
  log(finished ? Severity::info : Severity::warning, finished ? "a rank ended" : "a rank died",
      {{"rank", std::to_string(rank)},
       {"step", std::to_string(word.step)},
       {"phase", std::string(to_string(word.phase))}});
  if (observer != nullptr) observer->rank_died(rank, word, finished, monotonic_now());
  tell(RankDied{rank, word, static_cast<std::uint32_t>(coordination.attempt()),
                ranks.shadow_steps(rank, coordination.attempt())});
}

}  // namespace rekindle::sidecar
