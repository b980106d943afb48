// Time that passes only when somebody waits.
#pragma once

#include <algorithm>

#include "worker-sidecar/storage/waiter.h"

namespace rekindle {

class ManualWaiter final : public Waiter {
 public:
  Duration now() override { return now_; }
  void pause(Duration duration) override {
    now_ += duration;
    ++pauses_;
    longest_ = std::max(longest_, duration);
  }
  void advance(Duration duration) { now_ += duration; }

  int pauses() const { return pauses_; }
  Duration longest() const { return longest_; }

 private:
  Duration now_{};
  int pauses_ = 0;
  Duration longest_{};
};

}  // namespace rekindle
