#include "operator/io/action_runner.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>

#include "common/base/format.h"
#include "common/system/clock.h"
#include "common/system/log.h"
#include "operator/io/api_client.h"
#include "operator/kube/requests.h"
#include "operator/model/names.h"

namespace rekindle::op {
namespace {

// Errors that mean another process (perhaps this one, before a restart) has done it already.
Status unless(const Result<Json>& answer, std::initializer_list<ErrorCode> already_so) {
  if (answer) return {};
  for (const ErrorCode code : already_so) {
    if (answer.error().code == code) return {};
  }
  return std::unexpected(answer.error());
}

// A name that a repeat of the same event finds taken, or one that is new each time.
std::string event_name(const RecordEvent& action) {
  static std::atomic<std::uint64_t> counter{0};
  const std::string key = action.once_key.empty() ? to_micro_text(wall_now()) + std::to_string(counter.fetch_add(1)) +
                                                        action.regarding.uid + action.reason
                                                  : action.once_key + action.regarding.uid;
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016zx", std::hash<std::string>{}(key));
  return format("{}.{}", action.regarding.name.substr(0, 200), hash);
}

}  // namespace

ActionRunner::ActionRunner(KubeTransport& transport, const CertificateStore& certificates, std::string instance)
    : transport_(transport), certificates_(certificates), instance_(instance.substr(0, 128)) {}

ActionsDone ActionRunner::run(const ObjectKey& job, const std::string& job_uid, const std::vector<Action>& actions) {
  ActionsDone done{.job = job, .job_uid = job_uid};
  for (const Action& action : actions) {
    const Status status = std::visit([&](const auto& one) { return perform(one, done); }, action);
    if (!status) {
      done.error = with_context(status.error(), to_text(action));
      break;
    }
    log_info("performed", {{"job", to_text(job)}, {"action", to_text(action)}});
  }
  return done;
}

Status ActionRunner::perform(const CreateBreakpoint& action, ActionsDone& done) {
  const Breakpoint& object = action.object;
  const Status status = unless(
      call_api(transport_, create_request(kBreakpoints, object.namespace_name, breakpoint_to_json(object)), "creating"),
      {ErrorCode::already_exists});
  if (status) {
    done.expectations.push_back({Expectation::Kind::breakpoint_there, {object.namespace_name, object.name}, "", ""});
  }
  return status;
}

Status ActionRunner::perform(const WriteBreakpointStatus& action, ActionsDone& done) {
  const ObjectKey key{action.namespace_name, action.name};
  const Json patch{{"metadata", {{"uid", action.uid}, {"resourceVersion", action.resource_version}}},
                   {"status", breakpoint_status_to_json(action.status, action.generation)}};
  const Result<Json> answer =
      call_api(transport_, merge_patch_request(kBreakpoints, key, patch, Subresource::status), "writing its status");
  if (!answer) return std::unexpected(answer.error());
  done.expectations.push_back({Expectation::Kind::breakpoint_changed, key, action.uid, action.resource_version});
  return {};
}

Status ActionRunner::perform(const AdoptBreakpoint& action, ActionsDone& done) {
  const ObjectKey key{action.namespace_name, action.name};
  const Json patch{{"metadata",
                    {{"uid", action.uid},
                     {"resourceVersion", action.resource_version},
                     {"ownerReferences", owned_by_job(action.job_name, action.job_uid)}}}};
  const Result<Json> answer = call_api(transport_, merge_patch_request(kBreakpoints, key, patch), "adopting");
  if (!answer) return std::unexpected(answer.error());
  done.expectations.push_back({Expectation::Kind::breakpoint_changed, key, action.uid, action.resource_version});
  return {};
}

Status ActionRunner::perform(const DeletePod& action, ActionsDone& done) {
  const ObjectKey key{action.namespace_name, action.name};
  // A live GET: the store may lag, and a delete cannot be taken back.
  const Result<Json> live = call_api(transport_, get_request(kPods, key), "looking at the pod");
  if (!live) return unless(live, {ErrorCode::not_found});
  const Result<Pod> pod = pod_from_json(*live);
  if (!pod) return std::unexpected(pod.error());
  if (pod->uid != action.uid || is_deleting(*pod)) return {};
  if (pod->job_uid != action.job_uid || !pod->is_protected) {
    return fail(ErrorCode::refused,
                "the pod does not belong to the job any more, or has lost its label; it is left alone");
  }
  const DeleteParams params(action.uid);
  const Status status = unless(call_api(transport_, delete_request(kPods, key, params), "deleting the pod"),
                               {ErrorCode::not_found, ErrorCode::conflict});
  if (status) done.expectations.push_back({Expectation::Kind::pod_going, key, action.uid, ""});
  return status;
}

Status ActionRunner::perform(const DeleteBreakpoint& action, ActionsDone& done) {
  const ObjectKey key{action.namespace_name, action.name};
  const Status status =
      unless(call_api(transport_, delete_request(kBreakpoints, key, DeleteParams(action.uid)), "deleting"),
             {ErrorCode::not_found, ErrorCode::conflict});
  if (status) done.expectations.push_back({Expectation::Kind::breakpoint_gone, key, action.uid, ""});
  return status;
}

Status ActionRunner::perform(const CreateCertificateSecret& action, ActionsDone& done) {
  const Result<TlsKeyPair> pair = certificates_.job_certificate(action.namespace_name, action.job_uid, wall_seconds());
  if (!pair) return std::unexpected(pair.error());
  Json secret = tls_secret(action.name, action.namespace_name, *pair, certificates_.authority_pem());
  secret["metadata"]["ownerReferences"] = owned_by_job(action.job_name, action.job_uid);
  const Status status =
      unless(call_api(transport_, create_request(kSecrets, action.namespace_name, secret), "creating"),
             {ErrorCode::already_exists});
  if (status) done.certificate_ensured = true;
  return status;
}

Status ActionRunner::perform(const AnnotateLastCheckpoint& action, ActionsDone&) {
  const std::string time = to_text(action.time);
  const Json annotations{{names::kLastStepAnnotation, std::to_string(action.step)},
                         {names::kLastTimeAnnotation, time},
                         {names::kVolcanoLastTimeAnnotation, time}};
  const Json on_job{{"metadata", {{"uid", action.job_uid}, {"annotations", annotations}}}};
  const Result<Json> job =
      call_api(transport_, merge_patch_request(kJobs, {action.namespace_name, action.job_name}, on_job), "annotating");
  if (const Status status = unless(job, {ErrorCode::not_found, ErrorCode::conflict}); !status) return status;
  const Json on_group{{"metadata", {{"annotations", annotations}}}};
  return unless(
      call_api(transport_, merge_patch_request(kPodGroups, {action.namespace_name, action.pod_group_name}, on_group),
               "annotating"),
      {ErrorCode::not_found});
}

Status ActionRunner::perform(const RecordEvent& action, ActionsDone& done) {
  const ObjectReference& about = action.regarding;
  const Json event{{"apiVersion", "events.k8s.io/v1"},
                   {"kind", "Event"},
                   {"metadata", {{"name", event_name(action)}, {"namespace", about.namespace_name}}},
                   {"eventTime", to_micro_text(wall_now())},
                   {"reportingController", names::kController},
                   {"reportingInstance", instance_},
                   {"type", action.warning ? "Warning" : "Normal"},
                   {"reason", action.reason},
                   {"action", action.action},
                   {"note", action.note.substr(0, 1000)},
                   {"regarding",
                    {{"apiVersion", about.api_version},
                     {"kind", about.kind},
                     {"namespace", about.namespace_name},
                     {"name", about.name},
                     {"uid", about.uid}}}};
  const Status status =
      unless(call_api(transport_, create_request(kEvents, about.namespace_name, event), "recording the event"),
             {ErrorCode::already_exists});
  // An event is news, not state: losing one must not hold up a recovery.
  if (!status) {
    log_warning("event not recorded", {{"reason", action.reason}, {"error", status.error().message}});
  } else if (!action.once_key.empty()) {
    done.events_recorded.push_back(action.once_key);
  }
  return {};
}

}  // namespace rekindle::op
