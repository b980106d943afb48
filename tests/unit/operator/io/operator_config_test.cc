#include "operator/io/operator_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/source_folder.h"

namespace rekindle::op {
namespace {

Result<OperatorConfig> with_key(const std::string& key, const Json& value) {
  Json config{{"namespace", "rekindle-system"},
              {"service", "rekindle-operator"},
              {"webhook_configuration", "rekindle"},
              {"sidecar_image", "rekindle.dev/sidecar:0.1.0"}};
  config[key] = value;
  return parse_operator_config(config.dump());
}

Result<OperatorConfig> with_checkpoint(const Json& checkpoint) { return with_key("checkpoint", checkpoint); }

TEST(OperatorConfig, TheChartsCheckpointValuesAreKeptByVariable) {
  const Result<OperatorConfig> config = with_checkpoint({{"every", "10 min"}, {"shadowEvery", ""}, {"keep", "5"}});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->checkpoints,
            (std::map<std::string, std::string>{{"REKINDLE_CHECKPOINT_EVERY", "10 min"}, {"REKINDLE_KEEP", "5"}}));
}

TEST(OperatorConfig, AWrongCheckpointValueIsRefusedByItsNameInTheChart) {
  const Result<OperatorConfig> config = with_checkpoint({{"shadowEvery", "often"}});
  ASSERT_FALSE(config);
  EXPECT_NE(config.error().message.find("checkpoint.shadowEvery=often is not"), std::string::npos)
      << config.error().message;
}

TEST(OperatorConfig, AKeyOfCheckpointThatIsNotKnownIsRefused) {
  for (const char* key : {"evry", "", "config"}) {
    const Result<OperatorConfig> config = with_checkpoint({{key, "10 min"}});
    ASSERT_FALSE(config) << key;
    EXPECT_NE(config.error().message.find("is not a key that is known"), std::string::npos) << config.error().message;
  }
  EXPECT_FALSE(with_checkpoint({{"keep", 5}}));
  EXPECT_FALSE(with_checkpoint("10 min"));
}

std::string refusal_of_resources(const Json& resources) {
  const Result<OperatorConfig> config = with_key("sidecar_resources", resources);
  return config ? "" : config.error().message;
}

TEST(OperatorConfig, ResourcesOfTheSidecarAreAmounts) {
  const Result<OperatorConfig> config = with_key(
      "sidecar_resources", {{"requests", {{"cpu", 1}, {"memory", "128Mi"}}}, {"limits", {{"memory", "0.5Gi"}}}});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->sidecar_resources.cpu_request, "1");
  EXPECT_EQ(config->sidecar_resources.memory_limit, "0.5Gi");
  const std::string message = refusal_of_resources({{"limits", {{"memory", "lots"}}}});
  EXPECT_NE(message.find("sidecar.resources.limits.memory=lots"), std::string::npos) << message;
  EXPECT_NE(refusal_of_resources({{"requests", {{"cpu", Json::array()}}}}), "");
}

TEST(OperatorConfig, ALimitBelowItsRequestIsRefused) {
  const std::string message = refusal_of_resources({{"limits", {{"memory", "32Mi"}}}});
  EXPECT_NE(message.find("limits.memory=32Mi of the chart, which is below requests.memory=64Mi"), std::string::npos)
      << message;
  EXPECT_EQ(refusal_of_resources({{"requests", {{"memory", "32Mi"}}}, {"limits", {{"memory", "32Mi"}}}}), "");
}

// Helm refuses by the schema, the operator by its own reader: the same texts.
TEST(OperatorConfig, TheChartsSchemaTakesWhatTheOperatorTakes) {
  std::ifstream file(test::source_path("helm/rekindle/values.schema.json"));
  const Json schema = Json::parse(file);
  const auto checkpoint = [](const char* name) {
    return [name](const std::string& text) { return with_checkpoint({{name, text}}).has_value(); };
  };
  const auto limit = [](const std::string& text) {
    return with_key("sidecar_resources", {{"requests", {{"memory", "0"}}}, {"limits", {{"memory", text}}}}).has_value();
  };
  const auto claim = [](const std::string& text) { return with_key("default_claim", text).has_value(); };
  struct Row {
    const char* at;
    std::function<bool(const std::string&)> taken;
    std::vector<const char*> good;
    std::vector<const char*> bad;
  };
  const std::string settings = "/properties/checkpoint/properties/";
  const Row rows[] = {
      {"every",
       checkpoint("every"),
       {"", "off", "auto", "1 step", "500 steps", "10min"},
       {"0 steps", "0 min", "often"}},
      {"shadowEvery", checkpoint("shadowEvery"), {"", "off", "1 step"}, {"0 steps", "10 min", "auto"}},
      {"keep", checkpoint("keep"), {"", "3"}, {"0", "-1", "all"}},
      {"keepEvery", checkpoint("keepEvery"), {"", "30 min"}, {"0 min", "0 h", "30", "off"}},
      {"writeBandwidthMax", checkpoint("writeBandwidthMax"), {"", "500 MiB/s"}, {"0 MiB/s", "500 MB/s", "500"}},
      {"failureEvery", checkpoint("failureEvery"), {"", "24 h"}, {"0 h", "24", "daily"}},
      {"/properties/storage/properties/claim", claim, {"", "a", "ck-1.team"}, {"My Claim", "-a", "a.", "a..b", "a_b"}},
      {"/definitions/quantity",
       limit,
       {"64Mi", "1", "0.5Gi", "1e9", "2E", "100m", ".5"},
       {"", "lots", "-1", "64 Mi", "64MB", "64mi", "1.2.3", "Mi", "."}},
  };
  for (const Row& row : rows) {
    const std::string at = (row.at[0] == '/' ? "" : settings) + row.at;
    const auto fits = testing::ContainsRegex(schema.at(Json::json_pointer(at)).at("pattern").get<std::string>());
    for (const char* text : row.good) {
      EXPECT_THAT(text, fits) << at;
      EXPECT_TRUE(row.taken(text)) << at << " " << text;
    }
    for (const char* text : row.bad) {
      EXPECT_THAT(text, testing::Not(fits)) << at;
      EXPECT_FALSE(row.taken(text)) << at << " " << text;
    }
  }
}

}  // namespace
}  // namespace rekindle::op
