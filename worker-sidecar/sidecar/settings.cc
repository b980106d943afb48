#include "worker-sidecar/sidecar/settings.h"

#include <charconv>
#include <cstdlib>
#include <optional>

#include "common/base/sentence.h"

namespace rekindle {
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
    if (variables_(name).empty()) refuse(sentence("{} is not set; the webhook of Rekindle sets it", name));
  }
  template <typename Number>
  void number(const char* name, Number& into, std::uint64_t least, std::uint64_t most) {
    const std::string value = variables_(name);
    if (value.empty()) return;
    std::uint64_t parsed = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
    if (error != std::errc() || end != value.data() + value.size() || parsed < least || parsed > most) {
      refuse(sentence("{}={} is not a number from {} to {}", name, value, least, most));
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
  in.text("REKINDLE_SOCKET", settings.socket_path);
  in.text("REKINDLE_RUN_DIR", settings.run_folder);
  in.text("REKINDLE_CHECKPOINT_DIR", settings.checkpoint_folder);
  in.text("REKINDLE_NAMESPACE", settings.job_namespace);
  in.text("REKINDLE_JOB", settings.job);
  in.text("REKINDLE_JOB_UID", settings.job_uid);
  in.text("REKINDLE_POD_NAME", settings.pod_name);
  in.text("REKINDLE_POD_UID", settings.pod_uid);
  in.number("REKINDLE_POD_ORDINAL", settings.ordinal, 0, 65535);
  in.number("REKINDLE_PODS", settings.pods, 1, 65536);
  in.number("REKINDLE_RANKS_PER_POD", settings.ranks_per_pod, 1, 4096);
  in.seconds("REKINDLE_DEADLINE_SECONDS", settings.deadline);
  settings.grace = settings.deadline + std::chrono::seconds(15);
  in.seconds("REKINDLE_GRACE_SECONDS", settings.grace);
  if (settings.ordinal >= settings.pods) {
    in.refuse(sentence("REKINDLE_POD_ORDINAL={} does not fit REKINDLE_PODS={}", settings.ordinal, settings.pods));
  }
  if (Result<CheckpointSettings> checkpoints = read_checkpoint_settings(variables))
    settings.checkpoints = *std::move(checkpoints);
  else in.refuse(checkpoints.error().message);
  if (settings.run_folder.empty()) {
    const std::size_t slash = settings.socket_path.rfind('/');
    settings.run_folder = slash == std::string::npos ? "." : settings.socket_path.substr(0, slash);
  }
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  return settings;
}

Result<ClusterSettings> read_cluster_settings(const Variables& variables) {
  ClusterSettings settings;
  Reader in(variables);
  in.required("REKINDLE_OPERATOR", settings.operator_address);
  in.required("REKINDLE_POD_ADDRESS", settings.pod_address);
  in.text("REKINDLE_TLS_DIR", settings.tls_folder);
  in.text("REKINDLE_BIN_DIR", settings.bin_folder);
  in.number("REKINDLE_PEER_PORT", settings.peer_port, 0, 65535);
  in.number("REKINDLE_METRICS_PORT", settings.metrics_port, 0, 65535);
  if (!settings.operator_address.empty() && !settings.operator_address.contains(':')) {
    in.refuse(sentence("REKINDLE_OPERATOR={} is not host:port", settings.operator_address));
  }
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  return settings;
}

}  // namespace rekindle
