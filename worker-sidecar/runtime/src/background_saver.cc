#include "worker-sidecar/runtime/src/background_saver.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include "common/base/format.h"
#include "common/system/clock.h"
#include "common/system/signals.h"
#include "worker-sidecar/runtime/src/say.h"

namespace rekindle::runtime {
namespace {

// A snapshot that has just been taken may not have been reported yet.
constexpr Duration kReportMax = std::chrono::milliseconds(500);
constexpr Duration kTargetPollInterval = std::chrono::milliseconds(50);

}  // namespace

BackgroundSaver::BackgroundSaver(StandAlone& alone, const SnapshotSettings& settings, ControlBlock& block,
                                 ShadowKeeper& keeper, std::uint64_t step)
    : alone_(alone), block_(block), keeper_(keeper), schedule_(settings) {
  schedule_.begin(step, alone.failures(), monotonic_now());
  // Signals are the program's: the new thread inherits a mask that takes none.
  const AllSignalsBlocked blocked;
  thread_ = std::thread([this] { run(); });
}

BackgroundSaver::~BackgroundSaver() {
  {
    const std::lock_guard held(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BackgroundSaver::plan(const Registry& registry) {
  const Layout layout = registry.layout();
  std::vector<PiecePlan> pieces;
  for (const TensorDescription& tensor : layout.tensors) pieces.push_back({tensor.name, 0, row_count(tensor)});
  Result<ShadowPlan> plan = plan_shadow({.snapshots = true}, layout, pieces);
  Outcome<ShadowMapping> mapping =
      plan ? ShadowMapping::make_private(*std::move(plan)) : Outcome<ShadowMapping>(refuse(plan.error()));
  if (!mapping) say(format("no periodic checkpoints: {}", mapping.error().message));
  auto kept = mapping ? std::make_shared<ShadowMapping>(*std::move(mapping)) : nullptr;
  {
    const std::lock_guard held(mutex_);
    planned_ = kept != nullptr;
  }
  keeper_.offer(kept);
  changed_.notify_all();
}

void BackgroundSaver::taken(const SnapshottedMessage& message, StandAlone::Snapshot snapshot) {
  {
    const std::lock_guard held(mutex_);
    target_step_ = 0;
    beyond_since_.reset();
    if (message.ok) {
      stopped_ = std::chrono::microseconds(message.microseconds);
      snapshot_ = std::move(snapshot);
    } else {
      schedule_.abandoned(monotonic_now());
      if (reported_problem_ != message.error.message)
        say(format("no snapshot of step {}: {}", message.step, message.error.message));
      reported_problem_ = message.error.message;
    }
  }
  changed_.notify_all();
}

void BackgroundSaver::run() {
  ::pthread_setname_np(::pthread_self(), "rekindle-saver");
  std::unique_lock held(mutex_);
  while (true) {
    if (snapshot_) {
      write(held);
      continue;
    }
    if (closing_) return;
    const Instant time = monotonic_now();
    update_target(time);
    const Instant wake = target_step_ != 0 ? time + kTargetPollInterval
                                           : std::max(schedule_.next_check().value_or(time + kTargetPollInterval),
                                                      time + kTargetPollInterval / 10);
    changed_.wait_for(held, wake - time);
  }
}

void BackgroundSaver::update_target(Instant time) {
  const std::uint64_t step = decode_word(block_.word.load(std::memory_order_acquire)).step;
  if (target_step_ == 0) {
    if (!planned_) return;
    const std::optional<std::uint64_t> target = schedule_.next_target(step, time);
    if (!target) return;
    target_step_ = *target;
    block_.snapshot_step.store(target_step_, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return;
  }
  if (step <= target_step_) return;
  if (!beyond_since_) beyond_since_ = time;
  if (time - *beyond_since_ < kReportMax) return;
  schedule_.missed();
  target_step_ = 0;
  beyond_since_.reset();
}

void BackgroundSaver::write(std::unique_lock<std::mutex>& held) {
  const StandAlone::Snapshot snapshot = *std::exchange(snapshot_, std::nullopt);
  const Duration stopped = stopped_;
  const std::string rhythm = describe(schedule_.settings());
  held.unlock();
  const Instant begin = monotonic_now();
  const Outcome<std::string> saved = alone_.save(snapshot, rhythm);
  held.lock();
  if (!saved) {
    schedule_.abandoned(monotonic_now());
    if (reported_problem_ != saved.error().message)
      say(format("the periodic checkpoint of step {} could not be written: {}", snapshot.step, saved.error().message));
    reported_problem_ = saved.error().message;
    return;
  }
  reported_problem_.clear();
  schedule_.done({.stopped = stopped, .written = monotonic_now() - begin}, monotonic_now());
  say(format("step {} saved in {} while training went on ({})", snapshot.step, *saved, schedule_.explain()));
}

}  // namespace rekindle::runtime
