// N coordination machines with simulated ranks, network and storage on one virtual time line. One
// seed, one run: every delay, loss and choice comes from it. Messages from one pod to another keep
// their order, as a connection keeps it. Checks safety while it runs (violations()) and lets a test
// or a scenario script faults.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "common/base/instant.h"
#include "common/base/prng.h"
#include "worker-sidecar/coordination/coordination.h"

namespace rekindle::sidecar {

struct HarnessOptions {
  std::uint64_t seed = 1;
  std::uint32_t pods = 2;
  std::uint32_t ranks_per_pod = 1;
  bool states = false;                  // ranks register small state
  bool trains = false;                  // ranks step by themselves; otherwise a script places them
  bool rebuilds = false;                // ranks can make their communicators anew
  std::set<std::uint32_t> unable = {};  // but not these
  // steps; ranks that train keep a copy of each such step, the newest two
  std::uint32_t shadow_every = 0;
  double drop = 0;  // of messages between pods
  double duplicate = 0;
  Duration delay_most = std::chrono::microseconds(500);
  AfterBreakpoint after_fault = AfterBreakpoint::park;
  CoordinationLimits limits;
};

class CoordinationHarness {
 public:
  explicit CoordinationHarness(HarnessOptions options);

  // Connects everything, lets all ranks register and take `restore` (nothing: a start from step 0).
  void start(std::optional<RestoreCandidate> restore = std::nullopt);
  void connect_everything();
  void connect_rank(std::uint32_t rank);

  void run_for(Duration duration);
  // False when it did not come true in that time.
  bool run_until(const std::function<bool()>& condition, Duration most);

  // --- faults and triggers ---
  void place(std::uint32_t rank, std::uint64_t step, RankPhase phase);
  void kill_rank(std::uint32_t rank);
  void kill_pod(std::uint32_t pod);
  void restart_sidecar(std::uint32_t pod);
  void finish_rank(std::uint32_t rank);
  void set_link(std::uint32_t a, std::uint32_t b, bool up);
  void hook(std::uint32_t pod, double seconds);
  // Who called it is gone: nobody is there to be answered.
  void hook_goes(std::uint64_t id);
  void order(const std::string& breakpoint, AfterBreakpoint after, double seconds);
  void want_checkpoint(std::uint32_t rank);
  void fail_collective(std::uint32_t rank);
  // All collectives of the communicators that there are now fail.
  void break_communicators();
  // A rank that a script has placed comes to a gate: an order to rebuild that it has not carried
  // out is.
  void reach_gate(std::uint32_t rank);
  void set_load_time(Duration duration) { load_time_ = duration; }
  void terminate(std::uint32_t pod, double seconds);
  // Nothing runs for so long, as in a virtual machine that is suspended. Timers are the first to
  // notice; what happened before lies in the sockets until then.
  void freeze(Duration duration);
  void table(const std::vector<PeerTableEntry>& pods, bool go);
  void fail_writes_of(std::uint32_t rank, Error error, int times = 1 << 30) {
    write_errors_[rank] = {std::move(error), times};
  }
  void fail_publishing(Error error) { publish_error_ = std::move(error); }
  void mend_publishing() { publish_error_.reset(); }
  // empty: mended
  void fail_folders(std::optional<Error> error) { folder_error_ = std::move(error); }
  void fail_listing(std::optional<Error> error) { listing_error_ = std::move(error); }
  void fail_claims(std::optional<Error> error) { claim_error_ = std::move(error); }
  void set_candidates(std::vector<RestoreCandidate> candidates) { candidates_ = std::move(candidates); }
  void set_bad(const std::string& path, Error error) { bad_[path] = std::move(error); }
  void fail_loads_of(std::uint32_t rank, Error error) { load_errors_[rank] = std::move(error); }
  void mend_loads_of(std::uint32_t rank) { load_errors_.erase(rank); }
  void set_write_time(Duration duration) { write_time_ = duration; }
  void set_layout_of(std::uint32_t rank, Layout layout) { layouts_[rank] = std::move(layout); }
  void register_late(std::uint32_t rank, Layout layout);
  void set_shadows(std::uint32_t rank, std::vector<std::uint64_t> steps) {
    ranks_[rank].shadow_steps = std::move(steps);
  }
  void fail_shadows_of(std::uint32_t rank, Error error) { shadow_errors_[rank] = std::move(error); }
  void set_network(double drop, double duplicate, Duration delay_most);

  // --- what can be seen ---
  struct Rank {
    bool alive = false;
    bool finished = false;
    RankStatus word;
    std::uint32_t attempt = 0;
    bool held = false;
    std::uint64_t permit = 0;
    bool stop = false;
    bool ended = false;  // by its sidecar, after the breakpoint
    std::uint64_t slots[2] = {0, 0};
    std::uint64_t generation = 0;
    std::uint64_t highest_term = 0;
    bool rebuilds = false;
    RebuildOrder order;         // the newest; term 0: there was none
    std::uint64_t rebuilt = 0;  // term of the newest that was carried out
    std::uint32_t rebuilds_made = 0;
    bool must_rebuild() const { return order.term != rebuilt; }
    // sorted; in memory that its pod takes away and its death does not
    std::vector<std::uint64_t> shadow_steps;
  };
  struct Published {
    std::uint64_t step = 0;
    std::string path;
    std::uint64_t term = 0;
    std::vector<std::uint32_t> inexact;
    Instant at;
    CheckpointSummary summary;
  };
  struct Hook {
    std::uint32_t pod = 0;
    Instant until;
    std::optional<HookDoneMessage> answer;
    bool pod_died = false;
    bool gone = false;
  };

  const Rank& rank(std::uint32_t number) const { return ranks_.at(number); }
  const Coordination& pod(std::uint32_t ordinal) const { return *pods_.at(ordinal).machine; }
  bool pod_up(std::uint32_t ordinal) const { return pods_.at(ordinal).up; }
  // as that pod was told last
  const AttemptBegun& begun(std::uint32_t ordinal) const { return pods_.at(ordinal).begun; }
  const std::vector<Published>& published() const { return published_; }
  // checkpoints that were given up
  const std::set<std::string>& removed() const { return removed_; }
  const std::map<std::uint64_t, Hook>& hooks() const { return hooks_; }
  // What ranks were told that had asked for a checkpoint, in order.
  const std::vector<AnswerCheckpoint>& checkpoint_answers() const { return checkpoint_answers_; }
  // Ranks that still wait for one.
  const std::map<std::uint32_t, std::uint64_t>& checkpoints_wanted() const { return checkpoints_wanted_; }
  const std::vector<BreakpointRecord>& records() const { return records_; }
  const std::vector<std::string>& violations() const { return violations_; }
  const CoordinationConfig& config() const { return config_; }
  Instant now() const { return now_; }
  bool all_running() const;
  // Nobody holds, leads or waits for anything.
  bool quiet() const;
  std::string describe() const;

  // What happened since the last call, a line each with the milliseconds since the start.
  std::vector<std::string> take_log();
  // All of it at the end of a run, as one number: the same seed gives the same.
  std::uint64_t trace_hash() const { return trace_; }

 private:
  struct Pod {
    std::unique_ptr<Coordination> machine;
    bool up = false;
    std::uint64_t generation = 0;
    std::optional<Instant> wake;
    std::optional<Instant> ends_until;  // was told to end, and has time until then
    bool exit_allowed = false;
    AttemptBegun begun;
    std::optional<RememberJob> remembered;  // in the run folder, which outlives the sidecar
  };
  struct Happening {
    Instant at;
    std::uint64_t order;
    std::function<void()> what;
    bool operator<(const Happening& other) const { return at != other.at ? at > other.at : order > other.order; }
  };

  void after(Duration delay, std::function<void()> what);
  Duration between(Duration least, Duration most);
  void log(const std::string& line);
  void deliver(std::uint32_t pod, CoordinationEvent event);
  void deliver_later(std::uint32_t pod, Duration delay, CoordinationEvent event);
  void schedule_wake(std::uint32_t pod);
  bool linked(std::uint32_t a, std::uint32_t b) const;
  void violate(std::string what) { violations_.push_back(std::move(what)); }

  void perform(std::uint32_t pod, const CoordinationOutput& output);
  void perform(std::uint32_t pod, const SendToPeer& send);
  void perform(std::uint32_t pod, const TakeForRank& take);
  void perform(std::uint32_t pod, const RefuseRank& refuse);
  void perform(std::uint32_t pod, const ExitAllowed& exit);
  void perform(std::uint32_t pod, const StartWrite& start);
  void perform(std::uint32_t pod, const WriteFromShadow& start);
  void perform(std::uint32_t pod, const WriteStates& write);
  const Layout& layout_of(std::uint32_t rank) const;
  RegisteredMessage registered_by(std::uint32_t rank) const;
  void finish_write(std::uint32_t pod, std::uint32_t rank, const WriteMessage& write);
  void perform(std::uint32_t pod, const PublishCheckpoint& publish);
  void hold(std::uint32_t pod);
  void release(std::uint32_t pod, const ReleaseRanks& released);
  void rebuild(std::uint32_t rank);
  void report_failed_collective(std::uint32_t rank);
  void answer_hook(const AnswerHook& answer);
  void answer_checkpoint(const AnswerCheckpoint& answer);
  void load(std::uint32_t pod, std::uint32_t rank, const OfferMessage& offer);

  void set_word(std::uint32_t rank, RankStatus word);
  void commit(std::uint32_t rank);
  void act(std::uint32_t rank);
  void act_later(std::uint32_t rank, Duration least, Duration most);
  void leave(std::uint32_t rank);
  std::uint32_t pod_of(std::uint32_t rank) const { return config_.pod_of(rank); }

  HarnessOptions options_;
  CoordinationConfig config_;
  Prng prng_;
  Instant now_{};
  std::uint64_t order_ = 0;
  std::priority_queue<Happening> queue_;
  std::vector<Pod> pods_;
  std::vector<Rank> ranks_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> links_down_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> links_broken_;  // how often
  // of a message, by sender and receiver
  std::map<std::pair<std::uint32_t, std::uint32_t>, Instant> newest_arrival_;
  // by the order that made the communicators, and step
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::set<std::uint32_t>> contributions_;
  std::uint64_t broken_until_ = 0;  // communicators that no later order has made
  bool any_broken_ = false;
  Duration load_time_ = std::chrono::milliseconds(4);
  std::optional<PeerTableSeen> table_;
  std::uint64_t next_hook_ = 1;
  std::map<std::uint64_t, Hook> hooks_;
  std::map<std::uint32_t, std::uint64_t> checkpoints_wanted_;  // the step, by rank
  std::vector<AnswerCheckpoint> checkpoint_answers_;
  std::vector<RestoreCandidate> candidates_;
  std::map<std::string, Error> bad_;
  struct FailingWrites {
    Error error;
    int times_left = 0;
  };
  std::map<std::uint32_t, FailingWrites> write_errors_;
  std::map<std::uint32_t, Error> shadow_errors_;
  std::map<std::uint32_t, Error> load_errors_;
  std::map<std::uint32_t, Layout> layouts_;
  std::optional<Error> publish_error_;
  std::optional<Error> folder_error_;
  std::optional<Error> listing_error_;
  std::optional<Error> claim_error_;
  Duration write_time_ = std::chrono::milliseconds(4);
  std::uint32_t next_attempt_ = 1;
  std::uint64_t next_folder_ = 1;
  std::map<std::string, std::pair<std::uint64_t, std::string>> files_;  // path/file -> step, hash
  std::vector<Published> published_;
  std::set<std::string> removed_;
  std::map<std::string, std::string> published_contents_;
  std::vector<BreakpointRecord> records_;
  std::vector<std::string> violations_;
  std::vector<std::string> log_;
  std::uint64_t trace_ = 1469598103934665603u;
};

// A line each.
std::string joined(const std::vector<std::string>& lines);

// "0,2", or "none".
std::string comma_separated(const std::vector<std::uint32_t>& list);

// What every rank of the harness registers unless it is told otherwise.
const Layout& harness_layout();

// What `rank` of a job registers that is trained in one of the usual ways: "data", "tensor" (pairs
// hold halves), "pipeline" (even and odd ranks hold stages), "zero" (whole parameters, moments cut
// over all). Nothing for another word.
std::optional<Layout> layout_for(std::string_view parallel, std::uint32_t rank, std::uint32_t world_size);

}  // namespace rekindle::sidecar
