// What the environment sets for the sidecar (docs/formats/injection.md), checked once at start.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/base/error.h"
#include "common/base/instant.h"
#include "common/contract/checkpoint_settings.h"
#include "common/contract/deadlines.h"

namespace rekindle::sidecar {

inline constexpr const char* kDefaultSocket = "/rekindle/run/sidecar.sock";

// The job, and the place of this pod in it. `rekindle run` fills it in by itself: one pod, all
// ranks.
struct HostSettings {
  std::string socket_path = kDefaultSocket;
  // of control blocks: the socket's folder
  std::string run_folder;
  std::string checkpoint_folder = "/rekindle/checkpoints";
  std::string job_namespace = "local";
  std::string job = "local";
  std::string job_uid = "local";
  std::string pod_name;
  std::string pod_uid;
  std::uint32_t ordinal = 0;
  std::uint32_t pods = 1;
  std::uint32_t ranks_per_pod = 1;
  Duration deadline = kBreakpointDeadlineDefault;
  Duration grace = kBreakpointDeadlineDefault + kGraceMargin;
  CheckpointSettings checkpoints;

  std::uint32_t world_size() const { return pods * ranks_per_pod; }
  std::uint32_t first_rank() const { return ordinal * ranks_per_pod; }
  bool hosts_rank(std::uint32_t rank) const { return rank >= first_rank() && rank < first_rank() + ranks_per_pod; }
};

// What only a sidecar in a pod has.
struct ClusterSettings {
  std::string operator_address;  // host:port
  std::string pod_address;
  std::string tls_folder = "/rekindle/tls";
  std::string bin_folder = "/rekindle/bin";
  std::uint16_t peer_port = 8471;
  std::uint16_t metrics_port = 8472;
};

// Looks a variable up; empty when it is not set.
using Variables = std::function<std::string(const char* name)>;
std::string process_variable(const char* name);

// invalid_input names the variable, its value and what is expected.
Result<HostSettings> read_host_settings(const Variables& variables);
Result<ClusterSettings> read_cluster_settings(const Variables& variables);

}  // namespace rekindle::sidecar
