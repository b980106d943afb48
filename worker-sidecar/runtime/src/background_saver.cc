#include "worker-sidecar/runtime/src/background_saver.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include "common/base/sentence.h"
#include "worker-sidecar/runtime/src/say.h"

namespace rekindle {
namespace {

// A snapshot that has just been taken may not have been reported yet.
constexpr Duration kReportMax = std::chrono::milliseconds(500);
constexpr Duration kLookWhileWanted = std::chrono::milliseconds(50);

Instant now() {
  return Instant(std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

}  // namespace

BackgroundSaver::BackgroundSaver(StandAlone& alone, const SnapshotSettings& settings, ControlBlock& block,
                                 ShadowKeeper& keeper, std::uint64_t step)
    : alone_(alone), block_(block), keeper_(keeper), schedule_(settings) {
  schedule_.begin(step, alone.failures(), now());
  // Signals are the program's: the new thread inherits a mask that takes none.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
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
  if (!mapping) say(sentence("no periodic checkpoints: {}", mapping.error().sentence));
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
    wanted_ = 0;
    beyond_since_.reset();
    if (message.ok) {
      stopped_ = std::chrono::microseconds(message.microseconds);
      snapshot_ = std::move(snapshot);
    } else {
      schedule_.abandoned(now());
      if (told_ != message.error.message)
        say(sentence("no snapshot of step {}: {}", message.step, message.error.message));
      told_ = message.error.message;
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
    const Instant time = now();
    look(time);
    const Instant wake =
        wanted_ != 0 ? time + kLookWhileWanted
                     : std::max(schedule_.next_look().value_or(time + kLookWhileWanted), time + kLookWhileWanted / 10);
    changed_.wait_for(held, wake - time);
  }
}

void BackgroundSaver::look(Instant time) {
  const std::uint64_t step = decode_word(block_.word.load(std::memory_order_acquire)).step;
  if (wanted_ == 0) {
    if (!planned_) return;
    const std::optional<std::uint64_t> target = schedule_.next_target(step, time);
    if (!target) return;
    wanted_ = *target;
    block_.snapshot_step.store(wanted_, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return;
  }
  if (step <= wanted_) return;
  if (!beyond_since_) beyond_since_ = time;
  if (time - *beyond_since_ < kReportMax) return;
  schedule_.missed();
  wanted_ = 0;
  beyond_since_.reset();
}

void BackgroundSaver::write(std::unique_lock<std::mutex>& held) {
  const StandAlone::Snapshot snapshot = *std::exchange(snapshot_, std::nullopt);
  const Duration stopped = stopped_;
  const std::string rhythm = describe(schedule_.settings());
  held.unlock();
  const Instant begin = now();
  const Outcome<std::string> saved = alone_.save(snapshot, rhythm);
  held.lock();
  if (!saved) {
    schedule_.abandoned(now());
    if (told_ != saved.error().sentence)
      say(sentence("the periodic checkpoint of step {} could not be written: {}", snapshot.step,
                   saved.error().sentence));
    told_ = saved.error().sentence;
    return;
  }
  told_.clear();
  schedule_.done({.stopped = stopped, .written = now() - begin}, now());
  say(sentence("step {} saved in {} while training went on ({})", snapshot.step, *saved, schedule_.explain()));
}

}  // namespace rekindle
