// The inside of Host: ranks and tools on the Unix socket become events, outputs of the machines
// become stores, frames and work on the disk pool. It is shared with that work, whose results are
// dropped when the host is gone. Everything on the loop thread.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker-sidecar/coordination/coordination.h"
#include "worker-sidecar/sidecar/checkpoint_repository.h"
#include "worker-sidecar/sidecar/disk_pool.h"
#include "worker-sidecar/sidecar/host.h"
#include "worker-sidecar/sidecar/local_server.h"
#include "worker-sidecar/sidecar/rank_table.h"

namespace rekindle::sidecar {

struct Host::Parts : std::enable_shared_from_this<Host::Parts> {
  Parts(asio::io_context& loop_, Options options_);

  // Events, time, status. What has come is handled before it is logged: whoever reads the log may
  // be slow.
  void handle(CoordinationEvent event);
  void arm_wake();
  void log(Severity level, std::string_view message, Facts fields = {}) const;
  void note_problem(const std::string& code, const std::string& message);
  void end_problem(const std::string& code);
  void poll_words();
  void await_first_step(std::uint64_t step);
  void watch_first_step();
  HostStatus status() const;
  std::string status_text() const;

  // Ranks and tools on the Unix socket.
  void open_storage();
  void on_hello(LinkId link, const HelloMessage& hello, std::uint32_t attempt, FileDescriptor process);
  void admit(LinkId link, const HelloMessage& hello, std::uint32_t attempt, FileDescriptor process);
  void refuse(LinkId link, const Error& error);
  void end_waits();
  void on_message(LinkId link, const LocalMessage& message);
  void on_link_ended(LinkId link, const std::string& why);
  void on_rank_died(std::uint32_t rank, RankStatus word);

  // What the machines order.
  void perform(const CoordinationOutput& output);
  void send_to_rank(std::uint32_t rank, const LocalMessage& message, int descriptor = -1);
  template <typename Work, typename Then>
  void on_disk(Work work, Then then) {
    disk.run(std::move(work), [weak = weak_from_this(), then = std::move(then)](auto result) mutable {
      if (const auto self = weak.lock()) then(*self, std::move(result));
    });
  }
  void on(const SendToPeer& output);
  void on(const WelcomeRank& output);
  void on(const OfferToRank& output);
  void on(const TakeForRank& output);
  void on(const RefuseRank& output);
  void on(const ListCandidates& output);
  void on(const VerifyCandidate& output);
  void on(const ClaimAttempt& output);
  void on(const AttemptBegun& output);
  void on(const HoldRanks& output);
  void on(const PermitUpdate& output);
  void on(const StartWrite& output);
  void on(const WriteStates& output);
  void on(const ReleaseRanks& output);
  void on(const EndRanks& output);
  void on(const AnswerHook& output);
  void on(const AnswerCheckpoint& output);
  void on(const CreateFolder& output);
  void on(const PublishCheckpoint& output);
  void on(const ReportBreakpoint& output);
  void on(const ReportRestore& output);
  void on(const NoteProblem& output);
  void on(const ExitAllowed& output);
  void on(const WriteFromShadow& output);
  void on(const KeepForRank& output);
  void on(const OrderSnapshot& output);
  void on(const InspectRanks& output);
  void on(const RemoveFolder& output);
  void on(const ReportPeriodic& output);
  void on(const RememberJob& output);

  struct PendingHello {
    LinkId link = 0;
    HelloMessage hello;
    std::uint32_t attempt = 0;
    FileDescriptor process;
  };
  enum class StorageState { untried, trying, ready, broken };

  asio::io_context& loop;
  const HostSettings settings;
  HostObserver* const observer;
  PeerTransport* const peers;
  const CoordinationConfig config;

  Coordination coordination;
  std::shared_ptr<CheckpointRepository> repository;  // shared with work on the disk pool
  RankTable ranks;
  std::unique_ptr<LocalServer> server;

  std::deque<CoordinationEvent> events;  // that came while another one is being performed
  bool performing = false;
  asio::steady_timer wake_timer;

  StorageState storage = StorageState::untried;
  Error storage_error;
  std::vector<PendingHello> pending_hellos;  // until the storage has been tried
  // Processes that came for ranks of an attempt that has begun; the machines do not know them.
  std::vector<LinkId> latecomers;
  bool ending = false;  // the pod is
  std::map<std::string, std::string> problems;

  // Words are read only while a hold lasts, and until the first step of an attempt.
  bool holding = false;
  Instant hold_began;
  asio::steady_timer poll_timer;
  std::optional<std::uint64_t> awaited_first_step;
  asio::steady_timer first_step_timer;
  asio::steady_timer::duration first_step_pause{};

  std::map<std::uint64_t, SaveState> states_of_terms;
  std::uint64_t durable_count = 0;
  std::uint64_t failed_count = 0;
  std::uint64_t periodic_count = 0;

  DiskPool disk;  // last: its work is waited for before the rest goes
};

}  // namespace rekindle::sidecar
