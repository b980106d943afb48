#include "worker-sidecar/sidecar/settings.h"

#include <gtest/gtest.h>

#include <map>

namespace rekindle::sidecar {
namespace {

Variables from(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string() : found->second;
  };
}

TEST(Settings, APodKnowsItsPlace) {
  const Result<HostSettings> settings = read_host_settings(from({{"REKINDLE_SOCKET", "/r/run/sidecar.sock"},
                                                                 {"REKINDLE_POD_ORDINAL", "1"},
                                                                 {"REKINDLE_PODS", "3"},
                                                                 {"REKINDLE_RANKS_PER_POD", "4"},
                                                                 {"REKINDLE_DEADLINE_SECONDS", "30"}}));
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->run_folder, "/r/run");
  EXPECT_EQ(settings->world_size(), 12u);
  EXPECT_EQ(settings->first_rank(), 4u);
  EXPECT_TRUE(settings->hosts_rank(7));
  EXPECT_FALSE(settings->hosts_rank(8));
  EXPECT_EQ(settings->grace, std::chrono::seconds(45));
}

TEST(Settings, WhatIsNoNumberIsNamedWithItsValue) {
  const Result<HostSettings> settings = read_host_settings(from({{"REKINDLE_PODS", "many"}}));
  ASSERT_FALSE(settings);
  EXPECT_EQ(settings.error().message, "REKINDLE_PODS=many is not a number from 1 to 65536");
}

TEST(Settings, AsManyRanksAsTheAnnotationMaySay) {
  EXPECT_TRUE(read_host_settings(from({{"REKINDLE_RANKS_PER_POD", "1024"}})));
  EXPECT_FALSE(read_host_settings(from({{"REKINDLE_RANKS_PER_POD", "1025"}})));
}

TEST(Settings, AnOrdinalOutsideTheJobIsRefused) {
  EXPECT_FALSE(read_host_settings(from({{"REKINDLE_PODS", "2"}, {"REKINDLE_POD_ORDINAL", "2"}})));
}

TEST(Settings, ASidecarInAPodNeedsTheOperatorsAddress) {
  const Result<ClusterSettings> settings = read_cluster_settings(from({{"REKINDLE_POD_ADDRESS", "10.0.0.1"}}));
  ASSERT_FALSE(settings);
  EXPECT_NE(settings.error().message.find("REKINDLE_OPERATOR"), std::string::npos);
}

}  // namespace
}  // namespace rekindle::sidecar
