#include "worker-sidecar/storage/waiter.h"

#include <chrono>
#include <thread>

namespace rekindle {
namespace {

class RealWaiter final : public Waiter {
 public:
  Duration now() override { return std::chrono::steady_clock::now().time_since_epoch(); }
  void pause(Duration duration) override { std::this_thread::sleep_for(duration); }
};

}  // namespace

Waiter& real_waiter() {
  static RealWaiter waiter;
  return waiter;
}

}  // namespace rekindle
