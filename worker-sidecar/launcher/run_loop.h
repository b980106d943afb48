// One life of the local ranks: the supervision machine between processes, signals and whoever
// saves. Blocking, on the launcher's main thread.
#pragma once

#include <cstdint>
#include <functional>

#include "worker-sidecar/launcher/children.h"
#include "worker-sidecar/launcher/supervision.h"

namespace rekindle {

// SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGCHLD as something to wait for. Made once in main, before
// any thread.
class LauncherSignals {
 public:
  LauncherSignals();
  ~LauncherSignals();
  LauncherSignals(const LauncherSignals&) = delete;
  LauncherSignals& operator=(const LauncherSignals&) = delete;
  int descriptor() const { return descriptor_; }
  int take();  // 0 when none waits

 private:
  int descriptor_ = -1;
};

// Wakes the run loop from any thread.
class Waker {
 public:
  Waker();
  ~Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;
  int descriptor() const { return descriptor_; }
  void wake() const;
  bool take() const;

 private:
  int descriptor_ = -1;
};

// Who saves: the sidecar inside this process, or the one of the pod.
class Saver {
 public:
  virtual ~Saver() = default;
  // Every end of a child, also a good one.
  virtual void rank_ended(const ChildEnd& end) = 0;
  // Save what there is; the waker is woken when that is over, whatever came of it.
  virtual void save() = 0;
  virtual void checkpoint_now() = 0;
};

struct LifeReport {
  LifeOver over;
  std::optional<ChildEnd> first_failure;
};

// `save_ended` belongs to `saver`.
LifeReport run_life(Children& children, Supervision& supervision, LauncherSignals& signals, const Waker& save_ended,
                    Saver& saver);

}  // namespace rekindle
