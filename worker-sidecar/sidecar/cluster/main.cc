// rekindle-sidecar: the native sidecar of a protected pod. `rekindle-sidecar ready` is its startup
// probe.
#include <cstdio>
#include <cstring>

#include "common/system/log.h"
#include "worker-sidecar/sidecar/cluster/pod_sidecar.h"
#include "worker-sidecar/sidecar/cluster/ready.h"

namespace {

constexpr const char* kUsage =
    "Usage: rekindle-sidecar            serve the pod; everything comes from the environment "
    "(docs/formats/injection.md)\n"
    "       rekindle-sidecar ready      exit 0 when the sidecar of this pod answers\n"
    "       rekindle-sidecar --version\n";

}  // namespace

int main(int argc, char** argv) {
  using namespace rekindle;  // NOLINT(google-build-using-namespace): main alone
  using namespace rekindle::sidecar;
  if (argc > 2 || (argc == 2 && std::strcmp(argv[1], "ready") != 0 && std::strcmp(argv[1], "--version") != 0)) {
    std::fputs(kUsage, argc == 2 && std::strcmp(argv[1], "--help") == 0 ? stdout : stderr);
    return argc == 2 && std::strcmp(argv[1], "--help") == 0 ? 0 : 2;
  }
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    std::puts("rekindle-sidecar " REKINDLE_VERSION);
    return 0;
  }
  const Result<HostSettings> host = read_host_settings(process_variable);
  if (argc == 2) {
    const std::string why = find_why_not_ready(host ? host->socket_path : kDefaultSocket, std::chrono::seconds(1));
    if (!why.empty()) std::fprintf(stderr, "%s\n", why.c_str());
    return why.empty() ? 0 : 1;
  }
  const Result<ClusterSettings> cluster = read_cluster_settings(process_variable);
  if (!host || !cluster) {
    log_error("the environment of the sidecar is not complete",
              {{"message", !host ? host.error().message : cluster.error().message}});
    return 1;
  }
  return run_pod_sidecar({.host = *host, .cluster = *cluster, .version = REKINDLE_VERSION});
}
