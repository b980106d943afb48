#include "worker-sidecar/sidecar/host.h"

#include "worker-sidecar/sidecar/host_parts.h"
#include "worker-sidecar/sidecar/job_memory.h"

namespace rekindle::sidecar {

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
                raw->handle(HookCalled{.hook = link, .container = hook.container, .seconds_left = hook.seconds_left});
                raw->log(Severity::info, "a preStop hook asks for a breakpoint", {{"container", hook.container}});
              },
          .status =
              [raw = parts.get()](LinkId link) {
                raw->server->send(link, StatusMessage{.state_text = raw->status_text()}, raw->coordination.attempt());
              },
          .ended = [raw = parts.get()](LinkId link, const std::string& why) { raw->on_link_ended(link, why); },
      });
  if (!server) return std::unexpected(server.error());
  parts->server = std::move(*server);
  const Result<std::optional<JobRemembered>> before = remembered_job(parts->settings.run_folder);
  if (!before) parts->note_problem("job_memory", before.error().message);
  if (before && *before) parts->handle(**before);
  parts->open_storage();
  parts->arm_wake();
  return std::unique_ptr<Host>(new Host(std::move(parts)));
}

Host::Host(std::shared_ptr<Parts> parts) : parts_(std::move(parts)) {}

Host::~Host() {
  // The gates of ranks that still live are left as they are: the next sidecar on this socket
  // finds them so.
  parts_->server.reset();
  parts_->wake_timer.cancel();
  parts_->poll_timer.cancel();
  parts_->first_step_timer.cancel();
}

void Host::handle(const CoordinationEvent& event) {
  parts_->handle(event);
  if (std::holds_alternative<Terminating>(event)) parts_->end_waits();
}

void Host::process_ended(std::uint32_t rank) { parts_->ranks.process_ended(rank); }

bool Host::request_checkpoint() {
  for (const std::uint32_t rank : parts_->ranks.live_ranks()) {
    if (parts_->ranks.finished(rank) || parts_->coordination.attempt() == 0) continue;
    parts_->handle(RankRequestedCheckpoint{rank});
    return true;
  }
  return false;
}

HostStatus Host::status() const { return parts_->status(); }

std::string Host::status_text() const { return parts_->status_text(); }

}  // namespace rekindle::sidecar
