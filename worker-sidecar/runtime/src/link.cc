#include "worker-sidecar/runtime/src/link.h"

#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "common/base/format.h"
#include "common/base/json_fields.h"
#include "common/system/clock.h"
#include "common/system/signals.h"
#include "worker-sidecar/runtime/src/say.h"
#include "worker-sidecar/runtime/src/version.h"

namespace rekindle::runtime {
namespace {

// Signals are the program's: none is delivered to the library's thread, but for those that a fault
// of its own raises.
void leave_signals_to_the_program() {
  sigset_t all;
  ::sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) ::sigdelset(&all, fault);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

int milliseconds_until(Instant when) {
  const auto now = monotonic_now();
  if (when > now + std::chrono::minutes(1)) return 60'000;
  return static_cast<int>(std::max<long>(std::chrono::ceil<std::chrono::milliseconds>(when - now).count(), 0));
}

constexpr std::size_t kRoomForTheRest = 256;  // of a message that is a list

// What one description adds to the message.
std::size_t described_bytes(const TensorDescription& tensor) {
  return layout_elements({.tensors = {tensor}}).size() + 1;
}
std::size_t described_bytes(const StateDescription& state) {
  return dump_json(Json(state.name)).size() + kRoomForTheRest;
}

Done check_room(std::size_t tensors, std::size_t bytes) {
  if (bytes + kRoomForTheRest <= kRankMessageBytesMax) return {};
  return refuse(RK_ERROR_ARGUMENT, format("the description of {} tensors takes {} bytes, and a message holds {}; "
                                          "register fewer, larger tensors or use shorter "
                                          "names",
                                          tensors, bytes, kRankMessageBytesMax));
}

std::int64_t whole_seconds(Duration duration) { return std::chrono::round<std::chrono::seconds>(duration).count(); }

}  // namespace

Link::Link(const OpenOptions& options, Registry& registry, SmallState& small_state, Gates& gates, ShadowKeeper& keeper,
           const LinkLimits& limits)
    : options_(options),
      limits_(limits),
      registry_(registry),
      small_state_(small_state),
      gates_(gates),
      keeper_(keeper),
      pause_(limits.first_pause) {}

Link::~Link() {
  if (thread_.joinable()) {
    {
      const std::lock_guard held(mutex_);
      closing_ = true;
    }
    wake();
    thread_.join();
  }
}

Done Link::start() {
  if (!waker_)
    return refuse(RK_ERROR_MEMORY, "no descriptor is left for the library's thread; raise the limit of open files");
  // Refused by old kernels and some sandboxes; the sidecar then has the futex and the end of the
  // socket. Close-on-exec by its nature.
  pidfd_ = FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  away_since_ = next_try_ = monotonic_now();
  // The new thread inherits the mask, so there is no moment in which it could take a signal of the
  // program.
  const AllSignalsBlocked blocked;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return refuse(
        RK_ERROR_MEMORY,
        format("the library's thread cannot be started: {}; raise the limit of processes or memory", error.what()));
  }
  return {};
}

// ---- training thread ----

Done Link::wait_for_welcome(Duration time_max) {
  std::unique_lock held(mutex_);
  changed_.wait_for(held, time_max, [&] { return welcomed_ || refused_; });
  if (refused_) return std::unexpected(*refused_);
  if (welcomed_) return {};
  const std::int64_t seconds = whole_seconds(time_max);
  if (mapping_) {
    return refuse(
        RK_ERROR_UNAVAILABLE,
        format("the sidecar answered, but the rest of the {} ranks did not come within {} s; look for pods of the job "
               "that are pending or failing",
               options_.world_size, seconds));
  }
  return refuse(
      RK_ERROR_UNAVAILABLE,
      format("no sidecar answered at {} within {} s ({}); check that the sidecar runs and that REKINDLE_SOCKET "
             "names its socket",
             options_.socket_path, seconds, last_problem_));
}

void Link::with_block(const std::function<void(ControlBlock&)>& use) {
  const std::lock_guard held(mutex_);
  use(*mapping_);
}

Done Link::announce(RegisteredMessage registered) {
  std::size_t bytes = 0;
  for (const TensorDescription& tensor : registered.layout.tensors) bytes += described_bytes(tensor);
  for (const StateDescription& state : registered.states) bytes += described_bytes(state);
  {
    const std::lock_guard held(mutex_);
    if (Done done = check_room(registered.layout.tensors.size(), bytes); !done) return done;
    registered_bytes_ = bytes;
    registered_ = std::move(registered);
    registered_->late = attempt_ != 0;
    // Without a sidecar: the next one is told when it has answered.
    announce_ = true;
  }
  wake();
  return {};
}

Done Link::announce_tensor(TensorDescription tensor) {
  const std::size_t bytes = described_bytes(tensor);
  {
    const std::lock_guard held(mutex_);
    if (Done done = check_room(registered_->layout.tensors.size() + 1, registered_bytes_ + bytes); !done) return done;
    registered_bytes_ += bytes;
    registered_->layout.tensors.push_back(std::move(tensor));
    announce_ = true;
  }
  wake();
  return {};
}

Done Link::announce_state(StateDescription state) {
  const std::size_t bytes = described_bytes(state);
  {
    const std::lock_guard held(mutex_);
    if (Done done = check_room(registered_->layout.tensors.size(), registered_bytes_ + bytes); !done) return done;
    registered_bytes_ += bytes;
    registered_->states.push_back(std::move(state));
    announce_ = true;
  }
  wake();
  return {};
}

void Link::withdraw_tensor(std::string_view name) {
  {
    const std::lock_guard held(mutex_);
    std::vector<TensorDescription>& tensors = registered_->layout.tensors;
    const auto found = std::ranges::find(tensors, name, &TensorDescription::name);
    if (found == tensors.end()) return;
    registered_bytes_ -= described_bytes(*found);
    tensors.erase(found);
    announce_ = true;
  }
  wake();
}

void Link::report_loaded(LoadedMessage loaded) {
  {
    const std::lock_guard held(mutex_);
    // Without a sidecar: the next one offers again.
    if (reachable_) requests_.push_back(std::move(loaded));
  }
  wake();
}

Outcome<Link::RestoreEvent> Link::next_restore_event() {
  std::unique_lock held(mutex_);
  changed_.wait(held, [&] { return !restore_events_.empty() || refused_ || absent_too_long_; });
  if (!restore_events_.empty()) {
    RestoreEvent event = std::move(restore_events_.front());
    restore_events_.pop_front();
    return event;
  }
  if (refused_) return std::unexpected(*refused_);
  return refuse(
      RK_ERROR_UNAVAILABLE,
      format("the sidecar went away while the job was restoring and did not come back within {} s ({}); start the pod "
             "again",
             whole_seconds(limits_.away_max), last_problem_));
}

void Link::report_collective_failed(CollectiveFailedMessage failed) {
  {
    const std::lock_guard held(mutex_);
    if (reachable_) requests_.push_back(failed);
    collective_failed_ = std::move(failed);
  }
  wake();
}

void Link::report_rebuilt(RebuiltMessage rebuilt) {
  {
    const std::lock_guard held(mutex_);
    // Without a sidecar: the next one sees it in the control block.
    if (reachable_) requests_.push_back(rebuilt);
    collective_failed_.reset();
  }
  wake();
}

void Link::report_snapshotted(SnapshottedMessage taken) {
  {
    const std::lock_guard held(mutex_);
    // Without a sidecar nobody waits for it any more.
    if (reachable_) requests_.push_back(taken);
  }
  wake();
}

Done Link::ask_for_checkpoint() {
  {
    const std::lock_guard held(mutex_);
    if (!reachable_) {
      return refuse(
          RK_ERROR_UNAVAILABLE,
          format("the sidecar cannot be reached just now ({}); ask again after the next step", last_problem_));
    }
    requests_.push_back(CheckpointWantedMessage{});
  }
  wake();
  return {};
}

void Link::finish(int exit_code) {
  {
    const std::lock_guard held(mutex_);
    farewell_ = exit_code;
    closing_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
}

std::string Link::job_folder() const {
  const std::lock_guard held(mutex_);
  return job_folder_;
}

std::uint32_t Link::ranks_here() const {
  const std::lock_guard held(mutex_);
  return ranks_here_;
}

void Link::wake() { waker_.wake(); }

// ---- library thread ----

void Link::run() {
  leave_signals_to_the_program();
  ::pthread_setname_np(::pthread_self(), "rekindle");
  for (;;) {
    {
      const std::lock_guard held(mutex_);
      if (closing_) break;
    }
    if (!socket_.is_open() && monotonic_now() >= next_try_) try_to_connect();
    exchange();
    // After the exchange: what a sidecar that has come back is told has just been put there.
    send_requests();
    if (!orders_.empty()) {
      const WriteMessage order = std::move(orders_.front());
      orders_.pop_front();
      carry_out(order);
      continue;
    }
    look_at_absence();
    wait_for_something();
  }
  send_goodbye();
  owner_.release();
  socket_.close();
}

void Link::try_to_connect() {
  if (!socket_.connect(options_.socket_path)) {
    disconnect(socket_.problem());
    return;
  }
  HelloMessage hello{.rank = options_.rank,
                     .world_size = options_.world_size,
                     .pid = ::getpid(),
                     .state_bytes_max = std::uint64_t{options_.state_bytes_max} + kRoomForNames,
                     .library_version = kLibraryVersion,
                     .term = highest_term_,
                     .rebuilds = options_.rebuilds};
  std::uint32_t attempt = 0;
  {
    const std::lock_guard held(mutex_);
    attempt = attempt_;
    last_problem_ = "it took the connection and has not answered yet";
  }
  stage_ = Stage::greeting;
  socket_.send(encode_local_message(hello), attempt, pidfd_.get());
}

void Link::wait_for_something() {
  if (!arrivals_.empty() || !orders_.empty()) return;
  pollfd waits[2] = {{.fd = waker_.descriptor(), .events = POLLIN, .revents = 0},
                     {.fd = -1, .events = 0, .revents = 0}};
  int timeout = -1;
  if (socket_.is_open()) {
    waits[1].fd = socket_.descriptor();
    waits[1].events = static_cast<short>(POLLIN | (socket_.has_unsent() ? POLLOUT : 0));
  } else {
    timeout = milliseconds_until(next_try_);
  }
  if (stage_ != Stage::linked && !said_unprotected_) {
    const int left = milliseconds_until(away_since_ + limits_.away_max);
    timeout = timeout < 0 ? left : std::min(timeout, left);
  }
  if (::poll(waits, 2, timeout) > 0 && waits[0].revents != 0) waker_.take();
}

// Sends and receives what goes without waiting. Also called between the chunks of a write.
void Link::exchange() {
  socket_.flush();
  socket_.receive(arrivals_);
  while (!arrivals_.empty()) {
    SidecarSocket::Arrival arrival = std::move(arrivals_.front());
    arrivals_.pop_front();
    handle(std::move(arrival));
  }
  socket_.flush();
  look_at_connection();
}

void Link::look_at_connection() {
  if (!socket_.is_open() && stage_ != Stage::away) disconnect(socket_.problem());
}

void Link::send_requests() {
  std::deque<LocalMessage> requests;
  {
    const std::lock_guard held(mutex_);
    if (stage_ != Stage::linked) return;
    // What comes while the last description is on its way goes into one more, not into one each;
    // requests do not overtake it.
    if (announce_ && socket_.has_unsent()) return;
    requests.swap(requests_);
    if (std::exchange(announce_, false)) requests.push_front(*registered_);
  }
  for (const LocalMessage& request : requests) send(request);
}

void Link::send(const LocalMessage& message) { send(encode_local_message(message)); }

void Link::send(const EncodedMessage& message) {
  std::uint32_t attempt = 0;
  {
    const std::lock_guard held(mutex_);
    attempt = attempt_;
  }
  if (socket_.is_open()) socket_.send(message, attempt);
}

void Link::disconnect(std::string problem) {
  socket_.close();
  if (stage_ == Stage::linked) away_since_ = monotonic_now();
  stage_ = Stage::away;
  orders_.clear();
  arrivals_.clear();
  const std::lock_guard held(mutex_);
  next_try_ = refused_ ? Instant::max() : monotonic_now() + pause_;
  pause_ = std::min(pause_ * 2, limits_.longest_pause);
  // A sentence that says why (a refusal, a wrong block) is worth more than the end of the
  // connection that follows it.
  if (!problem.empty()) last_problem_ = std::move(problem);
  reachable_ = false;
  requests_.clear();
  // What the lost sidecar offered is void; the next one offers again. A take stands.
  if (attempt_ == 0) restore_events_.clear();
}

void Link::look_at_absence() {
  if (stage_ == Stage::linked || said_unprotected_ || monotonic_now() - away_since_ < limits_.away_max) return;
  std::string problem;
  {
    const std::lock_guard held(mutex_);
    absent_too_long_ = true;
    problem = last_problem_;
    changed_.notify_all();
    // Before the first welcome rk_open speaks for itself.
    if (!welcomed_) {
      away_since_ = monotonic_now();
      return;
    }
  }
  said_unprotected_ = true;
  say(format("the sidecar at {} has been gone for {} s ({}); training goes on WITHOUT protection until it is back",
             options_.socket_path, whole_seconds(limits_.away_max), problem));
  if (gates_.attached()) gates_.give_up_hold();
}

void Link::send_goodbye() {
  std::optional<int> exit_code;
  {
    const std::lock_guard held(mutex_);
    exit_code = farewell_;
    announce_ = false;  // it matters to nobody any more, and nothing waits for it
  }
  if (!exit_code || stage_ != Stage::linked) return;
  send_requests();
  send(FinishedMessage{.exit_code = *exit_code});
  const Instant until = monotonic_now() + limits_.goodbye_max;
  for (socket_.flush(); socket_.is_open() && socket_.has_unsent() && monotonic_now() < until; socket_.flush()) {
    pollfd writable{.fd = socket_.descriptor(), .events = POLLOUT, .revents = 0};
    ::poll(&writable, 1, milliseconds_until(until));
  }
}

}  // namespace rekindle::runtime
