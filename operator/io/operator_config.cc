#include "operator/io/operator_config.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <sstream>

namespace rekindle {
namespace {

constexpr std::array<std::string_view, 9> kKeys = {
    "namespace",         "service",       "webhook_configuration", "sidecar_image", "sidecar_image_pull_policy",
    "sidecar_resources", "default_claim", "deadline_seconds",      "log_level"};

}  // namespace

Result<OperatorConfig> parse_operator_config(std::string_view text) {
  const Result<Json> document = parse_json(text, "the operator's configuration", 1u << 20);
  if (!document) return std::unexpected(document.error());
  JsonFields in(*document, "the operator's configuration");
  OperatorConfig config{
      .namespace_name = in.text("namespace"),
      .service = in.text("service"),
      .webhook_configuration = in.text("webhook_configuration"),
      .sidecar_image = in.text("sidecar_image"),
      .sidecar_image_pull_policy = in.text_or("sidecar_image_pull_policy", "IfNotPresent"),
      .sidecar_resources = in.object_or_empty("sidecar_resources"),
      .default_claim = in.text_or("default_claim", ""),
      .log_level = in.text_or("log_level", "info"),
  };
  const std::uint64_t deadline = in.number_or("deadline_seconds", 60);
  if (deadline < 2 || deadline > 3600) in.refuse("deadline_seconds", "must be from 2 to 3600");
  config.deadline_seconds = static_cast<std::uint32_t>(deadline);
  if (document->is_object()) {
    for (const auto& [key, value] : document->items()) {
      if (std::ranges::find(kKeys, key) == kKeys.end()) in.refuse(key, "is not a key that is known");
    }
  }
  if (const Status status = in.finish(); !status) return std::unexpected(status.error());
  return config;
}

Result<OperatorConfig> read_operator_config(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail_errno(errno, "the operator's configuration " + path + " cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  return parse_operator_config(text.str());
}

}  // namespace rekindle
