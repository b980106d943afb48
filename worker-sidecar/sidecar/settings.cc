#include "worker-sidecar/sidecar/settings.h"

#include <charconv>
#include <cstdlib>
#include <optional>

#include "common/base/format.h"
#include "common/contract/environment.h"
#include "common/contract/job_limits.h"

namespace rekindle::sidecar {
namespace {

// Reads one variable after the other and keeps the first thing that is wrong.
class Reader {
 public:
  explicit Reader(const Variables& variables) : variables_(variables) {}

  void text(const char* name, std::string& into) {
    if (std::string value = variables_(name); !value.empty()) into = std::move(value);
  }
  void required(const char* name, std::string& into) {
    text(name, into);
    if (variables_(name).empty()) refuse(format("{} is not set; the webhook of Rekindle sets it", name));
  }
  template <typename Number>
  void number(const char* name, Number& into, std::uint64_t least, std::uint64_t most) {
    const std::string value = variables_(name);
    if (value.empty()) return;
    std::uint64_t parsed = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
    if (error != std::errc() || end != value.data() + value.size() || parsed < least || parsed > most) {
      refuse(format("{}={} is not a number from {} to {}", name, value, least, most));
      return;
    }
    into = static_cast<Number>(parsed);
  }
  void seconds(const char* name, Duration& into) {
    std::uint64_t value = static_cast<std::uint64_t>(to_seconds(into));
    number(name, value, 0, 7 * 86400);
    into = std::chrono::seconds(value);
  }
  void refuse(std::string message) {
    if (!error_) error_ = Error{ErrorCode::invalid_input, std::move(message)};
  }
  Status finish() const {
    if (error_) return std::unexpected(*error_);
    return {};
  }

 private:
  const Variables& variables_;
  std::optional<Error> error_;
};

}  // namespace

std::string process_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

Result<HostSettings> read_host_settings(const Variables& variables) {
  HostSettings settings;
  Reader in(variables);
  in.text(environment::kSocket, settings.socket_path);
  in.text(environment::kCheckpointFolder, settings.checkpoint_folder);
  in.text(environment::kNamespace, settings.job_namespace);
  in.text(environment::kJob, settings.job);
  in.text(environment::kJobUid, settings.job_uid);
  in.text(environment::kPodName, settings.pod_name);
  in.text(environment::kPodUid, settings.pod_uid);
  in.number(environment::kPodOrdinal, settings.ordinal, 0, kPodsMax - 1);
  in.number(environment::kPods, settings.pods, 1, kPodsMax);
  in.number(environment::kRanksPerPod, settings.ranks_per_pod, 1, kRanksPerPodMax);
  in.seconds(environment::kDeadlineSeconds, settings.deadline);
  settings.grace = settings.deadline + kGraceMargin;
  in.seconds(environment::kGraceSeconds, settings.grace);
  if (settings.ordinal >= settings.pods) {
    in.refuse(format("REKINDLE_POD_ORDINAL={} does not fit REKINDLE_PODS={}", settings.ordinal, settings.pods));
  }
  if (Result<CheckpointSettings> checkpoints = read_checkpoint_settings(variables))
    settings.checkpoints = *std::move(checkpoints);
  else in.refuse(checkpoints.error().message);
  const std::size_t slash = settings.socket_path.rfind('/');
  settings.run_folder = slash == std::string::npos ? "." : settings.socket_path.substr(0, slash);
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  return settings;
}

Result<ClusterSettings> read_cluster_settings(const Variables& variables) {
  ClusterSettings settings;
  Reader in(variables);
  in.required(environment::kOperator, settings.operator_address);
  in.required(environment::kPodAddress, settings.pod_address);
  in.text(environment::kTlsFolder, settings.tls_folder);
  in.text(environment::kBinFolder, settings.bin_folder);
  in.number(environment::kPeerPort, settings.peer_port, 0, 65535);
  in.number(environment::kMetricsPort, settings.metrics_port, 0, 65535);
  if (!settings.operator_address.empty() && !settings.operator_address.contains(':')) {
    in.refuse(format("REKINDLE_OPERATOR={} is not host:port", settings.operator_address));
  }
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  return settings;
}

}  // namespace rekindle::sidecar
