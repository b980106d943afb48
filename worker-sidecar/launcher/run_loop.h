// One life of the local ranks: the supervision machine between processes, signals and the host
// that saves. Blocking, on the launcher's main thread.
#pragma once

#include <cstdint>
#include <functional>

#include "common/system/signals.h"
#include "common/system/waker.h"
#include "worker-sidecar/launcher/children.h"
#include "worker-sidecar/launcher/supervision.h"

namespace rekindle::launcher {

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
LifeReport run_life(Children& children, Supervision& supervision, const SignalWatcher& signals, const Waker& save_ended,
                    Saver& saver);

}  // namespace rekindle::launcher
