// What is to be done, as data with its guards inside: a delete without a uid or a status write
// without a version cannot be written. The performer (operator/io) does them in order and stops at
// the first that fails for another reason than "already so"; the rest is planned anew. Each is safe
// twice. What "already so" is stands with each action.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/contract/sync_answer.h"
#include "common/contract/wall_time.h"
#include "operator/model/breakpoint.h"

namespace rekindle::op {

// POST. Already so: 409 AlreadyExists (the name comes from the fault). `object.owner_uid` makes the
// Job its owner.
struct CreateBreakpoint {
  Breakpoint object;
  bool operator==(const CreateBreakpoint&) const = default;
};

// PUT or PATCH of the status subresource with this resourceVersion in the metadata. Already so:
// nothing; 409 means look again.
struct WriteBreakpointStatus {
  std::string namespace_name;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::int64_t generation = 0;
  BreakpointStatus status;
  bool operator==(const WriteBreakpointStatus&) const = default;
};

// Merge patch of metadata.ownerReferences (owned_by_job) of a Breakpoint that a user made, with its
// resourceVersion.
struct AdoptBreakpoint {
  std::string namespace_name;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::string job_name;
  std::string job_uid;
  bool operator==(const AdoptBreakpoint&) const = default;
};

// DELETE with the uid as precondition and the pod's own grace, after a live GET has shown that the
// pod still has this uid, this controller and our label. Already so: 404, 409 on the uid, or a
// deletionTimestamp in the live object.
struct DeletePod {
  std::string namespace_name;
  std::string name;
  std::string uid;
  std::string job_uid;
  std::string why;
  bool operator==(const DeletePod&) const = default;
};

// DELETE with the uid as precondition. Already so: 404, 409 on the uid.
struct DeleteBreakpoint {
  std::string namespace_name;
  std::string name;
  std::string uid;
  bool operator==(const DeleteBreakpoint&) const = default;
};

// POST of the Secret with the job's certificate, owned by the Job. Already so: 409 AlreadyExists.
// Then `certificate_ensured`.
struct CreateCertificateSecret {
  std::string namespace_name;
  std::string name;
  std::string job_name;
  std::string job_uid;
  bool operator==(const CreateCertificateSecret&) const = default;
};

// Merge patch of annotations on the Job (with its uid in the metadata as precondition) and on its
// PodGroup. Already so: 404, and 409 on the uid, of the Job; 404 of the PodGroup (Volcano copies
// the annotations of the Job when it makes the next one).
struct AnnotateLastCheckpoint {
  std::string namespace_name;
  std::string job_name;
  std::string job_uid;
  std::string pod_group_name;
  std::uint64_t step = 0;
  WallTime time{};
  bool operator==(const AnnotateLastCheckpoint&) const = default;
};

struct ObjectReference {
  std::string api_version;
  std::string kind;
  std::string namespace_name;
  std::string name;
  std::string uid;
  bool operator==(const ObjectReference&) const = default;
};

// POST of an events.k8s.io/v1 Event, always behind the writes that it is about. A failure is logged
// and forgotten.
struct RecordEvent {
  bool warning = false;
  std::string reason;
  std::string action;  // what we did about it: "Recover", "Save", "Restart", "Protect"
  std::string note;    // at most 1 kB
  ObjectReference regarding;
  // not empty: recorded once a process; goes into Observation::events_recorded and into the event's
  // name (409 is "already so")
  std::string once_key;
  bool operator==(const RecordEvent&) const = default;
};

using Action = std::variant<CreateBreakpoint, WriteBreakpointStatus, AdoptBreakpoint, DeletePod, DeleteBreakpoint,
                            CreateCertificateSecret, AnnotateLastCheckpoint, RecordEvent>;

// One line for logs and tests: "delete pod digits-worker-0 uid=p0 grace=own (why)".
std::string to_text(const Action& action);

// What the sidecars are asked to do is not performed but served, until it is no longer in the plan.
std::string to_text(const SyncOrder& order);

}  // namespace rekindle::op
