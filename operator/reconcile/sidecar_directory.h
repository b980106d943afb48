// The operator's side of POST /v1/sync: which sidecars may call, what is answered, and what was
// reported. Bytes and connections belong to the HTTP server (operator/io), which calls this from
// the owner thread only.
//
// Expected flow of a request: receive() -> when an answer is given, send it; else hold the request
// until version_of(job) differs from its `seen` or its wait is over, then send answer(job). The
// reconcile loop calls update() after each plan and takes reports_of() for its observations.
// Guarantees: the job's identity comes from the certificate alone; no job learns the addresses of
// another; `go` that was given to a set of pods stays given while none of them is stale. Versions
// start from the time of the process start, so a sidecar that has seen a version of the operator
// before is answered at once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/contract/sync_answer.h"
#include "operator/model/job.h"
#include "operator/model/pod.h"
#include "operator/model/sidecar_report.h"
#include "operator/reconcile/action.h"

namespace rekindle::op {

// From the certificate's URI rekindle://<namespace>/<job uid>.
struct SidecarIdentity {
  std::string namespace_name;
  std::string job_uid;

  auto operator<=>(const SidecarIdentity&) const = default;
};

std::optional<SidecarIdentity> parse_sidecar_identity(std::string_view uri);

// What the reconcile loop knows about a job.
struct DirectoryView {
  std::shared_ptr<const Job> job;
  std::vector<std::shared_ptr<const Pod>> pods;
  std::vector<SyncOrder> orders;
  std::vector<std::string> stale_pod_uids;
  bool hold_start = false;
};

struct SyncOutcome {
  int status = 200;  // 200, 400, 403, 404, 503
  // the answer, or {"error":{"code","message"}}; empty when the request is to be held
  std::string body;
  bool hold = false;
  std::uint64_t seen = 0;  // of the request
  std::chrono::seconds wait{0};
  bool report_changed = false;  // the job should be reconciled
  std::string job_name;
};

class SidecarDirectory {
 public:
  explicit SidecarDirectory(WallTime started);

  // After the first lists of jobs and pods; before that every request is answered 503 with
  // Retry-After.
  void set_ready();

  SyncOutcome receive(const SidecarIdentity& identity, std::string_view body, WallTime now);

  // The newest answer for the job, as JSON text; 404's body when it is gone.
  SyncOutcome answer(const SidecarIdentity& identity) const;
  std::uint64_t version_of(const SidecarIdentity& identity) const;  // 0: unknown job

  void update(const DirectoryView& view, WallTime now);
  void forget(const SidecarIdentity& identity);  // the job is gone

  std::vector<SidecarReport> reports_of(const SidecarIdentity& identity) const;

 private:
  struct Entry {
    DirectoryView view;
    std::map<std::string, SidecarReport, std::less<>> reports;  // by pod uid
    // pods that are not in the view any more
    std::map<std::string, WallTime, std::less<>> gone_since;
    std::set<std::string> start_allowed_to;  // uids of the pods that got `go`
    SyncAnswer answer;                       // without the times that its orders have left
  };

  void refresh(const SidecarIdentity& identity, Entry& entry);

  bool ready_ = false;
  std::uint64_t next_version_;
  std::map<SidecarIdentity, Entry> entries_;
};

}  // namespace rekindle::op
