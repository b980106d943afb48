// The library's own thread and its talk with the sidecar (docs/formats/frames.md, kinds 1 to 23):
// says hello, maps the control block, holds the robust futex, writes what the sidecar orders, comes
// back to a sidecar that was restarted.
//
//   away --connect--> greeting --control--> linked --end of socket--> away
//
// with growing pauses, while training goes on.
//
// Guarantees: nothing here keeps the training thread from its work; a gate that is closed by a
// sidecar which does not come back within away_max opens again; orders of a lower term than the
// highest seen are refused, a higher one cancels what is being written (P7). Assumes: registry,
// small state and gates outlive it.
//
// Until the attempt is known a restarted sidecar may bring a new control block; the training thread
// then touches the block only through with_block(). From the take on the block stays the same.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>

#include "common/base/instant.h"
#include "common/contract/deadlines.h"
#include "common/system/waker.h"
#include "worker-sidecar/protocol/frame.h"
#include "worker-sidecar/protocol/local_message.h"
#include "worker-sidecar/runtime/src/announcement.h"
#include "worker-sidecar/runtime/src/control_mapping.h"
#include "worker-sidecar/runtime/src/failure.h"
#include "worker-sidecar/runtime/src/gates.h"
#include "worker-sidecar/runtime/src/open_options.h"
#include "worker-sidecar/runtime/src/registry.h"
#include "worker-sidecar/runtime/src/robust_owner.h"
#include "worker-sidecar/runtime/src/shadow_keeper.h"
#include "worker-sidecar/runtime/src/shard_writer.h"
#include "worker-sidecar/runtime/src/sidecar_socket.h"
#include "worker-sidecar/runtime/src/small_state.h"

namespace rekindle::runtime {

struct LinkLimits {
  // then held gates open, and protection is lost until a sidecar comes back
  Duration away_max = std::chrono::seconds(60);
  Duration first_pause = std::chrono::milliseconds(10);
  Duration longest_pause = std::chrono::seconds(2);
  // for sending what is left at the end
  Duration goodbye_max = std::chrono::seconds(2);
  // for a sidecar that is there and answers no request
  Duration answer_max = kBreakpointDeadlineMax + std::chrono::seconds(60);
  FileSystem* file_system = &real_file_system();  // where orders are written to
};

// A sidecar counts names besides values; this much is requested on top of what the program wants to
// keep.
inline constexpr std::uint32_t kRoomForNames = 16384;

class Link {
 public:
  using RestoreEvent = std::variant<OfferMessage, TakeMessage>;

  Link(const OpenOptions& options, Registry& registry, SmallState& small_state, Gates& gates, ShadowKeeper& keeper,
       const LinkLimits& limits);
  // Ends the thread; without finish() the sidecar sees an end that was not announced.
  ~Link();

  Done start();

  // Training thread. Waits until the whole job is there.
  Done wait_for_welcome(Duration time_max);
  // Calls `use` while the control block stays what it is.
  void with_block(const std::function<void(ControlBlock&)>& use);

  // Training thread. What is registered; also sent again to a sidecar that comes back. ARGUMENT
  // when it is too much for one message, and nothing is changed.
  Done announce(RegisteredMessage registered);
  // One that comes or goes later. Many in a row go into one message.
  Done announce_tensor(TensorDescription tensor);
  Done announce_state(StateDescription state);
  void withdraw_tensor(std::string_view name);
  void report_loaded(LoadedMessage loaded);
  // The next event of the restore that the sidecar reports.
  Outcome<RestoreEvent> next_restore_event();
  void report_collective_failed(CollectiveFailedMessage failed);
  void report_rebuilt(RebuiltMessage rebuilt);
  void report_snapshotted(SnapshottedMessage taken);
  // Of the job as it is at this committed step or later. UNAVAILABLE while there is no sidecar.
  Done request_checkpoint(std::uint64_t step);
  // Training thread, at the end. Waits until the last request is answered; UNAVAILABLE with the
  // reason when it was for this very step and the step is not durable.
  Done wait_for_checkpoint(std::uint64_t step);
  // Says goodbye and ends the thread.
  void finish(int exit_code);

  std::string job_folder() const;
  std::uint32_t ranks_here() const;  // of this pod

 private:
  enum class Stage : std::uint8_t { away, greeting, linked };

  // All below: library thread.
  void run();
  void try_to_connect();
  void wait_for_something();
  void exchange();
  void check_connection();
  void handle(SidecarSocket::Arrival arrival);
  void on_control(const ControlMessage& control);
  void adopt_block(ControlMapping mapping);
  void on_take(const TakeMessage& take);
  void on_refused(const RefusedMessage& refused);
  void on_write(WriteMessage order);
  void on_keep(const KeepMessage& keep);
  void on_end(const EndMessage& end);
  void on_checkpoint_done(const CheckpointDoneMessage& done);
  void send_requests();
  void send(const LocalMessage& message);
  void send(const EncodedMessage& message);
  void carry_out(const WriteMessage& order);
  void disconnect(std::string problem);
  void check_absence();
  void send_goodbye();
  void wake();

  const OpenOptions options_;
  const LinkLimits limits_;
  Registry& registry_;
  SmallState& small_state_;
  Gates& gates_;
  ShadowKeeper& keeper_;
  // the training thread has put something below
  Waker waker_;

  // Library thread.
  SidecarSocket socket_;
  std::deque<SidecarSocket::Arrival> arrivals_;
  std::deque<WriteMessage> orders_;
  std::uint64_t highest_term_ = 0;
  Stage stage_ = Stage::away;
  Duration pause_{};
  Instant next_try_;
  Instant away_since_;
  bool said_unprotected_ = false;
  RobustOwner owner_;
  FileDescriptor pidfd_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  ControlMapping mapping_;
  std::string job_folder_;
  std::uint32_t ranks_here_ = 1;
  bool welcomed_ = false;
  std::uint32_t attempt_ = 0;  // 0 until the take
  std::optional<Failure> refused_;
  std::string last_problem_;
  bool reachable_ = false;
  bool absent_too_long_ = false;
  std::deque<RestoreEvent> restore_events_;
  // to be sent once, dropped without a sidecar
  std::deque<LocalMessage> requests_;
  Announcement announcement_;
  // reported to each sidecar
  std::optional<CollectiveFailedMessage> collective_failed_;
  std::optional<CheckpointWantedMessage> checkpoint_wanted_;  // not answered yet
  std::optional<CheckpointDoneMessage> checkpoint_missed_;    // the last answer, where it is not durable
  std::optional<int> farewell_;
  bool closing_ = false;

  std::thread thread_;
};

}  // namespace rekindle::runtime
