// Asks the pod's sidecar through its socket. What it saves it decides by itself: it has seen the
// death before we have. Threads: the launcher's; a save waits in a thread of its own.
#pragma once

#include <chrono>
#include <string>
#include <thread>

#include "common/base/instant.h"
#include "common/system/waker.h"
#include "worker-sidecar/launcher/run_loop.h"

namespace rekindle::launcher {

class PodSaver final : public Saver {
 public:
  static constexpr Duration kAnswerLimit = std::chrono::seconds(600);

  explicit PodSaver(std::string socket_path);
  // Waits for a save that is under way.
  ~PodSaver() override;

  const Waker& save_ended() const { return save_ended_; }
  void rank_ended(const ChildEnd& end) override;
  void save() override;
  void checkpoint_now() override;

 private:
  const std::string socket_path_;
  Waker save_ended_;
  std::thread thread_;
};

}  // namespace rekindle::launcher
