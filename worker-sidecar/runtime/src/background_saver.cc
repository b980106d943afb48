#include "worker-sidecar/runtime/src/background_saver.h"

#include <pthread.h>

#include <chrono>
#include <csignal>
#include <utility>

#include "common/base/format.h"
#include "common/system/clock.h"
#include "common/system/signals.h"
#include "worker-sidecar/runtime/src/say.h"

namespace rekindle::runtime {

BackgroundSaver::BackgroundSaver(StandAlone& alone, const SnapshotSettings& settings, ControlBlock& block,
                                 ShadowKeeper& keeper, std::uint64_t step)
    : alone_(alone), block_(block), keeper_(keeper), agenda_(settings, step, alone.failures(), monotonic_now()) {
  // Signals are the program's: the new thread inherits a mask that takes none.
  const AllSignalsBlocked blocked;
  thread_ = std::thread([this] { run(); });
}

BackgroundSaver::~BackgroundSaver() {
  {
    const std::lock_guard held(mutex_);
    agenda_.close();
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
    agenda_.planned(kept != nullptr);
  }
  keeper_.offer(kept);
  changed_.notify_all();
}

void BackgroundSaver::taken(const SnapshottedMessage& message, StandAlone::Snapshot snapshot) {
  {
    const std::lock_guard held(mutex_);
    if (message.ok) {
      agenda_.taken(std::chrono::microseconds(message.microseconds));
      snapshot_ = std::move(snapshot);
    } else {
      agenda_.failed(monotonic_now());
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
    const Instant time = monotonic_now();
    const SaverAgenda::Next next = agenda_.next(decode_word(block_.word.load(std::memory_order_acquire)).step, time);
    switch (next.work) {
      case SaverAgenda::Next::Work::end: return;
      case SaverAgenda::Next::Work::write: write(held); break;
      case SaverAgenda::Next::Work::wait:
        if (next.announce) {
          block_.snapshot_step.store(*next.announce, std::memory_order_release);
          std::atomic_thread_fence(std::memory_order_seq_cst);
        }
        changed_.wait_for(held, next.wake - time);
    }
  }
}

void BackgroundSaver::write(std::unique_lock<std::mutex>& held) {
  const StandAlone::Snapshot snapshot = std::move(snapshot_);
  const std::string rhythm = describe(agenda_.schedule().settings());
  held.unlock();
  const Instant begin = monotonic_now();
  const Outcome<std::string> saved = alone_.save(snapshot, rhythm);
  held.lock();
  if (!saved) {
    agenda_.failed(monotonic_now());
    if (reported_problem_ != saved.error().message)
      say(format("the periodic checkpoint of step {} could not be written: {}", snapshot.step, saved.error().message));
    reported_problem_ = saved.error().message;
    return;
  }
  reported_problem_.clear();
  agenda_.saved(monotonic_now() - begin, monotonic_now());
  say(format("step {} saved in {} while training went on ({})", snapshot.step, *saved, agenda_.schedule().explain()));
}

}  // namespace rekindle::runtime
