#include "worker-sidecar/launcher/local_host.h"

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <cmath>
#include <thread>

#include "common/base/format.h"
#include "worker-sidecar/launcher/output.h"
#include "worker-sidecar/sidecar/host.h"

namespace rekindle::launcher {

using namespace sidecar;  // NOLINT(google-build-using-namespace): this file is a sidecar without a pod

struct LocalHost::Loop {
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  std::unique_ptr<Host> host;
  std::thread thread;
};

Result<std::unique_ptr<LocalHost>> LocalHost::start(const HostSettings& settings, EventLog& events, bool verbose) {
  std::unique_ptr<LocalHost> local(new LocalHost(events, verbose, settings.deadline));
  CoordinationConfig coordination{.ordinal = 0,
                                  .pods = 1,
                                  .ranks_per_pod = settings.ranks_per_pod,
                                  .after_fault = AfterBreakpoint::stop,
                                  .wait_for_go = false,
                                  .limits = {.deadline = settings.deadline},
                                  .snapshots = settings.checkpoints.snapshots};
  Result<std::unique_ptr<Host>> host = Host::start(local->loop_->context, {.settings = settings,
                                                                           .coordination = coordination,
                                                                           .create_checkpoint_root = true,
                                                                           .observer = local.get(),
                                                                           .peers = nullptr});
  if (!host) return std::unexpected(host.error());
  local->loop_->host = std::move(*host);
  local->loop_->thread = std::thread([context = &local->loop_->context] { context->run(); });
  return local;
}

LocalHost::LocalHost(EventLog& events, bool verbose, Duration deadline)
    : events_(events), verbose_(verbose), deadline_(deadline), loop_(std::make_unique<Loop>()) {}

LocalHost::~LocalHost() {
  loop_->work.reset();
  loop_->context.stop();
  if (loop_->thread.joinable()) loop_->thread.join();
  loop_->host.reset();
}

void LocalHost::rank_ended(const ChildEnd& end) {
  asio::post(loop_->context, [this, rank = end.rank] { loop_->host->process_ended(rank); });
}

void LocalHost::save() {
  asio::post(loop_->context, [this] { loop_->host->handle(Terminating{to_seconds(deadline_)}); });
}

void LocalHost::checkpoint_now() {
  asio::post(loop_->context, [this] {
    if (!loop_->host->request_checkpoint()) say("SIGUSR1: no rank is training yet, there is nothing to save");
  });
}

std::optional<SavedPoint> LocalHost::saved() const {
  const std::lock_guard lock(mutex_);
  return saved_;
}

std::uint64_t LocalHost::step_under_way() const {
  const std::lock_guard lock(mutex_);
  return step_under_way_;
}

std::uint32_t LocalHost::attempt() const {
  const std::lock_guard lock(mutex_);
  return attempt_;
}

std::string LocalHost::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

void LocalHost::log(Severity level, std::string_view message, const Facts& fields) {
  // What ranks do once everything is saved is what the sidecar ordered, or what the launcher did to
  // them.
  if (!verbose_ && saving_over_ && level != Severity::error) return;
  if (!verbose_ && level != Severity::warning && level != Severity::error) return;
  // breakpoint() below says how it ended.
  if (!verbose_ && message == "breakpoint") return;
  // What is wrong with a checkpoint is a problem of the sidecar and the answer to each rank.
  for (const auto& [name, value] : fields) {
    if (!verbose_ && name == "message" && !said_.insert(value).second) return;
  }
  std::string line(message);
  std::string_view between = ": ";
  for (const auto& [name, value] : fields) {
    line += between;
    line += name == "message" ? value : format("{} {}", name, value);
    between = ", ";
  }
  say(line);
}

void LocalHost::rank_died(std::uint32_t rank, RankStatus word, bool finished, Instant at) {
  // Ranks that end after the breakpoint follow its order.
  if (finished || saving_over_) return;
  events_.write({.event = "rank_died",
                 .attempt = attempt(),
                 .step = word.step,
                 .rank = rank,
                 .message = format("while {}", to_string(word.phase))},
                at);
}

void LocalHost::breakpoint(const BreakpointRecord& record, std::uint32_t attempt, Instant at) {
  const auto report = [&](const char* name, const std::string& path, const std::string& message) {
    events_.write(
        {.event = name, .attempt = attempt, .step = record.step, .term = record.term, .path = path, .message = message},
        at);
  };
  if (record.term != term_) {
    term_ = record.term;
    agreed_reported_ = false;
    report("hold", {}, std::string(to_string(record.cause)));
  } else if (record.state == state_) {
    return;
  }
  state_ = record.state;
  {
    const std::lock_guard lock(mutex_);
    step_under_way_ = record.state == SaveState::durable ? 0 : record.step;
  }
  if (!agreed_reported_ && record.state != SaveState::collecting && record.step != 0) {
    agreed_reported_ = true;
    report("agreed", {}, {});
  }
  if (record.state == SaveState::durable && !record.path.empty()) {
    report("durable", record.path, record.message);
    const std::string when =
        record.path == newest_path_
            ? format("stands in {}, which was saved before the cause", record.path)
            : format("saved in {}, {} ms after the cause", record.path, std::llround(record.durable_milliseconds));
    say(format("step {} {} ({}){}{}", record.step, when, to_string(record.cause), record.message.empty() ? "" : ": ",
               record.message));
    newest_path_ = record.path;
    const std::lock_guard lock(mutex_);
    saved_ = SavedPoint{.attempt = attempt, .step = record.step, .path = record.path};
  }
  if (record.state == SaveState::failed) {
    report("failed", {}, record.message);
    say(format("the checkpoint could not be written: {}", record.message));
  }
}

void LocalHost::periodic(const ReportPeriodic& report, std::uint32_t attempt, Instant at) {
  newest_path_ = report.path;
  events_.write(
      {.event = "periodic", .attempt = attempt, .step = report.step, .path = report.path, .message = report.rhythm},
      at);
  say(format("step {} saved in {} while training went on; it stood for {:.1f} ms ({})", report.step, report.path,
             report.stopped_milliseconds, report.rhythm));
}

void LocalHost::attempt_begun(const AttemptBegun& begun, Instant at) {
  {
    const std::lock_guard lock(mutex_);
    attempt_ = begun.attempt;
  }
  newest_path_ = begun.path;
  events_.write({.event = "restored", .attempt = begun.attempt, .step = begun.step, .path = begun.path}, at);
  if (begun.step != 0)
    say(format("attempt {} goes on with step {} from {}", begun.attempt, begun.step + 1, begun.path));
}

void LocalHost::first_step(std::uint32_t attempt, std::uint64_t step, Instant at) {
  events_.write({.event = "first_step", .attempt = attempt, .step = step}, at);
}

void LocalHost::problem(const std::string&, const std::string& message) {
  const std::lock_guard lock(mutex_);
  if (problem_.empty()) problem_ = message;
}

void LocalHost::exit_allowed() {
  saving_over_ = true;
  save_ended_.wake();
}

}  // namespace rekindle::launcher
