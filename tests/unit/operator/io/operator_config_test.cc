#include "operator/io/operator_config.h"

#include <gtest/gtest.h>

namespace rekindle::op {
namespace {

Result<OperatorConfig> with_checkpoint(const Json& checkpoint) {
  const Json config{{"namespace", "rekindle-system"},
                    {"service", "rekindle-operator"},
                    {"webhook_configuration", "rekindle"},
                    {"sidecar_image", "rekindle.dev/sidecar:0.1.0"},
                    {"checkpoint", checkpoint}};
  return parse_operator_config(config.dump());
}

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

}  // namespace
}  // namespace rekindle::op
