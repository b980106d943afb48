#include "tests/scenario/operator/world.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "common/base/format.h"
#include "common/base/json_fields.h"
#include "operator/model/names.h"

namespace rekindle::op::scenario {
namespace {

using std::chrono::seconds;

constexpr seconds kSaveTakes{1};
constexpr std::uint64_t kStepsPerTick = 10;

}  // namespace

World::World() : now_(*parse_wall_time("2026-11-21T10:00:00Z")), started_(now_) { start_operator(); }

void World::log(const std::string& line) {
  log_.push_back(format("t={} {}", std::chrono::duration_cast<seconds>(now_ - started_).count(), line));
}

std::vector<std::string> World::take_log() { return std::exchange(log_, {}); }

// --- people

void World::create_job(const std::string& name, std::int64_t workers, std::vector<PolicyRule> policies,
                       const std::string& label, bool protected_at_create, std::int64_t max_retry) {
  job_ = std::make_shared<Job>();
  job_->namespace_name = "team-a";
  job_->name = name;
  job_->uid = format("job{}", next_uid_++);
  job_->created = now_;
  job_->settings.scheduling = label;
  job_->policies = std::move(policies);
  job_->max_retry = max_retry;
  job_->tasks = {{.name = "worker", .replicas = workers, .is_protected = protected_at_create}};
  certificate_ensured_ = false;
}

void World::label_job(const std::string& value) {
  job_ = std::make_shared<Job>(*job_);
  job_->settings.scheduling = value;
}

Pod* World::find_pod(const std::string& name) {
  const auto found = pods_.find(name);
  return found == pods_.end() ? nullptr : &found->second;
}

void World::begin_delete(Pod& pod, const std::string& disruption) {
  if (is_deleting(pod)) return;
  const bool at_once = is_finished(pod) || pod.phase == PodPhase::pending;
  pod.deletion_grace_seconds = at_once ? 0 : pod.grace_seconds;
  pod.deletion_time = now_ + seconds(*pod.deletion_grace_seconds);
  if (!disruption.empty()) pod.disruption = disruption;
}

void World::evict(const std::string& pod, const std::string& reason) { begin_delete(*find_pod(pod), reason); }
void World::delete_pod(const std::string& pod) { begin_delete(*find_pod(pod), ""); }

void World::remove_pod_at_once(const std::string& name) { remove_pod(name); }

void World::remove_pod(const std::string& name) {
  const Pod pod = *find_pod(name);
  if (operator_up_ && pod.is_protected) gone_pods_.push_back({std::make_shared<Pod>(pod), job_, now_});
  pods_.erase(name);
  processes_.erase(pod.uid);
  volcano_event(pod.task, "PodEvicted", std::nullopt, pod.job_version);
}

void World::kill_container(const std::string& name, std::int32_t exit_code, const std::string& reason) {
  Pod& pod = *find_pod(name);
  pod.ended.push_back({.name = "main", .reason = reason, .exit_code = exit_code, .finished = now_});
  Process& process = processes_[pod.uid];
  process.dead = true;
  if (process.report.attempt == attempt_ && attempt_ != 0) {
    begin_save(TriggerCause::rank_died, name, "a process of pod " + name + " died", "", false);
  } else {
    process.ends = now_ + seconds(1);
  }
}

void World::kill_rank(const std::string& name) {
  processes_[find_pod(name)->uid].dead = true;
  begin_save(TriggerCause::rank_died, name, "a process of pod " + name + " died", "", false);
}

void World::fail_collective(bool rebuild) {
  const std::string pod = pods_.begin()->first;
  begin_save(TriggerCause::collective_failed, pod, "rank 0: ring broken", "", rebuild);
  if (save_) save_->rebuild = rebuild;
}

void World::finish_programs() {
  for (auto& [name, pod] : pods_) {
    pod.ended.push_back({.name = "main", .reason = "Completed", .exit_code = 0, .finished = now_});
    pod.phase = PodPhase::succeeded;
    processes_[pod.uid].report.phase = SidecarPhase::finished;
  }
}

void World::suspend() {
  kill_all_pods();
  phase_to_write_ = JobPhase::aborting;
}

void World::resume() {
  job_ = std::make_shared<Job>(*job_);
  job_->phase = JobPhase::restarting;
  ++job_->retry_count;
}

void World::count_a_kill() {
  auto next = std::make_shared<Job>(*job_);
  ++next->version;
  job_ = next;
}

void World::terminate() {
  kill_all_pods();
  phase_to_write_ = JobPhase::terminating;
}

void World::scale(std::int64_t workers) {
  job_ = std::make_shared<Job>(*job_);
  job_->tasks[0].replicas = workers;
}

void World::delete_job() {
  kill_all_pods();
  job_ = nullptr;
  breakpoints_.clear();  // the garbage collector takes them with their owner
}

void World::ask_for_breakpoint(const std::string& name, const std::string& job_uid) {
  Breakpoint asked{.namespace_name = "team-a",
                   .name = name,
                   .uid = format("bp{}", next_uid_++),
                   .resource_version = std::to_string(next_version_++),
                   .generation = 1,
                   .created = now_};
  asked.spec.job_name = "digits";
  asked.spec.job_uid = job_uid;
  breakpoints_[name] = asked;
}

void World::set_webhook(bool answers) {
  webhook_ = answers;
  if (answers) webhook_since_ = now_;
}

// --- Volcano: its own words, see reference of releases 1.9 to 1.15

void World::kill_all_pods() {
  for (auto& [name, pod] : pods_) {
    if (volcano_marks_ && !is_deleting(pod)) pod.out_of_sync = true;
    begin_delete(pod, "");
  }
}

void World::volcano_event(const std::string& task, const std::string& event, std::optional<std::int64_t> exit_code,
                          std::int64_t pod_version) {
  // a request of discarded pods only syncs
  if (job_ == nullptr || pod_version < job_->version) return;
  if (job_->phase != JobPhase::running && job_->phase != JobPhase::pending) return;
  std::string action = "SyncJob";
  const auto look = [&](const std::vector<PolicyRule>& rules) {
    for (const PolicyRule& rule : rules) {
      const bool named = std::ranges::any_of(rule.events, [&](const std::string& e) { return e == event || e == "*"; });
      if (named || (rule.exit_code && exit_code && *rule.exit_code == *exit_code)) {
        action = rule.action;
        return true;
      }
    }
    return false;
  };
  for (const JobTask& each : job_->tasks) {
    if (each.name == task && look(each.policies)) break;
  }
  if (action == "SyncJob") look(job_->policies);
  if (action == "SyncJob") return;
  log(format("volcano {} -> {}", event, action));
  kill_all_pods();  // before it writes its status
  if (action == "RestartJob") {
    phase_to_write_ = JobPhase::restarting;
  } else if (action == "TerminateJob") {
    phase_to_write_ = JobPhase::terminating;
  } else {
    phase_to_write_ = JobPhase::aborting;
  }
}

void World::write_phase() {
  if (job_ == nullptr || !phase_to_write_) return;
  job_ = std::make_shared<Job>(*job_);
  job_->phase = *phase_to_write_;
  job_->phase_since = now_;
  ++job_->version;
  if (job_->phase == JobPhase::restarting) ++job_->retry_count;
  phase_to_write_.reset();
}

void World::volcano_tick() {
  if (job_ == nullptr) return;
  const bool wrote = phase_to_write_.has_value();
  write_phase();
  auto next = std::make_shared<Job>(*job_);
  if (wrote) {
    // The rest comes with the next look.
  } else if (next->phase == JobPhase::restarting && next->retry_count >= next->max_retry) {
    next->phase = JobPhase::failed;
  } else if (pods_.empty() && next->phase == JobPhase::restarting) {
    next->phase = JobPhase::pending;
  } else if (pods_.empty() && next->phase == JobPhase::aborting) {
    next->phase = JobPhase::aborted;
  } else if (pods_.empty() && next->phase == JobPhase::terminating) {
    next->phase = JobPhase::terminated;
  }
  const JobTask& task = next->tasks[0];
  if (next->phase == JobPhase::pending || next->phase == JobPhase::running) {
    std::int64_t running = 0;
    std::int64_t succeeded = 0;
    for (auto& [name, pod] : pods_) {
      if (pod.index >= task.replicas) begin_delete(pod, "");
      running += pod.phase == PodPhase::running ? 1 : 0;
      succeeded += pod.phase == PodPhase::succeeded ? 1 : 0;
    }
    if (running == task.replicas) next->phase = JobPhase::running;
    if (succeeded == task.replicas) next->phase = JobPhase::completed;
    for (std::int32_t i = 0; i < task.replicas && next->phase != JobPhase::completed; ++i) {
      const std::string name = format("{}-worker-{}", next->name, i);
      if (pods_.contains(name)) continue;
      Pod pod{.namespace_name = next->namespace_name,
              .name = name,
              .uid = format("u{}", next_uid_++),
              .job_name = next->name,
              .job_uid = next->uid,
              .task = "worker",
              .job_version = next->version,
              .grace_seconds = 75,
              .created = now_,
              .index = i,
              .is_protected = task.is_protected};
      pod.injected = task.is_protected && webhook_;
      pod.gated = task.is_protected && !webhook_;
      log(format("volcano creates {} {}{}", name, pod.uid, pod.gated ? " gated" : ""));
      pods_[name] = std::move(pod);
    }
  }
  if (next->phase != job_->phase) next->phase_since = now_;
  job_ = next;
}

// --- kubelet and sidecars

void World::kubelet_tick() {
  std::vector<std::string> gone;
  bool all_schedulable = job_ != nullptr && static_cast<std::int64_t>(pods_.size()) >= job_->tasks[0].replicas;
  for (const auto& [name, pod] : pods_) all_schedulable = all_schedulable && !pod.gated && !is_deleting(pod);
  for (auto& [name, pod] : pods_) {
    Process& process = processes_[pod.uid];
    const bool lives = pod.phase == PodPhase::running;
    if (pod.phase == PodPhase::pending && all_schedulable) pod.phase = PodPhase::running;
    if (is_deleting(pod) && lives && !process.ends) {
      const bool member = process.report.attempt == attempt_ && attempt_ != 0;
      if (member && !process.dead && save_mode_ != SaveMode::silent) {
        begin_save(TriggerCause::hook, name, "pod " + name + " is being terminated", "", false);
      } else {
        process.ends = now_;
      }
    }
    if (process.ends && now_ >= *process.ends && lives) {
      if (pod.ended.empty())
        pod.ended.push_back({.name = "main", .reason = "Error", .exit_code = 143, .finished = now_});
      pod.phase = PodPhase::failed;
      volcano_event(pod.task, "PodFailed", pod.ended.front().exit_code, pod.job_version);
    } else if (is_deleting(pod) && !lives && pod.phase != PodPhase::pending) {
      gone.push_back(name);
    } else if (is_deleting(pod) && pod.phase == PodPhase::pending) {
      gone.push_back(name);
    }
  }
  for (const std::string& name : gone) remove_pod(name);
}

void World::begin_save(TriggerCause cause, const std::string& pod, const std::string& detail, const std::string& id,
                       bool go_on) {
  if (save_) return;
  bool any = false;
  for (auto& [uid, process] : processes_) any = any || process.report.phase == SidecarPhase::training;
  if (!any) {
    // Already parked: the hook returns at once.
    for (auto& [name, each] : pods_) {
      Process& process = processes_[each.uid];
      if ((is_deleting(each) || process.dead) && !process.ends) process.ends = now_;
    }
    return;
  }
  if (save_mode_ == SaveMode::silent) return;
  save_ = Save{.id = id,
               .cause = cause,
               .pod = pod,
               .detail = detail,
               .done = quick_ ? now_ : now_ + kSaveTakes,
               .go_on = go_on};
  for (auto& [uid, process] : processes_) {
    if (process.report.phase == SidecarPhase::training) process.report.phase = SidecarPhase::saving;
  }
}

void World::finish_save() {
  if (!save_ || now_ < save_->done) return;
  std::uint64_t step = 0;
  for (auto& [uid, process] : processes_) {
    if (process.report.attempt == attempt_) step = std::max(step, process.report.step);
  }
  ReportedBreakpoint reported{.id = save_->id,
                              .term = reported_.size() + 1,
                              .cause = save_->cause,
                              .pod = save_->pod,
                              .detail = save_->detail,
                              .rebuild = save_->rebuild};
  if (save_mode_ == SaveMode::works) {
    reported.state = SaveState::durable;
    reported.step = step;
    reported.path = format("a{}-s{}-n{}", attempt_, step, reported.term);
    reported.manifest_hash = format("h{}", step);
    reported.bytes = 1258291;
    reported.ranks = processes_.size();
    reported.agreed_milliseconds = 6;
    reported.durable_milliseconds = 31;
    durable_ = {.step = step,
                .path = reported.path,
                .manifest_hash = reported.manifest_hash,
                .bytes = reported.bytes,
                .ranks = RankCounts{.expected = processes_.size(), .live = reported.ranks},
                .agreed_milliseconds = reported.agreed_milliseconds};
  } else {
    reported.state = SaveState::failed;
    reported.message = "the checkpoint folder is full (ENOSPC): free some space";
  }
  reported_.push_back(reported);
  for (auto& [name, pod] : pods_) {
    Process& process = processes_[pod.uid];
    if (process.report.phase != SidecarPhase::saving) continue;
    process.report.phase = save_->go_on ? SidecarPhase::training : SidecarPhase::parked;
    if (!save_->go_on && (is_deleting(pod) || !pod.ended.empty())) process.ends = now_;
  }
  save_.reset();
}

void World::sidecar_tick() {
  finish_save();
  for (auto& [name, pod] : pods_) {
    Process& process = processes_[pod.uid];
    if (pod.phase != PodPhase::running || !pod.injected || process.dead) continue;
    if (!process.started) {
      process.started = true;
      process.report = {};
    }
    SyncReport& report = process.report;
    if (crash_before_open_ && report.attempt == 0) kill_container(name, 1, "Error");
    if (report.phase == SidecarPhase::training) {
      report.step += kStepsPerTick;
      if (report.restored && report.restored->first_step == 0) report.restored->first_step = report.restored->step + 1;
      if (crash_loop_) {
        report.step -= kStepsPerTick;
        kill_container(name, 1, "Error");
        break;
      }
    }
  }
}

void World::sync_sidecars() {
  if (!operator_up_ || job_ == nullptr || !is_protected(*job_)) return;
  const SidecarIdentity identity{job_->namespace_name, job_->uid};
  std::vector<Process*> waiting;
  bool go = false;
  for (auto& [name, pod] : pods_) {
    Process& process = processes_[pod.uid];
    if (!process.started || is_finished(pod)) continue;
    const SyncReport& report = process.report;
    SyncRequest request{.sender = {.pod_name = name,
                                   .pod_uid = pod.uid,
                                   .address = "10.0.0.1",
                                   .port = 8471,
                                   .ordinal = static_cast<std::uint32_t>(pod.index)},
                        .wait = std::chrono::seconds(0),
                        .report = report};
    if (report.attempt == attempt_) request.report->breakpoints = reported_;
    const SyncOutcome outcome = directory_->receive(identity, encode_sync_request(request), now_);
    if (outcome.status != 200) continue;
    const SyncAnswer answer = *decode_sync_answer(outcome.body);
    go = answer.start_allowed;
    if (report.attempt == 0 && report.phase == SidecarPhase::waiting && !process.dead) waiting.push_back(&process);
    for (const SyncOrder& order : answer.orders) {
      const std::string& id = order.breakpoint;
      const bool done = std::ranges::any_of(reported_, [&](const ReportedBreakpoint& each) { return each.id == id; });
      if (!done && (!save_ || save_->id != id) && report.attempt == attempt_ &&
          report.phase == SidecarPhase::training) {
        if (orders_heard_.insert(id).second) log("sidecars save on order of " + id);
        begin_save(order.cause, "", order.detail, id, order.after == AfterBreakpoint::go_on);
      }
    }
  }
  if (!go || waiting.empty()) return;
  // The last answer counts for all: they poll on, and get the same.
  if (static_cast<std::int64_t>(waiting.size()) != job_->tasks[0].replicas) return;
  ++attempt_;
  reported_.clear();
  log(format("attempt {} begins after step {}", attempt_, durable_.step));
  for (Process* process : waiting) {
    process->report.attempt = attempt_;
    process->report.phase = SidecarPhase::training;
    process->report.step = durable_.step;
    process->report.ranks = {.expected = waiting.size(), .live = waiting.size()};
    process->report.restored = durable_;
    process->report.restored->attempt = attempt_;
  }
}

// --- operator

void World::start_operator() {
  operator_up_ = true;
  operator_started_ = now_;
  directory_ = std::make_unique<SidecarDirectory>(now_);
  events_recorded_.clear();
  gone_pods_.clear();
  certificate_ensured_ = false;
  operator_back_.reset();
}

void World::stop_operator() {
  kill_operator();
  operator_back_.reset();
}

// What it has watched goes with it: pods that go while it is away it never hears of, and what is
// there when it is back it finds in its first list.
void World::kill_operator() {
  operator_up_ = false;
  directory_.reset();
  gone_pods_.clear();
}

Observation World::observe() const {
  Observation seen{.namespace_name = "team-a", .job_name = "digits"};
  if (job_ != nullptr) {
    seen.job = job_;
    seen.job_name = job_->name;
    seen.reports = directory_->reports_of({job_->namespace_name, job_->uid});
  }
  for (const auto& [name, pod] : pods_) {
    if (pod.is_protected) seen.pods.push_back(std::make_shared<Pod>(pod));
  }
  seen.gone_pods = gone_pods_;
  for (const auto& [name, each] : breakpoints_) seen.breakpoints.push_back(std::make_shared<Breakpoint>(each));
  seen.webhook = {.answers = webhook_, .answering_since = webhook_ ? std::optional(webhook_since_) : std::nullopt};
  seen.certificate_ensured = certificate_ensured_;
  seen.events_recorded = events_recorded_;
  return seen;
}

bool World::perform(const Action& action) {
  if (const auto* create = std::get_if<CreateBreakpoint>(&action)) {
    if (breakpoints_.contains(create->object.name)) return true;
    // as the API server would keep it
    Breakpoint made = *breakpoint_from_json(breakpoint_to_json(create->object));
    made.uid = format("bp{}", next_uid_++);
    made.resource_version = std::to_string(next_version_++);
    made.generation = 1;
    made.created = now_;
    breakpoints_[made.name] = made;
  } else if (const auto* write = std::get_if<WriteBreakpointStatus>(&action)) {
    const auto found = breakpoints_.find(write->name);
    if (found == breakpoints_.end() || found->second.resource_version != write->resource_version) return false;
    Json object = breakpoint_to_json(found->second);
    object["status"] = breakpoint_status_to_json(write->status, write->generation);
    if (is_final(found->second.status.state)) fault_found_ = "a final status was written again";
    found->second.status = breakpoint_from_json(object)->status;
    found->second.resource_version = std::to_string(next_version_++);
    if (++status_writes_[write->uid] > 4) fault_found_ = "more than four status writes of " + write->name;
  } else if (const auto* adopt = std::get_if<AdoptBreakpoint>(&action)) {
    breakpoints_[adopt->name].owner_uid = adopt->job_uid;
    breakpoints_[adopt->name].resource_version = std::to_string(next_version_++);
  } else if (const auto* remove = std::get_if<DeletePod>(&action)) {
    Pod* pod = find_pod(remove->name);
    if (pod == nullptr || pod->uid != remove->uid) return true;
    if (++deletes_[remove->uid] > 1) fault_found_ = format("pod {} deleted twice", remove->uid);
    if (!pod->gated) {
      const bool intended = std::ranges::any_of(breakpoints_, [&](const auto& each) {
        return std::ranges::any_of(each.second.spec.pods, [&](const PodRef& ref) { return ref.uid == remove->uid; });
      });
      if (!intended &&
          job_->tasks[0].replicas ==
              static_cast<std::int64_t>(processes_[remove->uid].report.ranks.value_or(RankCounts{}).expected)) {
        fault_found_ = "pod " + remove->uid + " deleted without an intent";
      }
    }
    begin_delete(*pod, "");
  } else if (const auto* drop = std::get_if<DeleteBreakpoint>(&action)) {
    breakpoints_.erase(drop->name);
  } else if (std::holds_alternative<CreateCertificateSecret>(action)) {
    certificate_ensured_ = true;
  } else if (const auto* annotate = std::get_if<AnnotateLastCheckpoint>(&action)) {
    job_ = std::make_shared<Job>(*job_);
    job_->last_step = std::to_string(annotate->step);
    job_->last_time = annotate->time;
  } else if (const auto* event = std::get_if<RecordEvent>(&action)) {
    if (!event->once_key.empty()) {
      events_recorded_.insert(event->once_key);
      if (!event_names_.insert(event->once_key).second) return true;
    }
  }
  log("> " + to_text(action));
  return true;
}

void World::operator_tick() {
  if (!operator_up_) {
    if (operator_back_ && now_ >= *operator_back_) {
      log("operator starts");
      start_operator();
    } else {
      return;
    }
  }
  const PlanLimits limits;
  // Of pods that go unheard, one is recorded in each pass.
  const int passes_max = 8 + static_cast<int>(job_ != nullptr ? job_->tasks[0].replicas : 0);
  for (int pass = 0; pass < passes_max; ++pass) {
    Observation seen = observe();
    seen.operator_started = operator_started_;
    const Plan plan = reconcile(seen, limits, now_);
    DirectoryView view{.job = seen.job,
                       .pods = seen.pods,
                       .orders = plan.orders,
                       .stale_pod_uids = plan.stale_pod_uids,
                       .hold_start = plan.hold_start};
    directory_->update(view, now_);
    directory_->set_ready();
    std::vector<std::string> orders;
    for (const SyncOrder& order : plan.orders)
      orders.push_back(
          format("order {} cause={} after={}", order.breakpoint, to_string(order.cause), to_string(order.after)));
    if (orders != orders_) {
      for (const std::string& order : orders) log("> " + order);
      orders_ = orders;
    }
    if (plan.actions.empty()) return;
    for (const Action& action : plan.actions) {
      if (!perform(action)) break;
      ++actions_performed_;
      if (crash_after_ && --*crash_after_ == 0) {
        crash_after_.reset();
        log("operator is killed");
        kill_operator();
        operator_back_ = now_ + seconds(5);
        return;
      }
    }
  }
  fault_found_ = "the operator does not come to rest: " + (log_.empty() ? std::string() : log_.back());
}

bool World::crash_operator_now() {
  if (!operator_up_) return false;
  kill_operator();
  operator_back_ = now_ + seconds(5);
  return true;
}

void World::tick() {
  now_ += seconds(1);
  write_phase();
  kubelet_tick();
  sidecar_tick();
  if (quick_) {  // its container ends, and it goes
    kubelet_tick();
    write_phase();  // Volcano answers the failed container before the pod is gone
    kubelet_tick();
  }
  volcano_tick();
  sync_sidecars();
  operator_tick();
}

// --- what can be seen of the world

std::vector<std::string> World::status() const {
  std::vector<std::string> lines;
  if (job_ == nullptr) {
    lines.push_back("no job");
  } else {
    lines.push_back(format("job {} {} retries={}{}", job_->name, to_string(job_->phase), job_->retry_count,
                           job_->last_step.empty() ? "" : " last_checkpoint=" + job_->last_step));
  }
  for (const auto& [name, pod] : pods_) {
    const auto process = processes_.find(pod.uid);
    std::string line = format("pod {} {}{}{}", name, to_string(pod.phase), is_deleting(pod) ? " deleting" : "",
                              pod.gated ? " gated" : "");
    if (process != processes_.end() && process->second.started) {
      line += format(" {} attempt={}", to_string(process->second.report.phase), process->second.report.attempt);
    }
    lines.push_back(line);
  }
  for (const auto& [name, each] : breakpoints_) {
    lines.push_back(format("breakpoint {} {} {} step={} first_step={}: {}", name, to_string(each.spec.trigger),
                           to_string(each.status.state), each.status.step, each.status.first_step,
                           each.status.message));
  }
  return lines;
}

std::vector<std::string> World::records() const {
  std::vector<std::string> lines;
  for (const auto& [name, each] : breakpoints_) {
    const BreakpointStatus& status = each.status;
    const auto time = [](const std::optional<std::uint64_t>& milliseconds) {
      return milliseconds ? human_milliseconds(*milliseconds) : "unknown";
    };
    lines.push_back(format("breakpoint {} attempt={} step={} ranks={}/{} bytes={} path={} hash={} agreed={} durable={}",
                           name, status.attempt, status.step, status.ranks_saved, status.ranks_expected, status.bytes,
                           status.path, status.manifest_hash, time(status.agreed_milliseconds),
                           time(status.durable_milliseconds)));
  }
  return lines;
}

std::string World::outcome() const {
  std::string text = job_ == nullptr ? "no job" : format("{} retries={}", to_string(job_->phase), job_->retry_count);
  std::multiset<std::string> parts;
  for (const auto& [name, pod] : pods_) {
    const auto process = processes_.find(pod.uid);
    parts.insert(format("pod {} {} attempt={}", name, to_string(pod.phase),
                        process == processes_.end() ? 0 : process->second.report.attempt));
  }
  for (const auto& [name, each] : breakpoints_) {
    // Steps move with the time that things take; what has to hold is that none was lost.
    const BreakpointStatus& status = each.status;
    const Condition* durable = find_condition(status, names::kDurable);
    std::string part = format("breakpoint {} {} durable={}", to_string(each.spec.trigger), to_string(status.state),
                              durable == nullptr ? "?" : durable->status);
    if (status.state == BreakpointState::restored && durable != nullptr && durable->status == "True") {
      part += format(" steps_lost={}", status.step + 1 - status.first_step);
      part += format(" ranks={}/{} bytes={} agreed={}{}", status.ranks_saved, status.ranks_expected, status.bytes,
                     status.agreed_milliseconds.value_or(0), status.manifest_hash.empty() ? " no hash" : "");
    }
    parts.insert(part);
  }
  for (const std::string& part : parts) text += "\n" + part;
  return text;
}

std::string World::cluster() const {
  std::string text = job_ == nullptr ? "no job" : std::string(to_string(job_->phase));
  for (const auto& [name, pod] : pods_) {
    const auto process = processes_.find(pod.uid);
    text += format("\npod {} {}", name, to_string(pod.phase));
    if (process != processes_.end() && process->second.started)
      text += " " + std::string(to_string(process->second.report.phase));
  }
  for (const auto& [name, each] : breakpoints_) {
    if (!is_final(each.status.state)) text += "\nopen breakpoint " + name;
  }
  return text;
}

std::string World::fault_found() const { return fault_found_; }

}  // namespace rekindle::op::scenario
