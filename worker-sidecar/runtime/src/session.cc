#include "worker-sidecar/runtime/src/session.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "common/base/format.h"
#include "common/contract/exit_codes.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/checkpoint/restore_policy.h"
#include "worker-sidecar/runtime/src/c_struct.h"
#include "worker-sidecar/runtime/src/checkpoint_loader.h"
#include "worker-sidecar/runtime/src/rollback.h"
#include "worker-sidecar/runtime/src/say.h"

namespace rekindle::runtime {
namespace {

constexpr int kFailedExitCode = 1;
constexpr std::size_t kReasonBytesMax = 1024;

}  // namespace

Outcome<std::unique_ptr<Session>> Session::open(const OpenOptions& options, const LinkLimits& limits) {
  std::unique_ptr<Session> session(new Session(options));
  Outcome<ForkGuard> guard = ForkGuard::make();
  if (!guard) return std::unexpected(guard.error());
  session->fork_guard_ = *std::move(guard);
  if (options.socket_path.empty()) {
    Outcome<StandAlone> alone = StandAlone::open(real_file_system(), options);
    if (!alone) return std::unexpected(alone.error());
    session->alone_ = std::make_unique<StandAlone>(*std::move(alone));
    Outcome<ControlMapping> block =
        ControlMapping::make_private(options.rank, options.world_size, options.state_bytes_max + kRoomForNames);
    if (!block) return std::unexpected(block.error());
    session->private_block_ = *std::move(block);
    session->gates_.attach(*session->private_block_);
    session->small_state_.attach(*session->private_block_);
  } else {
    session->link_ = std::make_unique<Link>(options, session->registry_, session->small_state_, session->gates_,
                                            session->keeper_, limits);
    session->keeper_.set_report(
        [link = session->link_.get()](const SnapshottedMessage& taken, const std::shared_ptr<const ShadowMapping>&) {
          link->report_snapshotted(taken);
        });
    if (Done done = session->link_->start(); !done) return std::unexpected(done.error());
    if (Done done = session->link_->wait_for_welcome(options.open_time_max); !done)
      return std::unexpected(done.error());
  }
  session->with_block([&](ControlBlock&) { session->slot_room_ = session->small_state_.room(); });
  return session;
}

void Session::with_block(const std::function<void(ControlBlock&)>& use) {
  if (link_) {
    link_->with_block(use);
  } else {
    use(*private_block_);
  }
}

rk_status Session::wrong_moment(const char* call) const {
  switch (stage_) {
    case Stage::opened:
      return remember_error(
          RK_ERROR_STATE,
          format("{} before rk_restore: call rk_restore once, after registering, also on the first start", call));
    case Stage::failed:
      return remember_error(RK_ERROR_STATE, format("{} after rk_restore or rk_rebuild has failed: registered memory "
                                                   "may be partly overwritten; end the process",
                                                   call));
    case Stage::between:
      return remember_error(RK_ERROR_STATE, format("{} between steps: rk_step_begin comes first", call));
    case Stage::in_step:
      return remember_error(
          RK_ERROR_STATE,
          format("{} inside a step: the update of this step has to be made first (rk_update_begin ... rk_update_end)",
                 call));
    case Stage::updating:
      return remember_error(RK_ERROR_STATE, format("{} inside the update bracket: rk_update_end comes first", call));
    case Stage::committed:
      return remember_error(
          RK_ERROR_STATE,
          format("{} after this step was committed: one update a step, rk_step_begin opens the next one", call));
    case Stage::swapped:
      return remember_error(
          RK_ERROR_STATE,
          format("{} while registered memory is swapped: put it back and set another phase with rk_set_phase first",
                 call));
    case Stage::rebuilding:
      return remember_error(RK_ERROR_STATE,
                            format("{} after RK_REBUILD: abort the communicators and call rk_rebuild first", call));
    case Stage::stopped:
      return remember_error(RK_ERROR_STATE, format("{} after RK_STOP: leave the loop and call rk_close", call));
  }
  return RK_ERROR_INTERNAL;
}

// What was answered once is answered again, so that a loop may find out about it at its next call.
rk_status Session::refuse_now(const char* call) const {
  if (stage_ == Stage::stopped) return RK_STOP;
  return stage_ == Stage::rebuilding ? RK_REBUILD : wrong_moment(call);
}

rk_status Session::stop() noexcept {
  stage_ = Stage::stopped;
  return RK_STOP;
}

// At a gate that was not passed. The sidecar orders no rank to rebuild that has not said that it
// can.
rk_status Session::leave_gate(GateAnswer answer) noexcept {
  if (answer != GateAnswer::rebuild || !options_.rebuilds || stage_ == Stage::swapped) return stop();
  stage_ = Stage::rebuilding;
  return RK_REBUILD;
}

// ---- registering ----

// What registered memory is said to hold, devices have to hold: at a gate the rank that waits has
// gradients (PROTOCOL P9), and after a commit a reader of the memory finds the step.
rk_status Session::wait_for_devices(const char* call, const rk_memory* another) {
  const auto wait_for = [&](const rk_memory& device) {
    const int answer = device.wait(device.context);
    if (answer == 0) return RK_OK;
    return remember_error(RK_ERROR_STATE, format("{} after step {}: work that was enqueued on a device has failed "
                                                 "(rk_memory.wait returned {}); nothing was done, and what "
                                                 "the device holds is not to be trusted",
                                                 call, gates_.word().step, answer));
  };
  for (const rk_memory& device : registry_.devices_to_wait_for()) {
    if (const rk_status status = wait_for(device); status != RK_OK) return status;
  }
  return another != nullptr && another->wait != nullptr ? wait_for(*another) : RK_OK;
}

// Between steps, before a change of what is registered. Devices come first: nothing is locked and
// nothing has changed while one of them hangs or fails, and the gate that was passed is the last
// look at a breakpoint that is being written.
rk_status Session::prepare_late_change(const char* call, const rk_memory* another_device) {
  if (!between_steps()) return wrong_moment(call);
  if (const rk_status status = wait_for_devices(call, another_device); status != RK_OK) return status;
  const GateAnswer answer = gates_.pass_step_gate(gates_.word().phase);
  return answer == GateAnswer::passed ? RK_OK : leave_gate(answer);
}

template <typename Change>
rk_status Session::change_registry(Change&& change, bool capture_now) {
  {
    const auto held = registry_.lock();
    if (const Done done = change(); !done) return remember_error(done.error());
    keeper_.registry_changed();
    refresh_small_state(capture_now);
  }
  return RK_OK;
}

void Session::refresh_small_state(bool capture_now) {
  with_block([&](ControlBlock&) { small_state_.set_values(registry_.captured_values()); });
  if (capture_now) capture_again();
}

// What cannot be captured does not undo the step; the caller finds the message in rk_last_error().
void Session::capture(std::uint8_t slot, std::uint64_t step) {
  if (!small_state_.capture(slot, step, attempt_)) [[unlikely]]
    remember_error(RK_ERROR_STATE, small_state_.problem());
}

void Session::capture_again() {
  const RankStatus word = gates_.word();
  const std::uint8_t slot = word.slot ^ 1u;
  capture(slot, word.step);
  gates_.publish({word.step, word.phase, slot});
}

rk_status Session::add_tensor(const rk_tensor& given) {
  const Outcome<rk_tensor> tensor = read_struct(&given, "rk_tensor");
  if (!tensor) return remember_error(tensor.error());
  const auto add = [&] { return registry_.add_tensor(*tensor, slot_room_); };
  if (stage_ == Stage::opened) return change_registry(add, false);
  // What is wrong with it, the registry says.
  const Outcome<rk_memory> device = tensor->memory == nullptr ? rk_memory{} : read_struct(tensor->memory, "rk_memory");
  if (const rk_status status = prepare_late_change("rk_register", device ? &*device : nullptr); status != RK_OK)
    return status;
  const std::size_t before = registry_.tensors().size();
  if (const rk_status status = change_registry(add, true); status != RK_OK) return status;
  copies_stale_ = true;
  // The sidecar is not notified of derived tensors.
  if (!link_ || registry_.tensors().size() == before) return RK_OK;
  const Done done = link_->announce_tensor(registry_.tensors().back().description);
  if (done) return RK_OK;
  change_registry([&] { return registry_.remove_tensor(tensor->name); }, true);
  return remember_error(done.error());
}

template <typename Add>
rk_status Session::add_small_state(const char* call, Add&& add) {
  if (stage_ == Stage::opened) return change_registry(add, false);
  if (const rk_status status = prepare_late_change(call); status != RK_OK) return status;
  if (const rk_status status = change_registry(add, true); status != RK_OK) return status;
  copies_stale_ = true;
  const Done done = link_ ? link_->announce_state(registry_.states().back().description) : Done();
  return done ? RK_OK : remember_error(done.error());
}

rk_status Session::add_state(const char* name, void* data, std::size_t bytes) {
  return add_small_state("rk_register_state", [&] { return registry_.add_state(name, data, bytes, slot_room_); });
}

rk_status Session::add_state(const char* name, std::size_t bytes_max, SaveState save, LoadState load) {
  return add_small_state("rk_register_state_callback",
                         [&] { return registry_.add_state(name, bytes_max, save, load, slot_room_); });
}

rk_status Session::add_cursor(rk_cursor* cursor) {
  return add_small_state("rk_register_cursor", [&] { return registry_.add_cursor(cursor, slot_room_); });
}

rk_status Session::move_tensor(const char* name, void* data) {
  const auto move = [&] { return registry_.move_tensor(name, data); };
  if (stage_ == Stage::opened || stage_ == Stage::updating) return change_registry(move, false);
  // The former address may be freed when this returns, so a breakpoint that is being written comes
  // first.
  if (const rk_status status = prepare_late_change("rk_move"); status != RK_OK) return status;
  return change_registry(move, true);
}

rk_status Session::remove_tensor(const char* name) {
  const auto remove = [&] { return registry_.remove_tensor(name); };
  if (stage_ == Stage::opened) return change_registry(remove, false);
  if (const rk_status status = prepare_late_change("rk_unregister"); status != RK_OK) return status;
  if (const rk_status status = change_registry(remove, true); status != RK_OK) return status;
  copies_stale_ = true;
  if (link_) link_->withdraw_tensor(name);
  return RK_OK;
}

// ---- restoring ----

rk_status Session::restore(rk_position& position) {
  if (Done done = check_struct_size(position.struct_size, sizeof(rk_position), "rk_position"); !done)
    return remember_error(done.error());
  if (stage_ != Stage::opened) {
    return remember_error(RK_ERROR_STATE, stage_ == Stage::failed ? "rk_restore has failed before; end the process"
                                                                  : "rk_restore is called once");
  }
  with_block([&](ControlBlock&) { gates_.publish_phase(RankPhase::restoring); });
  Outcome<Restored> restored;
  if (link_) {
    restored = restore_with_sidecar();
  } else {
    const Outcome<StandAlone::Restored> alone = alone_->restore(registry_);
    if (!alone) {
      restored = std::unexpected(alone.error());
    } else {
      restored = Restored{
          .attempt = alone->attempt, .step = alone->step, .path = alone->path, .state_missing = alone->state_missing};
    }
  }
  if (!restored) {
    stage_ = Stage::failed;
    return remember_error(restored.error());
  }
  attempt_ = restored->attempt;
  restored_path_ = restored->path;
  with_block([&](ControlBlock& block) {
    block.attempt.store(attempt_, std::memory_order_release);
    capture(0, restored->step);
    gates_.publish({restored->step, RankPhase::between, 0});
  });
  // A program that starts from nothing, or derives its states, fills them in after this call.
  capture_at_step_begin_ = true;
  stage_ = Stage::between;
  if (alone_ && options_.checkpoints.snapshots.periodic() && !options_.checkpoint_dir.empty()) {
    start_saver(restored->step);
  }
  fill_position(position, restored->step, restored_path_, restored->state_missing);
  return RK_OK;
}

void Session::fill_position(rk_position& position, std::uint64_t step, const std::string& path,
                            bool state_missing) const {
  const rk_position answer{.struct_size = position.struct_size,
                           .step = step,
                           .attempt = attempt_,
                           .path = path.empty() ? nullptr : path.c_str(),
                           .flags = state_missing ? static_cast<std::uint32_t>(RK_STATE_MISSING) : 0u,
                           .reserved = {}};
  std::memcpy(&position, &answer, std::min(position.struct_size, sizeof answer));
}

Outcome<Session::Restored> Session::restore_with_sidecar() {
  if (Done done =
          link_->announce({.layout = registry_.layout(), .states = registry_.state_descriptions(), .late = false});
      !done) {
    return std::unexpected(done.error());
  }
  std::optional<LoadedMessage> loaded;
  std::optional<Failure> failure;
  bool memory_touched = false;
  std::vector<HeldState> held;
  for (;;) {
    Outcome<Link::RestoreEvent> event = link_->next_restore_event();
    if (!event) {
      // Where this rank itself knows why, that says more than the decision of the job.
      return std::unexpected(failure ? *failure : event.error());
    }
    if (const auto* take = std::get_if<TakeMessage>(&*event)) {
      if (!loaded || !loaded->ok || loaded->path != take->path || loaded->step != take->step) {
        return refuse(RK_ERROR_INTERNAL,
                      format("the sidecar took checkpoint '{}' of step {}, which this rank has not loaded", take->path,
                             take->step));
      }
      if (Done done = hand_over(held, registry_); !done) return std::unexpected(done.error());
      return Restored{.attempt = std::max<std::uint64_t>(take->attempt, 1),
                      .step = take->step,
                      .path = take->path.empty() ? "" : format("{}/{}", link_->job_folder(), take->path),
                      .state_missing = loaded->state_missing};
    }
    const auto& offer = std::get<OfferMessage>(*event);
    Loading loading;
    if (!offer.path.empty()) {
      loading =
          load_checkpoint(real_file_system(),
                          {.job_folder = link_->job_folder(), .path = offer.path, .manifest_hash = offer.manifest_hash},
                          {.rank = options_.rank,
                           .world_size = options_.world_size,
                           .ranks_here = link_->ranks_here(),
                           .job_checked = offer.job_checked},
                          registry_);
    } else if (memory_touched) {
      loading.code = ErrorCode::corrupt;
      loading.result = refuse(RK_ERROR_CORRUPT,
                              "registered memory holds parts of a checkpoint that was refused, so this process cannot "
                              "begin at step 0; start it "
                              "again");
    }
    memory_touched = memory_touched || loading.memory_touched;
    held = std::move(loading.held);
    loaded = LoadedMessage{.path = offer.path,
                           .step = offer.step,
                           .ok = loading.result.has_value(),
                           .error = {},
                           .state_missing = loading.state_missing};
    if (loading.read.bytes > 0) {
      loaded->way = to_string(loading.read.way);
      loaded->bytes_read = loading.read.bytes;
    }
    if (!loading.result) {
      failure = loading.result.error();
      const bool may_pass = after_failure(loading.code, 1, {}) == AfterFailure::try_again;
      loaded->error = {.code = loading.code,
                       .message = failure->message.substr(0, kReasonBytesMax),
                       .retry = may_pass ? Retry::yes : Retry::no};
    }
    link_->report_loaded(*loaded);
  }
}

// ---- rebuilding ----

rk_status Session::rebuild(rk_position& position) {
  if (Done done = check_struct_size(position.struct_size, sizeof(rk_position), "rk_position"); !done)
    return remember_error(done.error());
  if (stage_ == Stage::stopped) return RK_STOP;
  if (stage_ != Stage::rebuilding) {
    return remember_error(RK_ERROR_STATE,
                          "rk_rebuild without RK_REBUILD: it is the answer to that and to nothing else");
  }
  if (const rk_status status = wait_for_devices("rk_rebuild"); status != RK_OK) return status;
  RebuildOrder order;
  bool state_missing = false;
  do {  // what fails while the others rebuild leads to another order
    if (gates_.stop_is_ordered()) return stop();
    std::optional<RebuildOrder> newest = gates_.rebuild_order();
    const RankStatus word = gates_.word();
    if (!newest || newest->step != word.step) {
      // Registered memory is about to change, which a breakpoint may be reading. Behind the gate
      // stands the newest order, whole.
      if (gates_.pass_step_gate(RankPhase::restoring, HonoredOrders::stop) == GateAnswer::stop) return stop();
      newest = gates_.rebuild_order();
    }
    const Outcome<BroughtBack> brought =
        newest ? bring_back(*newest, word)
               : refuse(RK_ERROR_INTERNAL, "the order to rebuild cannot be read; start the process again");
    if (!brought) {
      stage_ = Stage::failed;
      return remember_error(brought.error());
    }
    order = *std::move(newest);
    state_missing = brought->state_missing;
    gates_.publish_rebuilt(brought->word, order.term);
  } while (gates_.rebuild_is_ordered());
  rebuilt_path_ = order.path.empty() ? "" : format("{}/{}", link_->job_folder(), order.path);
  link_->report_rebuilt({.term = order.term, .step = order.step});
  stage_ = Stage::between;
  fill_position(position, order.step, rebuilt_path_, state_missing);
  return RK_OK;
}

// Everything registered becomes that of the order's step. A rank that is there keeps its memory,
// and puts back what the step in progress may have changed: what was captured with the commit.
Outcome<Session::BroughtBack> Session::bring_back(const RebuildOrder& order, RankStatus word) {
  word.phase = RankPhase::between;
  if (order.step == word.step) {
    // Before its first step a program may just have filled them in.
    if (capture_at_step_begin_) return BroughtBack{.word = word, .state_missing = false};
    const Outcome<Rollback> put = roll_back(registry_, small_state_, word.slot & 1u);
    if (!put) return std::unexpected(put.error());
    return BroughtBack{.word = word, .state_missing = put->state_missing};
  }
  if (order.step < word.step || !parse_folder_name(order.path)) {
    return refuse(RK_ERROR_INTERNAL, format("this rank is at step {} and was told to go on from step {} of "
                                            "checkpoint '{}', which leads nowhere; start the "
                                            "process again",
                                            word.step, order.step, order.path));
  }
  // Only for what is missing, which may have been written by another node just now: storage that
  // fails for longer is for the next attempt to wait for, and a stop may be ordered meanwhile. All
  // ranks stand, so the pauses are short.
  const RestoreLimits limits{.pause = std::chrono::milliseconds(100), .failing_max = {}};
  AfterFailure then{};
  const Loading loading = load_patiently(
      real_file_system(), {.job_folder = link_->job_folder(), .path = order.path, .manifest_hash = order.manifest_hash},
      {.rank = options_.rank,
       .world_size = options_.world_size,
       .ranks_here = link_->ranks_here(),
       .job_checked = true},
      registry_, RestoreTries(real_waiter(), limits), then);
  if (!loading.result) return std::unexpected(loading.result.error());
  if (Done done = hand_over(loading.held, registry_); !done) return std::unexpected(done.error());
  word.step = order.step;
  word.slot ^= 1u;
  capture(word.slot, word.step);
  capture_at_step_begin_ = true;
  keeper_.went_to(word.step);
  return BroughtBack{.word = word, .state_missing = loading.state_missing};
}

void Session::start_saver(std::uint64_t step) {
  saver_ = std::make_unique<BackgroundSaver>(*alone_, options_.checkpoints.snapshots, *private_block_, keeper_, step);
  keeper_.set_report([this](const SnapshottedMessage& taken, const std::shared_ptr<const ShadowMapping>& mapping) {
    StandAlone::Snapshot snapshot = StandAlone::describe(registry_, small_state_, taken.step, gates_.word().slot & 1u);
    snapshot.copy = mapping;
    saver_->taken(taken, std::move(snapshot));
  });
  saver_->plan(registry_);
}

// ---- steps ----

rk_status Session::step_begin(std::uint64_t step) {
  if (stage_ != Stage::between && stage_ != Stage::committed && stage_ != Stage::in_step) [[unlikely]] {
    return refuse_now("rk_step_begin");
  }
  if (step != gates_.word().step + 1) [[unlikely]] {
    return remember_error(
        RK_ERROR_ARGUMENT,
        format("rk_step_begin({}): step {} is committed, so the next one is {}; a loop starts at position.step + 1",
               step, gates_.word().step, gates_.word().step + 1));
  }
  if (capture_at_step_begin_) [[unlikely]] {
    if (const rk_status status = wait_for_devices("rk_step_begin"); status != RK_OK) return status;
    // The slot of the committed step may be being read during a hold.
    if (const GateAnswer answer = gates_.pass_step_gate(gates_.word().phase); answer != GateAnswer::passed)
      return leave_gate(answer);
    capture_again();
    capture_at_step_begin_ = false;
  }
  if (copies_stale_) [[unlikely]] {
    copies_stale_ = false;
    if (saver_) saver_->plan(registry_);
  }
  if (const GateAnswer answer = gates_.pass_step_gate(RankPhase::computing); answer != GateAnswer::passed) [[unlikely]]
    return leave_gate(answer);
  keep_copies();
  stage_ = Stage::in_step;
  return RK_OK;
}

rk_status Session::update_begin() {
  if (stage_ != Stage::in_step) [[unlikely]]
    return refuse_now("rk_update_begin");
  if (!registry_.devices_to_wait_for().empty()) [[unlikely]] {
    if (const rk_status status = wait_for_devices("rk_update_begin"); status != RK_OK) return status;
  }
  if (const GateAnswer answer = gates_.pass_update_gate(); answer != GateAnswer::passed) [[unlikely]]
    return leave_gate(answer);
  stage_ = Stage::updating;
  return RK_OK;
}

void Session::commit() {
  const RankStatus word = gates_.word();
  const std::uint8_t slot = word.slot ^ 1u;
  capture(slot, word.step + 1);
  gates_.publish({word.step + 1, RankPhase::between, slot});
  stage_ = Stage::committed;
  if (keeper_.due_at_commit(word.step + 1)) [[unlikely]]
    keeper_.at_commit(gates_.word(), attempt_);
}

rk_status Session::update_end() {
  if (stage_ != Stage::updating) [[unlikely]] {
    return remember_error(RK_ERROR_STATE, "rk_update_end without rk_update_begin that returned RK_OK in this step");
  }
  if (!registry_.devices_to_wait_for().empty()) [[unlikely]] {
    if (const rk_status status = wait_for_devices("rk_update_end"); status != RK_OK) return status;
  }
  commit();
  return RK_OK;
}

rk_status Session::update_skip() {
  if (stage_ != Stage::in_step) [[unlikely]]
    return refuse_now("rk_update_skip");
  if (const rk_status status = wait_for_devices("rk_update_skip"); status != RK_OK) return status;
  // The committed step changes, and small state may: the same gate as for an update (P4).
  if (const GateAnswer answer = gates_.pass_update_gate(); answer != GateAnswer::passed) [[unlikely]]
    return leave_gate(answer);
  commit();
  return RK_OK;
}

rk_status Session::step_end() {
  if (stage_ != Stage::committed) [[unlikely]]
    return refuse_now("rk_step_end");
  if (const GateAnswer answer = gates_.pass_step_gate(gates_.word().phase); answer != GateAnswer::passed) [[unlikely]]
    return leave_gate(answer);
  keep_copies();
  stage_ = Stage::between;
  return RK_OK;
}

// ---- the rest ----

rk_status Session::collective_failed(const char* why) {
  if (stage_ != Stage::in_step && stage_ != Stage::swapped && !between_steps())
    return refuse_now("rk_collective_failed");
  if (!link_) return stop();
  // Swapped memory stays what it is: no source.
  if (stage_ != Stage::swapped) gates_.publish_phase(RankPhase::collective_failed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::string_view reason = why != nullptr ? why : "";
  const CollectiveFailedMessage failed{
      .step = gates_.word().step, .why = std::string(reason.substr(0, kReasonBytesMax)), .rebuilt = gates_.rebuilt()};
  return leave_gate(gates_.wait_for_order(options_.rebuilds, [&] { link_->report_collective_failed(failed); }));
}

rk_status Session::checkpoint() {
  if (!between_steps()) return refuse_now("rk_checkpoint");
  const Done done = link_ ? link_->request_checkpoint(gates_.word().step) : [&] {
    if (capture_at_step_begin_) capture_again();
    return alone_->checkpoint(registry_, small_state_, gates_.word().step, gates_.word().slot);
  }();
  return done ? RK_OK : remember_error(done.error());
}

rk_status Session::set_phase(rk_phase phase) {
  if (stage_ != Stage::in_step && stage_ != Stage::swapped && !between_steps()) return refuse_now("rk_set_phase");
  const Stage stage = stage_ == Stage::swapped ? before_swap_ : stage_;
  RankPhase next = RankPhase::swapped;
  switch (number_of(phase)) {
    case RK_TRAINING: next = stage == Stage::in_step ? RankPhase::computing : RankPhase::between; break;
    case RK_EVALUATING: next = RankPhase::evaluating; break;
    case RK_COMPILING: next = RankPhase::compiling; break;
    case RK_WAITING_FOR_DATA: next = RankPhase::waiting_for_data; break;
    case RK_SWAPPED: break;
    default: return remember_error(RK_ERROR_ARGUMENT, format("rk_set_phase: {} is none of rk_phase", number_of(phase)));
  }
  const bool was_swapped = stage_ == Stage::swapped;
  const bool will_be_swapped = next == RankPhase::swapped;
  if (was_swapped == will_be_swapped) {
    gates_.publish_phase(next);
    return RK_OK;
  }
  if (was_swapped) {
    if (const rk_status status = wait_for_devices("rk_set_phase"); status != RK_OK) return status;
  }
  // What a breakpoint reads may not change under it: into the swap as into an update, and out of it
  // for the sidecar that waits for this rank.
  if (const GateAnswer answer = gates_.pass_step_gate(next); answer != GateAnswer::passed) return leave_gate(answer);
  before_swap_ = stage;
  stage_ = will_be_swapped ? Stage::swapped : stage;
  return RK_OK;
}

int Session::close() {
  // What was asked for is read from registered memory, which may be freed after this.
  bool last_step_lost = false;
  if (link_ && between_steps()) {
    if (const Done done = link_->wait_for_checkpoint(gates_.word().step); !done) {
      last_step_lost = true;
      say(done.error().message);
      remember_error(done.error());
    }
  }
  // The caller may free registered memory after this, so it is a gate like the others. A rank
  // that leaves has no communicators to make anew.
  const bool trains = stage_ == Stage::in_step || stage_ == Stage::rebuilding || between_steps();
  if (trains && gates_.pass_step_gate(RankPhase::finished, HonoredOrders::stop) == GateAnswer::stop) stop();
  int exit_code = last_step_lost ? kFailedExitCode : 0;
  if (stage_ == Stage::stopped || stage_ == Stage::rebuilding) exit_code = kStoppedExitCode;
  if (stage_ == Stage::failed || stage_ == Stage::updating) exit_code = kFailedExitCode;
  if (stage_ == Stage::stopped || stage_ == Stage::swapped) gates_.publish_phase(RankPhase::finished);
  if (link_) link_->finish(exit_code);
  saver_.reset();
  return exit_code;
}

}  // namespace rekindle::runtime
