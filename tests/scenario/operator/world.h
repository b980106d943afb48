// A small world for the operator's decisions: one Volcano Job with its controller, a kubelet,
// sidecars that save, and the real reconcile() and SidecarDirectory in the middle. One tick is one
// second of virtual time. What Volcano does is written down here on its own (it does not ask
// operator/faults), so that the two can disagree.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/sidecar_directory.h"

namespace rekindle::op::scenario {

enum class SaveMode { works, fails, silent };

class World {
 public:
  World();

  // --- what people and the cluster do
  void create_job(const std::string& name, std::int64_t workers, std::vector<PolicyRule> policies,
                  const std::string& label, bool protected_at_create, std::int64_t max_retry);
  void label_job(const std::string& value);
  void evict(const std::string& pod, const std::string& reason);
  void delete_pod(const std::string& pod);
  void remove_pod_at_once(const std::string& pod);  // forced: grace 0
  void kill_container(const std::string& pod, std::int32_t exit_code, const std::string& reason);
  // nobody has died; rebuild: the ranks make their communicators anew
  void fail_collective(bool rebuild);
  void kill_rank(const std::string& pod);  // the process dies, its container lives
  void finish_programs();
  void suspend();
  void resume();
  void scale(std::int64_t workers);
  // Volcano's count moves on, and the pods that there are live on with the old one
  void count_a_kill();
  void terminate();
  void delete_job();
  void ask_for_breakpoint(const std::string& name, const std::string& job_uid);
  void set_webhook(bool answers);
  void set_save_mode(SaveMode mode) { save_mode_ = mode; }
  // Every program ends with an error: once its attempt has begun, or before rk_open already.
  void set_crash_loop(bool on, bool before_open = false) {
    crash_loop_ = on && !before_open;
    crash_before_open_ = on && before_open;
  }
  // Saving and going take less than a tick, so that a pod is gone and its job restarted before
  // anybody has believed its deletion.
  void set_quick(bool quick) { quick_ = quick; }
  // As Volcano 1.14: pods are marked before they are killed.
  void set_marks(bool marks) { volcano_marks_ = marks; }

  void start_operator();
  void stop_operator();  // until it is started by hand
  // Killed right after its n-th action from now on (each action and each write counts), started
  // again five ticks later.
  void crash_operator_after(std::uint32_t actions) { crash_after_ = actions; }

  // And started again five ticks later. False: it is away already, nothing happens.
  bool crash_operator_now();

  void tick();

  std::vector<std::string> take_log();
  std::vector<std::string> status() const;
  // What is known of the checkpoint of each breakpoint.
  std::vector<std::string> records() const;
  // What must be the same however often the operator was restarted: no names, uids and times.
  std::string outcome() const;
  // The same without history: phases of job and pods, and what is still open.
  std::string cluster() const;
  std::uint32_t actions_performed() const { return actions_performed_; }
  std::string fault_found() const;  // a broken invariant, empty when all is well

 private:
  struct Process {  // what lives in one pod
    SyncReport report;
    bool started = false;
    bool dead = false;             // a main ended by itself, or its rank died
    std::optional<WallTime> ends;  // the pod is about to end
    std::uint64_t order_seen = 0;
  };
  struct Save {
    std::string id;
    TriggerCause cause = TriggerCause::unknown;
    std::string pod;
    std::string detail;
    WallTime done{};
    bool go_on = false;
    bool rebuild = false;
  };

  void log(const std::string& line);
  Pod* find_pod(const std::string& name);
  void begin_delete(Pod& pod, const std::string& disruption);
  void kubelet_tick();
  void remove_pod(const std::string& name);
  void write_phase();
  void sidecar_tick();
  void begin_save(TriggerCause cause, const std::string& pod, const std::string& detail, const std::string& id,
                  bool go_on);
  void finish_save();
  void sync_sidecars();
  void volcano_event(const std::string& task, const std::string& event, std::optional<std::int64_t> exit_code,
                     std::int64_t pod_version);
  void volcano_tick();
  void kill_all_pods();
  void operator_tick();
  void kill_operator();
  Observation observe() const;
  bool perform(const Action& action);

  WallTime now_;
  WallTime started_;
  std::uint64_t next_uid_ = 1;
  std::uint64_t next_version_ = 1;
  std::shared_ptr<Job> job_;
  std::map<std::string, Pod> pods_;           // by name, as the API server has them
  std::map<std::string, Process> processes_;  // by pod uid
  std::map<std::string, Breakpoint> breakpoints_;

  // Volcano
  std::optional<JobPhase> phase_to_write_;

  // training
  std::uint64_t attempt_ = 0;
  ReportedRestore durable_;  // the newest checkpoint, as its manifest tells the next attempt
  std::optional<Save> save_;
  std::vector<ReportedBreakpoint> reported_;  // of the attempt
  SaveMode save_mode_ = SaveMode::works;
  bool crash_loop_ = false;
  bool crash_before_open_ = false;
  bool quick_ = false;
  bool volcano_marks_ = false;

  // operator
  std::unique_ptr<SidecarDirectory> directory_;
  bool webhook_ = true;
  WallTime webhook_since_{};
  bool operator_up_ = false;
  WallTime operator_started_{};
  bool certificate_ensured_ = false;
  std::set<std::string> events_recorded_;
  std::vector<GonePod> gone_pods_;
  std::set<std::string> event_names_;  // what the API server has
  std::optional<std::uint32_t> crash_after_;
  std::optional<WallTime> operator_back_;
  std::uint32_t actions_performed_ = 0;
  std::map<std::string, int> status_writes_;
  std::map<std::string, int> deletes_;
  std::string fault_found_;
  std::vector<std::string> orders_;
  std::set<std::string> orders_heard_;
  std::vector<std::string> log_;
};

}  // namespace rekindle::op::scenario
