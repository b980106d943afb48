#include "worker-sidecar/sidecar/host.h"

#include <algorithm>
#include <asio/post.hpp>

#include "common/base/json_fields.h"
#include "common/system/clock.h"
#include "worker-sidecar/sidecar/host_parts.h"
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

Result<std::unique_ptr<Host>> Host::start(asio::io_context& loop, Options options) {
  auto parts = std::make_shared<Parts>(loop, std::move(options));
  Result<std::unique_ptr<LocalServer>> server = LocalServer::listen(
      loop, parts->settings.socket_path,
      {
          .hello = [raw = parts.get()](
                       LinkId link, const HelloMessage& hello, std::uint32_t attempt,
                       FileDescriptor process) { raw->on_hello(link, hello, attempt, std::move(process)); },
          .message = [raw = parts.get()](LinkId link, const LocalMessage& message,
                                         std::uint32_t) { raw->on_message(link, message); },
          .hook =
              [raw = parts.get()](LinkId link, const HookMessage& hook) {
                raw->log(Severity::info, "a preStop hook asks for a breakpoint", {{"container", hook.container}});
                raw->tell(HookCalled{.hook = link, .container = hook.container, .seconds_left = hook.seconds_left});
              },
          .status =
              [raw = parts.get()](LinkId link) {
                raw->server->send(link, StatusMessage{.state_text = raw->status_text()}, raw->coordination.attempt());
              },
          .ended = [raw = parts.get()](LinkId link, const std::string& why) { raw->on_link_ended(link, why); },
      });
  if (!server) return std::unexpected(server.error());
  parts->server = std::move(*server);
  if (const std::optional<JobRemembered> before = remembered_job(parts->settings.run_folder)) parts->tell(*before);
  parts->open_storage();
  parts->arm_wake();
  return std::unique_ptr<Host>(new Host(std::move(parts)));
}

Host::Host(std::shared_ptr<Parts> parts) : parts_(std::move(parts)) {}

Host::~Host() {
  // The gates of ranks that still live are left as they are: whoever comes next on this socket
  // finds them so.
  parts_->server.reset();
  parts_->wake_timer.cancel();
  parts_->poll_timer.cancel();
  parts_->first_step_timer.cancel();
}

void Host::tell(const CoordinationEvent& event) { parts_->tell(event); }

void Host::process_ended(std::uint32_t rank) { parts_->ranks.process_ended(rank); }

bool Host::ask_for_checkpoint() {
  for (const std::uint32_t rank : parts_->ranks.live_ranks()) {
    if (parts_->ranks.finished(rank) || parts_->coordination.attempt() == 0) continue;
    parts_->tell(RankWantsCheckpoint{rank});
    return true;
  }
  return false;
}

HostStatus Host::status() const { return parts_->status(); }

std::string Host::status_text() const { return parts_->status_text(); }

void Host::Parts::tell(CoordinationEvent event) {
  events.push_back(std::move(event));
  // Performing an output may tell something new; it waits its turn so that outputs stay in order.
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
    if (const auto self = weak.lock(); self && !error) self->tell(Tick{});
  });
}

void Host::Parts::log(Severity level, std::string_view message, Facts fields) const {
  if (observer != nullptr) observer->log(level, message, fields);
}

void Host::Parts::note_problem(const std::string& code, const std::string& message) {
  std::string& known = problems[code];
  if (known == message) return;
  known = message;
  log(Severity::warning, "problem", {{"code", code}, {"message", message}});
  if (observer != nullptr) observer->problem(code, message);
}

void Host::Parts::poll_words() {
  if (!holding) return;
  for (const auto& [rank, word] : ranks.changed_words())
    tell(RankSeen{rank, word, ranks.shadow_steps(rank, coordination.attempt())});
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
  Json text{{"job", settings.job_namespace + "/" + settings.job},
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
    text["protection"] = {{"state", protection->full ? "full" : "partial"}, {"message", protection->sentence}};
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

}  // namespace rekindle::sidecar
