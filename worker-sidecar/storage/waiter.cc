#include "worker-sidecar/storage/waiter.h"

#include <poll.h>

#include "common/system/clock.h"

namespace rekindle {
namespace {

class RealWaiter final : public Waiter {
 public:
  Duration now() override { return monotonic_now().time_since_epoch(); }
  void pause(Duration duration) override {
    const timespec time = timespec_until(Instant(duration), Instant());
    ::ppoll(nullptr, 0, &time, nullptr);
  }
};

}  // namespace

Waiter& real_waiter() {
  static RealWaiter waiter;
  return waiter;
}

}  // namespace rekindle
