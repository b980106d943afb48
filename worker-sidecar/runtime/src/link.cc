#include "worker-sidecar/runtime/src/link.h"

#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/base/format.h"
#include "common/contract/exit_codes.h"
#include "common/system/clock.h"
#include "common/system/signals.h"
#include "worker-sidecar/runtime/src/say.h"
#include "worker-sidecar/runtime/src/version.h"

namespace rekindle::runtime {
namespace {

int milliseconds_until(Instant when) {
  const auto now = monotonic_now();
  if (when > now + std::chrono::minutes(1)) return 60'000;
  return static_cast<int>(std::max<long>(std::chrono::ceil<std::chrono::milliseconds>(when - now).count(), 0));
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
  // Refused by kernels before 5.3 and some sandboxes; the sidecar then has the futex and the end of
  // the socket. Close-on-exec by its nature.
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
  {
    const std::lock_guard held(mutex_);
    registered.late = attempt_ != 0;
    if (Done done = announcement_.replace(std::move(registered)); !done) return done;
  }
  wake();
  return {};
}

Done Link::announce_tensor(TensorDescription tensor) {
  {
    const std::lock_guard held(mutex_);
    if (Done done = announcement_.add(std::move(tensor)); !done) return done;
  }
  wake();
  return {};
}

Done Link::announce_state(StateDescription state) {
  {
    const std::lock_guard held(mutex_);
    if (Done done = announcement_.add(std::move(state)); !done) return done;
  }
  wake();
  return {};
}

void Link::withdraw_tensor(std::string_view name) {
  {
    const std::lock_guard held(mutex_);
    if (!announcement_.remove_tensor(name)) return;
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
    // Without a sidecar no process waits for it any more.
    if (reachable_) requests_.push_back(taken);
  }
  wake();
}

Done Link::request_checkpoint(std::uint64_t step) {
  {
    const std::lock_guard held(mutex_);
    if (!reachable_) {
      return refuse(
          RK_ERROR_UNAVAILABLE,
          format("the sidecar cannot be reached just now ({}); ask again after the next step", last_problem_));
    }
    checkpoint_wanted_ = CheckpointWantedMessage{step};
    checkpoint_missed_.reset();
    requests_.push_back(*checkpoint_wanted_);
  }
  wake();
  return {};
}

Done Link::wait_for_checkpoint(std::uint64_t step) {
  std::unique_lock held(mutex_);
  const bool answered =
      changed_.wait_for(held, limits_.answer_max, [&] { return !checkpoint_wanted_ || absent_too_long_; });
  if (checkpoint_wanted_ && checkpoint_wanted_->step == step) {
    return refuse(RK_ERROR_UNAVAILABLE,
                  format("nobody said that the checkpoint of step {} is durable, which rk_checkpoint asked for: {}",
                         step, answered ? last_problem_ : "the sidecar does not answer"));
  }
  if (checkpoint_missed_ && checkpoint_missed_->requested == step) {
    return refuse(RK_ERROR_UNAVAILABLE, format("step {} is not durable, which rk_checkpoint asked for: {}", step,
                                               checkpoint_missed_->message));
  }
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
  ::pthread_setname_np(::pthread_self(), "rekindle");
  for (;;) {
    {
      const std::lock_guard held(mutex_);
      if (closing_) break;
    }
    if (!socket_.is_open() && monotonic_now() >= next_try_) try_to_connect();
    exchange();
    // After the exchange: what a sidecar that has come back gets has just been put there.
    send_requests();
    if (!orders_.empty()) {
      const WriteMessage order = std::move(orders_.front());
      orders_.pop_front();
      carry_out(order);
      continue;
    }
    check_absence();
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
                     .library_version = library_version(),
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
  check_connection();
}

void Link::check_connection() {
  if (!socket_.is_open() && stage_ != Stage::away) disconnect(socket_.problem());
}

void Link::send_requests() {
  std::deque<LocalMessage> requests;
  {
    const std::lock_guard held(mutex_);
    if (stage_ != Stage::linked) return;
    // What comes while the last description is on its way goes into one more, not into one each;
    // requests do not overtake it.
    if (announcement_.is_due() && socket_.has_unsent()) return;
    requests.swap(requests_);
    if (std::optional<RegisteredMessage> registered = announcement_.take_due())
      requests.push_front(*std::move(registered));
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
  // A message that says why (a refusal, a wrong block) is worth more than the end of the
  // connection that follows it.
  if (!problem.empty()) last_problem_ = std::move(problem);
  reachable_ = false;
  requests_.clear();
  // What the lost sidecar offered is void; the next one offers again. A take stands.
  if (attempt_ == 0) restore_events_.clear();
}

void Link::check_absence() {
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
    // A sidecar has no use for it any more, and nothing waits for it.
    announcement_.drop();
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

// ---- what the sidecar says ----

void Link::handle(SidecarSocket::Arrival arrival) {
  {
    const std::lock_guard held(mutex_);
    // Of a life of the job that is over; what came before the first one has 0.
    if (arrival.attempt != 0 && arrival.attempt < attempt_) return;
  }
  if (const auto* control = std::get_if<ControlMessage>(&arrival.message)) return on_control(*control);
  if (const auto* take = std::get_if<TakeMessage>(&arrival.message)) return on_take(*take);
  if (const auto* refused = std::get_if<RefusedMessage>(&arrival.message)) return on_refused(*refused);
  if (const auto* end = std::get_if<EndMessage>(&arrival.message)) return on_end(*end);
  if (const auto* keep = std::get_if<KeepMessage>(&arrival.message)) return on_keep(*keep);
  if (auto* order = std::get_if<WriteMessage>(&arrival.message)) return on_write(std::move(*order));
  if (const auto* done = std::get_if<CheckpointDoneMessage>(&arrival.message)) return on_checkpoint_done(*done);
  if (std::holds_alternative<WelcomeMessage>(arrival.message)) {
    const std::lock_guard held(mutex_);
    // Without a block there is nothing that rk_open could return with.
    if (mapping_) welcomed_ = true;
    changed_.notify_all();
  } else if (auto* offer = std::get_if<OfferMessage>(&arrival.message)) {
    const std::lock_guard held(mutex_);
    if (attempt_ == 0) restore_events_.push_back(std::move(*offer));
    changed_.notify_all();
  }
}

void Link::on_control(const ControlMessage& control) {
  const int descriptor = socket_.take_descriptor();
  if (descriptor < 0) return disconnect("the sidecar sent no control block");
  Outcome<ControlMapping> fresh = ControlMapping::map(descriptor, options_.rank, options_.world_size);
  ::close(descriptor);
  const std::lock_guard held(mutex_);
  if (!fresh) {
    last_problem_ = fresh.error().message;
    if (!welcomed_) refused_ = fresh.error();
    changed_.notify_all();
    socket_.close();
    return;
  }
  const bool same = mapping_ && mapping_->incarnation == (*fresh)->incarnation;
  if (!same && attempt_ != 0) {
    last_problem_ = "it came back with another control block than the one this process trains with";
    socket_.close();
    return;
  }
  if (mapping_ && mapping_->slot_bytes != (*fresh)->slot_bytes) {
    refused_ = Failure{RK_ERROR_UNAVAILABLE, "the sidecar came back with slots of another size; start the pod again"};
    changed_.notify_all();
    socket_.close();
    return;
  }
  if (!same) adopt_block(*std::move(fresh));
  stage_ = Stage::linked;
  pause_ = limits_.first_pause;
  if (said_unprotected_) say("the sidecar is back; the run is protected again");
  said_unprotected_ = false;
  gates_.expect_orders();
  job_folder_ = control.checkpoint_dir;
  ranks_here_ = control.ranks_here;
  reachable_ = true;
  absent_too_long_ = false;
  announcement_.make_due();
  if (collective_failed_) requests_.push_back(*collective_failed_);
  if (checkpoint_wanted_) requests_.push_back(*checkpoint_wanted_);
}

// mutex_ is held.
void Link::adopt_block(ControlMapping mapping) {
  owner_.release();
  const bool had_one = static_cast<bool>(mapping_);
  mapping_ = std::move(mapping);
  if (Status status = owner_.hold(mapping_->owner, mapping_->owner_ready); !status) say(status.error().message);
  small_state_.attach(*mapping_);
  gates_.attach(*mapping_);
  if (had_one) gates_.publish(gates_.word());
}

void Link::on_take(const TakeMessage& take) {
  const std::lock_guard held(mutex_);
  if (attempt_ != 0) return;
  attempt_ = std::max<std::uint32_t>(take.attempt, 1);
  announcement_.mark_late();
  restore_events_.push_back(take);
  changed_.notify_all();
}

void Link::on_refused(const RefusedMessage& refused) {
  const std::lock_guard held(mutex_);
  last_problem_ = refused.error.message;
  // Later on the run goes on without, and the library connects again.
  if (attempt_ == 0) refused_ = refuse(refused.error).error();
  // A rank that was welcomed is restoring: what was wrong about the rank itself was said before.
  if (refused_ && welcomed_ && refused.error.code == ErrorCode::invalid_input) refused_->status = RK_ERROR_MISMATCH;
  changed_.notify_all();
  socket_.close();
}

void Link::on_write(WriteMessage order) {
  if (order.term < highest_term_) {
    send(WriteFailedMessage{.term = order.term,
                            .error = {.code = ErrorCode::refused,
                                      .message = format("rank {} has seen term {} and takes no order of term {}",
                                                        options_.rank, highest_term_, order.term),
                                      .retry = Retry::no}});
    return;
  }
  highest_term_ = order.term;
  std::erase_if(orders_, [&](const WriteMessage& waiting) { return waiting.term < order.term; });
  orders_.push_back(std::move(order));
}

void Link::on_keep(const KeepMessage& keep) {
  const int descriptor = socket_.take_descriptor();
  if (descriptor < 0) return disconnect("the sidecar sent no shadow");
  std::uint64_t incarnation = 0;
  ShadowHost host;
  {
    const std::lock_guard held(mutex_);
    if (mapping_) incarnation = mapping_->incarnation;
    host.ranks = ranks_here_;
  }
  Outcome<ShadowMapping> mapping = ShadowMapping::map(descriptor, options_.rank, incarnation, host);
  ::close(descriptor);
  if (!mapping) {
    // An older plan may not fit what is registered any more, and the sidecar does not read it
    // again.
    keeper_.offer(nullptr);
    return send(
        KeptMessage{.serial = keep.serial,
                    .ok = false,
                    .error = {.code = ErrorCode::exhausted, .message = mapping.error().message, .retry = Retry::no}});
  }
  keeper_.offer(std::make_shared<ShadowMapping>(*std::move(mapping)));
  send(KeptMessage{.serial = keep.serial, .ok = true, .error = {}});
}

void Link::on_end(const EndMessage& end) {
  if (options_.never_exit) {
    gates_.end();
    return;
  }
  // No destructors and no handlers: the training thread is parked inside the program's code, and
  // the container is ending.
  ::_exit(end.exit_code > 0 && end.exit_code < 256 ? static_cast<int>(end.exit_code) : kStoppedExitCode);
}

void Link::on_checkpoint_done(const CheckpointDoneMessage& done) {
  const std::lock_guard held(mutex_);
  // Of a request before the last.
  if (!checkpoint_wanted_ || done.requested != checkpoint_wanted_->step) return;
  checkpoint_wanted_.reset();
  if (done.outcome == HookOutcome::failed) {
    say(format("the checkpoint that rk_checkpoint asked for at step {} was not made: {}", done.requested,
               done.message));
    checkpoint_missed_ = done;
  }
  changed_.notify_all();
}

void Link::carry_out(const WriteMessage& order) {
  ControlBlock* block = nullptr;
  std::string folder;
  {
    const std::lock_guard held(mutex_);
    if (!mapping_) return;
    block = &*mapping_;
    folder = job_folder_;
  }
  const auto may_go_on = [&]() -> Status {
    exchange();
    if (stage_ != Stage::linked) return fail(ErrorCode::unavailable, "the sidecar that gave the order is gone");
    if (highest_term_ > order.term)
      return fail(ErrorCode::gone, format("an order of term {} replaced it", highest_term_));
    const std::lock_guard held(mutex_);
    if (closing_) return fail(ErrorCode::gone, "the program closed its session");
    return {};
  };
  const PinnedRank rank{.registry = registry_, .small_state = small_state_, .gates = gates_, .block = *block};
  Result<WrittenFile> written =
      write_shard(*limits_.file_system, folder, order, rank, may_go_on, options_.checkpoints.bytes_per_second_max);
  if (!written) return send(WriteFailedMessage{.term = order.term, .error = written.error()});
  WrittenMessage report{.term = order.term, .written = *std::move(written)};
  EncodedMessage encoded = encode_local_message(report);
  if (encoded.body.size() > kRankMessageBytesMax) {
    // Hashes of chunks only help to say where damage is; a report must fit into a message.
    report.written.chunks.clear();
    encoded = encode_local_message(report);
  }
  if (const std::size_t bytes = encoded.body.size(); bytes > kRankMessageBytesMax) {
    return send(WriteFailedMessage{
        .term = order.term,
        .error = {.code = ErrorCode::exhausted,
                  .message = format(
                      "the report of {} pieces takes {} bytes, and a message holds {}; register fewer, larger tensors",
                      order.pieces.size(), bytes, kRankMessageBytesMax),
                  .retry = Retry::no}});
  }
  send(encoded);
}

}  // namespace rekindle::runtime
