#include "worker-sidecar/launcher/run_command.h"

#include <poll.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <expected>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "common/base/format.h"
#include "common/contract/environment.h"
#include "common/contract/exit_codes.h"
#include "common/system/clock.h"
#include "worker-sidecar/launcher/environment.h"
#include "worker-sidecar/launcher/local_host.h"
#include "worker-sidecar/launcher/output.h"
#include "worker-sidecar/launcher/pod_saver.h"
#include "worker-sidecar/launcher/run_folder.h"
#include "worker-sidecar/sidecar/checkpoint_repository.h"
#include "worker-sidecar/storage/nonce.h"

namespace rekindle::launcher {
namespace {

constexpr int kUsageCode = 2;
constexpr int kFailureCode = 1;
// What a call to the storage gets to return when the run is over, and between two lives before a
// line says what is waited for.
constexpr Duration kStoragePatience = std::chrono::seconds(1);

int complain(const std::string& message, int code = kFailureCode) {
  say(message);
  return code;
}

// As a shell: 127 not found, 126 found and not to be run.
int complain_about_start(const Error& error) {
  return complain(error.message, error.code == ErrorCode::not_found ? 127 : 126);
}

Status start_ranks(Children& children, const Environment& base, std::uint32_t first_rank, std::uint32_t ranks,
                   std::uint32_t world_size) {
  for (std::uint32_t local = 0; local < ranks; ++local) {
    const std::uint32_t rank = first_rank + local;
    if (Status started =
            children.start(rank, rank_environment(base, {.rank = rank, .world_size = world_size, .local_rank = local}));
        !started) {
      return started;
    }
  }
  return {};
}

std::set<std::uint32_t> rank_set(std::uint32_t first, std::uint32_t count) {
  std::set<std::uint32_t> ranks;
  for (std::uint32_t rank = first; rank < first + count; ++rank) ranks.insert(rank);
  return ranks;
}

std::string absolute(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::path full = std::filesystem::absolute(path, ignored);
  return full.empty() ? path : full.lexically_normal().string();
}

// A job outside a pod: what its sidecar and its ranks are told.
struct LocalJob {
  sidecar::HostSettings settings;
  Environment of_ranks;
};

// The first that is given: the option, the variable, the default.
std::string first_given(const std::string& option, const Environment& base, const char* variable,
                        const std::string& otherwise) {
  if (!option.empty()) return option;
  const auto found = base.find(variable);
  return found == base.end() ? otherwise : found->second;
}

// Puts options over the variables that they stand for. An error names what the user has written.
Result<CheckpointSettings> read_checkpoint_options(const RunOptions& options, Environment& base) {
  struct Given {
    const char* option;
    const char* variable;
    const std::string& value;
  };
  const Given given[] = {{"--checkpoint-every", environment::kCheckpointEvery, options.checkpoint_every},
                         {"--shadow-every", environment::kShadowEvery, options.shadow_every},
                         {"--keep", environment::kKeep, options.keep},
                         {"--write-bandwidth-max", environment::kWriteBandwidthMax, options.write_bandwidth_max},
                         {"--resume", environment::kResume, options.resume}};
  SettingTexts said;
  for (const Given& each : given) {
    if (!each.value.empty()) said[each.variable] = each.value;
  }
  base = settings_over(said, base);
  const auto called = [&](const char* variable) -> std::string {
    for (const Given& each : given) {
      if (variable == std::string_view(each.variable) && !each.value.empty()) return each.option;
    }
    return variable;
  };
  return read_checkpoint_settings([&](const char* name) { return base.contains(name) ? base[name] : std::string(); },
                                  called);
}

Result<LocalJob> read_local_job(const RunOptions& options) {
  LocalJob job{.settings = {.job_namespace = "local",
                            .job_uid = "local-" + draw_nonce(),
                            .pod_name = "local",
                            .ranks_per_pod = options.ranks},
               .of_ranks = own_environment()};
  sidecar::HostSettings& settings = job.settings;
  settings.job = first_given(options.job, job.of_ranks, environment::kJob, "local");
  settings.checkpoint_folder =
      absolute(first_given(options.checkpoint_folder, job.of_ranks, environment::kCheckpointFolder, "checkpoints"));
  settings.deadline = std::chrono::seconds(options.deadline_seconds);
  settings.grace = settings.deadline;
  Result<CheckpointSettings> checkpoints = read_checkpoint_options(options, job.of_ranks);
  if (!checkpoints) return std::unexpected(checkpoints.error());
  settings.checkpoints = *std::move(checkpoints);
  return job;
}

// What only this run has: where sidecar and ranks meet.
void add_run_folder(const RunFolder& folder, LocalJob& job) {
  job.settings.run_folder = folder.path();
  job.settings.socket_path = folder.path() + "/sidecar.sock";
  job.of_ranks[environment::kSocket] = job.settings.socket_path;
  job.of_ranks[environment::kCheckpointFolder] = job.settings.checkpoint_folder;
  job.of_ranks[environment::kNamespace] = job.settings.job_namespace;
  job.of_ranks[environment::kJob] = job.settings.job;
  job.of_ranks[environment::kJobUid] = job.settings.job_uid;
}

// From a start of the ranks to the end of them all.
struct LocalLife {
  LifeReport report;
  std::optional<SavedPoint> saved;
  std::uint32_t attempt = 0;  // 0: training never began
  std::string problem;
  Instant ended{};
  // whom the kernel could not end
  std::vector<Child> stuck;
  // of a save that began and is not durable
  std::uint64_t step_under_way = 0;
  // its end has not returned from the storage yet
  bool storage_hangs = false;
  std::unique_ptr<LocalHost> host;

  std::uint64_t saved_step() const { return saved ? saved->step : 0; }
  std::string what_is_left() const {
    if (saved) return format("step {} is saved", saved->step);
    if (step_under_way == 0) return "nothing new was saved";
    if (!storage_hangs) return format("step {} is not known to be saved", step_under_way);
    return format("the storage has not answered yet, step {} may still be published", step_under_way);
  }
  std::string failure() const {
    if (!report.first_failure) return "";
    return format("rank {} ended with {} {}", report.first_failure->rank, describe(*report.first_failure),
                  attempt == 0 ? std::string("before training began") : format("in attempt {}", attempt));
  }
  // A folder that cannot be used does not get better by trying: a person has to change something.
  bool is_hopeless() const { return attempt == 0 && !problem.empty(); }
};

// A host ends once the storage has returned from every call, which may be never, so this goes on
// in a thread of its own. The waker is woken when it is over.
std::shared_ptr<Waker> begin_end_of(std::unique_ptr<LocalHost> host) {
  auto over = std::make_shared<Waker>();
  std::thread([over, host = std::move(host)]() mutable {
    host.reset();
    over->wake();
  }).detach();
  return over;
}

enum class Waited : std::uint8_t { over, late, told_to_end };

Waited wait_for(const Waker& waker, std::optional<Instant> until, const SignalWatcher& signals) {
  while (true) {
    while (const std::optional<int> signal = signals.take()) {
      if (*signal != SIGCHLD && *signal != SIGUSR1) return Waited::told_to_end;
    }
    if (waker.take()) return Waited::over;
    const Instant now = monotonic_now();
    if (until && now >= *until) return Waited::late;
    std::array<pollfd, 2> waiting{{{.fd = waker.descriptor(), .events = POLLIN, .revents = 0},
                                   {.fd = signals.descriptor(), .events = POLLIN, .revents = 0}}};
    const timespec left = timespec_until(until.value_or(now), now);
    ::ppoll(waiting.data(), waiting.size(), until ? &left : nullptr, nullptr);
  }
}

// Or the exit code where it could not begin; that is said then.
std::expected<LocalLife, int> run_local_life(const RunOptions& options, const LocalJob& job, EventLog& events,
                                             const SignalWatcher& signals) {
  Result<std::unique_ptr<LocalHost>> host = LocalHost::start(job.settings, events, options.verbose);
  if (!host) return std::unexpected(complain(host.error().message));
  Children children({.command = options.command, .tag_output = options.tag_output});
  if (Status started = start_ranks(children, job.of_ranks, 0, options.ranks, options.ranks); !started) {
    children.end_all();
    wait_for(*begin_end_of(*std::move(host)), monotonic_now() + kStoragePatience, signals);
    return std::unexpected(complain_about_start(started.error()));
  }
  Supervision supervision(
      {.ranks = rank_set(0, options.ranks), .deadline = job.settings.deadline, .saves_on_terminate = true});
  const LifeReport report = run_life(children, supervision, signals, (*host)->save_ended(), **host);
  return LocalLife{.report = report,
                   .saved = (*host)->saved(),
                   .attempt = (*host)->attempt(),
                   .problem = (*host)->problem(),
                   .ended = monotonic_now(),
                   .stuck = children.end_all(),
                   .step_under_way = (*host)->step_under_way(),
                   .host = *std::move(host)};
}

void print_end(const LocalLife& life, std::uint32_t restarts_max) {
  const std::string left = life.what_is_left();
  for (const Child& child : life.stuck) {
    say(
        format("rank {} (process {}) does not end: the kernel holds it, as it does while a device or a network file "
               "system hangs. The run ends, because this rank may still write. Start it again when the process is "
               "gone.",
               child.rank, child.pid));
  }
  if (life.report.over.terminated) {
    say(format("ended by a signal; {}", left));
  } else if (life.report.over.exit_code != 0) {
    const std::string why = !life.stuck.empty()  ? "It is not started again."
                            : life.is_hopeless() ? "It is not started again, since that would meet the same problem."
                            : restarts_max == 0  ? "Restarts are switched off (--max-restarts 0)."
                                                : format("All {} restarts are used up (--max-restarts).", restarts_max);
    say(format("{}; {}. {}", life.failure(), left, why));
  }
}

// Outside a pod.
int run_locally(const RunOptions& options, const SignalWatcher& signals) {
  const Instant began = monotonic_now();
  EventLog events(began);
  if (!options.events_file.empty()) {
    if (Status opened = events.open(options.events_file); !opened) return complain(opened.error().message);
  }
  if (Result<std::string> program = find_program(options.command.front()); !program)
    return complain_about_start(program.error());
  Result<LocalJob> job = read_local_job(options);
  if (!job) return complain(job.error().message, kUsageCode);
  const Result<JobLock> lock = JobLock::take(job->settings.checkpoint_folder, job->settings.job);
  if (!lock) return complain(lock.error().message);
  Result<RunFolder> folder = RunFolder::make();
  if (!folder) return complain(folder.error().message);
  add_run_folder(*folder, *job);

  // Not through the destructors: a call to the storage that hangs must not hold the end.
  const auto leave = [&] [[noreturn]] (int exit_code) {
    folder->remove();
    events.flush();
    flush_output();
    std::_Exit(exit_code);
  };
  const auto end_run = [&] [[noreturn]] (const LocalLife& life, int exit_code) {
    events.write({.event = "finished", .attempt = life.attempt, .step = life.saved_step(), .exit_code = exit_code},
                 life.ended);
    print_end(life, options.restarts_max);
    leave(exit_code);
  };
  for (std::uint32_t restarts = 0;; ++restarts) {
    std::expected<LocalLife, int> life = run_local_life(options, *job, events, signals);
    if (!life) leave(life.error());
    LifeOver& over = life->report.over;
    const std::shared_ptr<Waker> host_over = begin_end_of(std::move(life->host));
    Waited waited = wait_for(*host_over, monotonic_now() + kStoragePatience, signals);
    life->storage_hangs = waited == Waited::late;
    if (over.exit_code == 0 || over.terminated || life->is_hopeless() || !life->stuck.empty() ||
        restarts >= options.restarts_max)
      end_run(*life, over.exit_code);
    if (waited == Waited::late) {
      say(format("{}; the ranks are started again when the storage of {} has answered", life->failure(),
                 job->settings.checkpoint_folder));
      waited = wait_for(*host_over, std::nullopt, signals);
      life->storage_hangs = waited != Waited::over;
    }
    if (waited == Waited::told_to_end) {
      over.terminated = true;
      end_run(*life, kStoppedExitCode);
    }
    events.write({.event = "restart", .attempt = life->attempt, .step = life->saved_step(), .message = life->failure()},
                 life->ended);
    say(format("{}, {:.1f} s after the start; {}; restart {} of {}", life->failure(), to_seconds(life->ended - began),
               life->what_is_left(), restarts + 1, options.restarts_max));
  }
}

// In a protected pod.
int run_in_pod(const RunOptions& options, const SignalWatcher& signals) {
  const Result<sidecar::HostSettings> settings = sidecar::read_host_settings(sidecar::process_variable);
  if (!settings) return complain(settings.error().message);
  if (settings->ranks_per_pod != options.ranks) {
    return complain(
        format("-n {} does not fit this pod, which was admitted with {} rank{} a pod. Set the job's annotation "
               "rekindle.dev/ranks-per-pod: \"{}\" and create the job anew.",
               options.ranks, settings->ranks_per_pod, settings->ranks_per_pod == 1 ? "" : "s", options.ranks),
        kUsageCode);
  }
  Children children({.command = options.command, .tag_output = options.tag_output});
  if (Status started =
          start_ranks(children, own_environment(), settings->first_rank(), options.ranks, settings->world_size());
      !started) {
    return complain_about_start(started.error());
  }
  PodSaver saver(settings->socket_path);
  Supervision supervision({.ranks = rank_set(settings->first_rank(), options.ranks),
                           // The sidecar knows the job's deadline and answers within it; one that
                           // is gone is noticed in seconds.
                           .deadline = PodSaver::kAnswerLimit,
                           .saves_on_terminate = false});
  const LifeReport report = run_life(children, supervision, signals, saver.save_ended(), saver);
  // Not through the destructors: a call to a sidecar that does not answer must not hold the
  // container's end.
  if (report.over.exit_code != 0) {
    children.signal_all(SIGKILL);
    flush_output();
    std::_Exit(report.over.exit_code);
  }
  return 0;
}

}  // namespace

int run_ranks(const RunOptions& options, const SignalWatcher& signals) {
  return sidecar::process_variable(environment::kSocket).empty() ? run_locally(options, signals)
                                                                 : run_in_pod(options, signals);
}

}  // namespace rekindle::launcher
