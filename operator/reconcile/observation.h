// Everything that one decision about one job rests on, as values. The shell builds it from the
// stores and from the sidecar directory; nothing in it is remembered by the decision itself, so an
// operator that has just started decides the same.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/contract/wall_time.h"
#include "operator/model/breakpoint.h"
#include "operator/model/job.h"
#include "operator/model/pod.h"
#include "operator/model/sidecar_report.h"
#include "operator/reconcile/gone_pod.h"

namespace rekindle {

// Whether the API server reaches our pod webhook.
struct WebhookHealth {
  bool answers = false;
  std::optional<WallTime> answering_since;  // of this process
};

struct Observation {
  std::string namespace_name;  // the key, also when there is no such job
  std::string job_name;
  std::shared_ptr<const Job> job;  // null: there is none (any more)
  // with label rekindle.dev/protected and this job as controller, by name
  std::vector<std::shared_ptr<const Pod>> pods;
  // the same that went in the last minutes, as far as this process knows
  std::vector<GonePod> gone_pods;
  std::vector<std::shared_ptr<const Breakpoint>> breakpoints;  // whose jobRef names this job
  // the last of each pod, also of pods that went lately
  std::vector<SidecarReport> reports;
  WebhookHealth webhook;
  WallTime operator_started{};  // reports of sidecars need some seconds to come in after that
  // this process has seen the job's Secret created, or found it there
  bool certificate_ensured = false;
  // keys of the once-only events that this process has recorded for the job
  std::set<std::string> events_recorded;
  // what we wrote and the stores have not shown yet: nothing is decided until they have
  std::uint32_t writes_unseen = 0;
};

}  // namespace rekindle
