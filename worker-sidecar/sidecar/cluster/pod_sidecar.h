// The sidecar of a pod as a whole: host, peers, operator, metrics, signals. run() is the life of
// the process.
#pragma once

#include <string>

#include "worker-sidecar/sidecar/settings.h"

namespace rekindle::sidecar {

struct PodSidecarOptions {
  HostSettings host;
  ClusterSettings cluster;
  std::string version;
};

// The exit code: 0 after SIGTERM once nothing is left to save or the grace is over; 1 when it
// cannot start.
int run_pod_sidecar(const PodSidecarOptions& options);

}  // namespace rekindle::sidecar
