#include "operator/io/operator_config.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <sstream>

#include "common/base/format.h"
#include "common/contract/checkpoint_settings.h"
#include "operator/admission/pod_template.h"
#include "operator/admission/resource_quantity.h"
#include "operator/model/metadata.h"
#include "operator/model/names.h"

namespace rekindle::op {
namespace {

constexpr std::array<std::string_view, 10> kKeys = {
    "namespace",         "service",       "webhook_configuration", "sidecar_image", "sidecar_image_pull_policy",
    "sidecar_resources", "default_claim", "deadline_seconds",      "log_level",     "checkpoint"};

const std::string kCheckpointKey = "checkpoint";

std::string in_chart(const char* variable) {
  const auto found =
      std::ranges::find(names::kCheckpointSettings, std::string_view(variable), &names::CheckpointSetting::variable);
  return format("{}.{}", kCheckpointKey, found == names::kCheckpointSettings.end() ? variable : found->chart_value);
}

// The object `checkpoint`: names as in the chart's values, texts as in the annotations. A wrong one
// would be a wrong setting of every job.
Result<std::map<std::string, std::string>> read_checkpoints(const Json& object) {
  JsonFields in(object, "the operator's configuration: " + kCheckpointKey);
  std::map<std::string, std::string> values;
  for (const auto& [key, value] : object.items()) {
    const auto found =
        std::ranges::find(names::kCheckpointSettings, std::string_view(key), &names::CheckpointSetting::chart_value);
    if (key.empty() || found == names::kCheckpointSettings.end()) {
      in.refuse(key, "is not a key that is known");
    } else if (std::string text = in.text_or(key, ""); !text.empty()) {
      values.emplace(found->variable, std::move(text));
    }
  }
  if (const Status status = in.finish(); !status) return std::unexpected(status.error());
  const auto value = [&](const char* variable) {
    return values.contains(variable) ? values.at(variable) : std::string();
  };
  if (const auto settings = read_checkpoint_settings(value, in_chart); !settings) {
    return std::unexpected(with_context(settings.error(), "the operator's configuration"));
  }
  return values;
}

// One amount of sidecar.resources; a wrong one would stop every protected pod.
void read_amount(JsonFields& in, const Json& resources, std::string_view kind, std::string_view name,
                 std::string& into) {
  const Json* value = find_path(resources, {kind, name});
  if (value == nullptr || value->is_null()) return;
  const std::string text = value->is_string() ? value->get<std::string>() : value->dump();
  if (resource_quantity(text)) {
    into = text;
  } else {
    in.refuse("sidecar_resources", format("has sidecar.resources.{}.{}={} of the chart, which is not an amount like "
                                          "50m or 256Mi",
                                          kind, name, std::string_view(text).substr(0, 100)));
  }
}

SidecarResources read_resources(JsonFields& in) {
  const Json& object = in.object_or_empty("sidecar_resources");
  SidecarResources resources;
  read_amount(in, object, "requests", "cpu", resources.cpu_request);
  read_amount(in, object, "requests", "memory", resources.memory_request);
  read_amount(in, object, "limits", "memory", resources.memory_limit);
  if (resource_quantity(resources.memory_limit) < resource_quantity(resources.memory_request)) {
    in.refuse("sidecar_resources",
              format("has sidecar.resources.limits.memory={} of the chart, which is below requests.memory={}",
                     resources.memory_limit, resources.memory_request));
  }
  return resources;
}

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
      .default_claim = in.text_or("default_claim", ""),
      .log_level = in.text_or("log_level", "info"),
  };
  const std::uint64_t deadline = in.number_or("deadline_seconds", 60);
  if (deadline < 2 || std::cmp_greater(deadline, kBreakpointDeadlineMax.count()))
    in.refuse("deadline_seconds", "must be from 2 to " + std::to_string(kBreakpointDeadlineMax.count()));
  config.deadline_seconds = static_cast<std::uint32_t>(deadline);
  if (document->is_object()) {
    for (const auto& [key, value] : document->items()) {
      if (std::ranges::find(kKeys, key) == kKeys.end()) in.refuse(key, "is not a key that is known");
    }
  }
  if (!config.default_claim.empty() && !is_object_name(config.default_claim)) {
    in.refuse("default_claim",
              format("is storage.claim of the chart, and \"{}\" is not the name of a PersistentVolumeClaim",
                     config.default_claim));
  }
  config.sidecar_resources = read_resources(in);
  const Json& checkpoint = in.object_or_empty("checkpoint");
  if (const Status status = in.finish(); !status) return std::unexpected(status.error());
  Result<std::map<std::string, std::string>> checkpoints = read_checkpoints(checkpoint);
  if (!checkpoints) return std::unexpected(checkpoints.error());
  config.checkpoints = *std::move(checkpoints);
  return config;
}

Result<OperatorConfig> read_operator_config(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail_errno(errno, format("the operator's configuration {} cannot be read", path));
  std::ostringstream text;
  text << file.rdbuf();
  return parse_operator_config(text.str());
}

}  // namespace rekindle::op
