#include "operator/reconcile/sidecar_directory.h"

#include <algorithm>
#include <utility>

#include "common/base/format.h"
#include "common/base/json_fields.h"
#include "operator/faults/volcano_restart.h"

namespace rekindle::op {
namespace {

using std::chrono::minutes;

constexpr std::string_view kScheme = "rekindle://";
constexpr minutes kGoneKept{15};  // what a pod reported last outlives it for that long

SyncOutcome refusal(int status, std::string_view code, std::string message) {
  return {.status = status, .body = dump_json({{"error", {{"code", code}, {"message", std::move(message)}}}})};
}

bool is_stale(const DirectoryView& view, const Pod& pod) {
  return is_deleting(pod) || is_finished(pod) || ended_by_restart(*view.job, pod) ||
         std::ranges::find(view.stale_pod_uids, pod.uid) != view.stale_pod_uids.end();
}

bool same_phase(const SyncReport& left, const SyncReport& right) {
  return left.phase == right.phase && left.unknown_phase == right.unknown_phase;
}

using Reports = std::map<std::string, SidecarReport, std::less<>>;

// Every pod is there and none of a stale attempt is. `given` are the pods that may start already.
bool whole_job_is_there(const DirectoryView& view, const Reports& reports, const std::set<std::string>& given,
                        std::set<std::string>& present) {
  const std::int64_t expected = pods_expected(*view.job);
  std::set<std::int64_t> ordinals;
  for (const auto& pod : view.pods) {
    if (is_stale(view, *pod)) {
      if (!is_finished(*pod)) return false;
      continue;
    }
    const std::optional<std::int64_t> ordinal = ordinal_of(*view.job, pod->task, pod->index);
    if (!ordinal || !reports.contains(pod->uid)) continue;
    ordinals.insert(*ordinal);
    present.insert(pod->uid);
  }
  if (view.hold_start || expected == 0 || static_cast<std::int64_t>(ordinals.size()) < expected) return false;
  if (present == given) return true;
  for (const auto& pod : view.pods) {
    if (!present.contains(pod->uid)) continue;
    // Whoever is beyond its restore has got there with all members of its attempt: the ones that
    // wait are none.
    const SidecarPhase phase = reports.at(pod->uid).sync.phase;
    if (phase != SidecarPhase::waiting && phase != SidecarPhase::restoring) return false;
  }
  return true;
}

std::vector<SyncPod> pods_of(const DirectoryView& view, const Reports& reports) {
  std::map<std::pair<std::int64_t, std::string>, SyncPod> ordered;
  for (const auto& pod : view.pods) {
    const auto report = reports.find(pod->uid);
    const bool called = report != reports.end();
    std::optional<std::int64_t> ordinal = ordinal_of(*view.job, pod->task, pod->index);
    // scaled down, and still there
    if (!ordinal && called) ordinal = report->second.sender.ordinal;
    if (!ordinal) continue;
    SyncPod entry{.name = pod->name,
                  .uid = pod->uid,
                  .ordinal = static_cast<std::uint64_t>(*ordinal),
                  .address = {},
                  .stale = is_stale(view, *pod)};
    if (called) {
      entry.address = report->second.sender.address;
      entry.port = report->second.sender.port;
    }
    ordered.insert_or_assign({*ordinal, pod->uid}, std::move(entry));
  }
  std::vector<SyncPod> pods;
  for (auto& [place, pod] : ordered) pods.push_back(std::move(pod));
  return pods;
}

}  // namespace

std::optional<SidecarIdentity> parse_sidecar_identity(std::string_view uri) {
  if (!uri.starts_with(kScheme)) return std::nullopt;
  uri.remove_prefix(kScheme.size());
  const std::size_t slash = uri.find('/');
  if (slash == std::string_view::npos || slash == 0) return std::nullopt;
  const std::string_view uid = uri.substr(slash + 1);
  if (uid.empty() || uid.find_first_of("/?#") != std::string_view::npos) return std::nullopt;
  return SidecarIdentity{std::string(uri.substr(0, slash)), std::string(uid)};
}

SidecarDirectory::SidecarDirectory(WallTime started)
    : next_version_(static_cast<std::uint64_t>(std::max<std::int64_t>(started.time_since_epoch().count(), 1))) {}

void SidecarDirectory::set_ready() { ready_ = true; }

SyncOutcome SidecarDirectory::receive(const SidecarIdentity& identity, std::string_view body, WallTime now) {
  Result<SyncRequest> request = decode_sync_request(body);
  if (!request) return refusal(400, "invalid_input", request.error().message);
  if (!ready_) return refusal(503, "unavailable", "the operator has just started and does not know the jobs yet");
  const auto found = entries_.find(identity);
  if (found == entries_.end()) {
    return refusal(
        404, "not_found",
        format("there is no protected job with uid {} in namespace {}", identity.job_uid, identity.namespace_name));
  }
  Entry& entry = found->second;
  const SyncSender& sender = request->sender;
  const auto pod = std::ranges::find_if(entry.view.pods, [&](const auto& each) { return each->uid == sender.pod_uid; });
  if (pod == entry.view.pods.end()) {
    return refusal(503, "unavailable",
                   "pod " + sender.pod_name + " with uid " + sender.pod_uid + " is not known yet as a pod of this job");
  }
  if ((*pod)->name != sender.pod_name) {
    return refusal(403, "refused", "the pod with uid " + sender.pod_uid + " has another name");
  }

  SidecarReport report{.sender = sender, .sync = {}, .received = now, .phase_since = now, .attempt_since = now};
  const auto before = entry.reports.find(sender.pod_uid);
  if (request->report) {
    report.sync = std::move(*request->report);
  } else if (before != entry.reports.end()) {
    report.sync = before->second.sync;
  }
  bool changed = true;
  if (before != entry.reports.end()) {
    const SidecarReport& previous = before->second;
    if (same_phase(previous.sync, report.sync)) report.phase_since = previous.phase_since;
    if (previous.sync.attempt == report.sync.attempt) report.attempt_since = previous.attempt_since;
    changed = previous.sender != report.sender || previous.sync != report.sync;
  }
  SyncOutcome outcome{
      .seen = request->seen, .wait = request->wait, .report_changed = changed, .job_name = entry.view.job->name};
  entry.reports.insert_or_assign(sender.pod_uid, std::move(report));
  refresh(identity, entry);
  if (entry.answer.version == outcome.seen && outcome.wait.count() > 0) {
    outcome.hold = true;
  } else {
    outcome.body = answer(identity).body;
  }
  return outcome;
}

SyncOutcome SidecarDirectory::answer(const SidecarIdentity& identity) const {
  const auto found = entries_.find(identity);
  if (found == entries_.end()) {
    return refusal(404, "not_found", format("the job with uid {} is gone", identity.job_uid));
  }
  const Entry& entry = found->second;
  SyncAnswer answer = entry.answer;
  answer.orders = entry.view.orders;
  return {.body = encode_sync_answer(answer), .job_name = entry.view.job->name};
}

std::uint64_t SidecarDirectory::version_of(const SidecarIdentity& identity) const {
  const auto found = entries_.find(identity);
  return found == entries_.end() ? 0 : found->second.answer.version;
}

void SidecarDirectory::update(const DirectoryView& view, WallTime now) {
  if (view.job == nullptr) return;
  const SidecarIdentity identity{view.job->namespace_name, view.job->uid};
  if (!is_protected(*view.job)) {
    forget(identity);
    return;
  }
  Entry& entry = entries_[identity];
  entry.view = view;
  std::set<std::string> present;
  for (const auto& pod : view.pods) present.insert(pod->uid);
  for (const auto& [uid, report] : entry.reports) {
    if (present.contains(uid)) {
      entry.gone_since.erase(uid);
    } else {
      entry.gone_since.try_emplace(uid, now);
    }
  }
  std::erase_if(entry.gone_since, [&](const auto& gone) {
    if (now < gone.second + kGoneKept) return false;
    entry.reports.erase(gone.first);
    return true;
  });
  refresh(identity, entry);
}

void SidecarDirectory::forget(const SidecarIdentity& identity) { entries_.erase(identity); }

std::vector<SidecarReport> SidecarDirectory::reports_of(const SidecarIdentity& identity) const {
  std::vector<SidecarReport> reports;
  const auto found = entries_.find(identity);
  if (found == entries_.end()) return reports;
  reports.reserve(found->second.reports.size());
  for (const auto& [uid, report] : found->second.reports) reports.push_back(report);
  return reports;
}

void SidecarDirectory::refresh(const SidecarIdentity& identity, Entry& entry) {
  const DirectoryView& view = entry.view;
  std::set<std::string> present;
  const bool go = whole_job_is_there(view, entry.reports, entry.start_allowed_to, present);
  if (go) entry.start_allowed_to = std::move(present);
  SyncAnswer answer{.version = entry.answer.version,
                    .job_namespace = identity.namespace_name,
                    .job_name = view.job->name,
                    .job_uid = identity.job_uid,
                    .pods_expected = static_cast<std::uint64_t>(pods_expected(*view.job)),
                    .pods = pods_of(view, entry.reports),
                    .start_allowed = go,
                    .orders = view.orders};
  for (SyncOrder& order : answer.orders) order.seconds_left = 0;
  if (answer == entry.answer) return;
  answer.version = ++next_version_;
  entry.answer = std::move(answer);
}

}  // namespace rekindle::op
