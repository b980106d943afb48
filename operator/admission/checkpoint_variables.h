// What a job and the chart say about checkpoints, as the environment of its pods and the size of
// their memory volume. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/admission/settings.h"
#include "operator/model/job.h"

namespace rekindle::op {

// The first annotation that cannot be read, in a message that names it. None: all can.
std::optional<std::string> fault_of_checkpoint_settings(const JobSettings& job);

struct CheckpointVariables {
  std::map<std::string, std::string> values;  // by variable
  // Ranks keep copies of their share in the memory volume: for periodic checkpoints, a shadow or
  // both.
  bool keeps_copies = false;
  // annotations that were edited into something that cannot be read: they count as absent
  std::vector<std::string> warnings;
};

// The job's words go before the chart's. A job that has decided how often or how many also leaves
// out what the chart says about the same thing in another way.
CheckpointVariables checkpoint_variables(const JobSettings& job, const AdmissionSettings& chart);

// Of the memory volume `rekindle-run`; none: as much as the memory limits of the pod's containers
// allow, by the kubelet.
std::optional<std::string> memory_volume_limit(const JobSettings& job, bool keeps_copies);

}  // namespace rekindle::op
