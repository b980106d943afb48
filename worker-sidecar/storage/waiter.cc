#include "worker-sidecar/storage/waiter.h"

#include <poll.h>
#include <time.h>

#include <chrono>

namespace rekindle {
namespace {

class RealWaiter final : public Waiter {
 public:
  Duration now() override {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return std::chrono::seconds(time.tv_sec) + Duration(time.tv_nsec);
  }
  void pause(Duration duration) override {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
    const timespec time{.tv_sec = seconds.count(), .tv_nsec = (duration - seconds).count()};
    ::ppoll(nullptr, 0, &time, nullptr);
  }
};

}  // namespace

Waiter& real_waiter() {
  static RealWaiter waiter;
  return waiter;
}

}  // namespace rekindle
