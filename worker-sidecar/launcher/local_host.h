// The sidecar inside `rekindle run`: one pod that has every rank, a loop thread of its own, no
// other sidecars and no operator. One instance is one life of the ranks. Turns what the host
// reports into lines for people and into the event file.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "common/base/error.h"
#include "worker-sidecar/launcher/event_log.h"
#include "worker-sidecar/launcher/run_loop.h"
#include "worker-sidecar/sidecar/observer.h"
#include "worker-sidecar/sidecar/settings.h"

namespace rekindle::launcher {

// What a life left behind, for the line about the restart.
struct SavedPoint {
  std::uint32_t attempt = 0;
  std::uint64_t step = 0;
  std::string path;
};

class LocalHost final : public Saver, private sidecar::HostObserver {
 public:
  // `events` outlives this.
  static Result<std::unique_ptr<LocalHost>> start(const sidecar::HostSettings& settings, EventLog& events,
                                                  bool verbose);
  // Waits for calls to the storage that have begun, also for one that hangs.
  ~LocalHost() override;

  const Waker& save_ended() const { return save_ended_; }
  void rank_ended(const ChildEnd& end) override;
  void save() override;
  void checkpoint_now() override;

  // The newest durable breakpoint of this life, and the attempt that it was.
  std::optional<SavedPoint> saved() const;
  // The step of a save that began and is not durable, also where its time was over before the
  // storage had answered; 0: there is none.
  std::uint64_t step_under_way() const;
  std::uint32_t attempt() const;
  // The first message of a problem that keeps the job from being protected.
  std::string problem() const;

 private:
  struct Loop;
  LocalHost(EventLog& events, bool verbose, Duration deadline);

  void log(sidecar::Severity level, std::string_view message, const sidecar::Facts& fields) override;
  void rank_died(std::uint32_t rank, RankStatus word, bool finished, Instant at) override;
  void breakpoint(const sidecar::BreakpointRecord& record, std::uint32_t attempt, Instant at) override;
  void periodic(const sidecar::ReportPeriodic& report, std::uint32_t attempt, Instant at) override;
  void attempt_begun(const sidecar::AttemptBegun& begun, Instant at) override;
  void first_step(std::uint32_t attempt, std::uint64_t step, Instant at) override;
  void problem(const std::string& code, const std::string& message) override;
  void exit_allowed() override;

  EventLog& events_;
  const bool verbose_;
  const Duration deadline_;
  Waker save_ended_;
  std::atomic<bool> saving_over_ = false;

  // Owned by the loop thread.
  std::uint64_t term_ = 0;
  SaveState state_ = SaveState::collecting;
  bool agreed_reported_ = false;
  // messages that have been printed
  std::set<std::string> said_;
  // of the newest checkpoint that is known to stand
  std::string newest_path_;

  mutable std::mutex mutex_;
  std::optional<SavedPoint> saved_;   // guarded by mutex_
  std::uint64_t step_under_way_ = 0;  // guarded by mutex_
  std::uint32_t attempt_ = 0;         // guarded by mutex_
  std::string problem_;               // guarded by mutex_

  std::unique_ptr<Loop> loop_;
};

}  // namespace rekindle::launcher
