#include "worker-sidecar/sidecar/cluster/operator_sync.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/source_folder.h"

namespace rekindle::sidecar {
namespace {

TEST(OperatorSync, ARequestSaysWhoItIsAndWhatHappened) {
  SyncRequest request{.pod_name = "digits-worker-1",
                      .pod_uid = "u1",
                      .address = "10.1.2.3",
                      .port = 8471,
                      .ordinal = 1,
                      .seen = 17,
                      .coordinating = true};
  request.report = {
      .attempt = 2,
      .step = 190,
      .phase = "training",
      .ranks_expected = 4,
      .ranks_live = 4,
      .restored = {.attempt = 2, .step = 184, .path = "a1-s184-x", .first_step = 185},
      .breakpoints =
          {{.record = {.id = "digits-1", .term = 65537, .pod = 0, .state = BreakpointState::durable, .step = 184},
            .time = "now"}},
      .problems = {{"storage", "it is full"}}};
  const auto json = nlohmann::json::parse(encode_sync_request(request, {"digits-worker-0"}));
  EXPECT_EQ(json["pod"]["uid"], "u1");
  EXPECT_EQ(json["seen"], 17);
  EXPECT_EQ(json["report"]["ranks"]["expected"], 4);
  EXPECT_EQ(json["report"]["restored"]["first_step"], 185);
  EXPECT_EQ(json["report"]["breakpoints"][0]["pod"], "digits-worker-0");
  EXPECT_EQ(json["report"]["breakpoints"][0]["state"], "durable");
  EXPECT_EQ(json["report"]["problems"][0]["message"], "it is full");
}

// The operator's decoder is tested with the same file, so the two ends cannot drift apart.
TEST(OperatorSync, ARequestIsTheExampleOfTheFormat) {
  SyncRequest request{.pod_name = "digits-worker-1",
                      .pod_uid = "u1",
                      .address = "10.1.2.3",
                      .port = 8471,
                      .ordinal = 1,
                      .seen = 17,
                      .wait_seconds = 25,
                      .coordinating = true};
  request.report = {
      .attempt = 2,
      .step = 190,
      .phase = "training",
      .ranks_expected = 4,
      .ranks_live = 4,
      .restored = {.attempt = 2,
                   .step = 184,
                   .path = "a1-s184-x",
                   .first_step = 185,
                   .manifest_hash = "7d",
                   .summary =
                       CheckpointSummary{.bytes = 1212000, .world_size = 4, .live_ranks = 4, .agreed_milliseconds = 6}},
      .breakpoints = {{.record = {.id = "digits-1",
                                  .term = 65537,
                                  .cause = TriggerCause::hook,
                                  .pod = 0,
                                  .detail = "digits-worker-0",
                                  .state = BreakpointState::durable,
                                  .step = 184,
                                  .path = "a1-s184-x",
                                  .manifest_hash = "7d",
                                  .bytes = 1212000,
                                  .ranks = 4,
                                  .agreed_milliseconds = 5.25,
                                  .durable_milliseconds = 31.5},
                       .time = "2026-11-21T12:00:00Z"}},
      .problems = {{"storage", "it is full"}}};
  std::ifstream file(test::source_path("docs/formats/examples/sync-request.json"));
  EXPECT_EQ(nlohmann::json::parse(encode_sync_request(request, {"digits-worker-0"})), nlohmann::json::parse(file));
}

TEST(OperatorSync, WhatThereIsNothingToSayAboutIsAbsent) {
  const auto report = nlohmann::json::parse(encode_sync_request({}, {}))["report"];
  for (const char* name : {"ranks", "restored", "breakpoints", "problems"}) EXPECT_FALSE(report.contains(name)) << name;
}

TEST(OperatorSync, WhatIsNotKnownOfTheRestoredCheckpointIsAbsent) {
  SyncRequest request;
  request.report.restored = {.attempt = 1};
  const auto restored = nlohmann::json::parse(encode_sync_request(request, {}))["report"]["restored"];
  EXPECT_EQ(restored, nlohmann::json::parse(R"({"attempt":1,"step":0,"path":""})"));
}

constexpr const char* kAnswer =
    R"({"version":18,"job":{"namespace":"t","name":"digits","uid":"j"},"pods_expected":2,"go":true,
        "pods":[{"name":"a","uid":"ua","ordinal":0,"address":"10.0.0.1","port":8471,"old":false},{"name":"b","uid":"ub","ordinal":1,"address":"","port":0}],
        "orders":[{"breakpoint":"digits-1","cause":"operator","detail":"evicted","seconds_left":29.5,"after":"park"}]})";

TEST(OperatorSync, AnAnswerIsReadWhole) {
  const Result<SyncAnswer> answer = decode_sync_answer(kAnswer);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->version, 18u);
  EXPECT_TRUE(answer->start_allowed);
  EXPECT_EQ(answer->pods[0].port, 8471);
  EXPECT_EQ(answer->pods[1].address, "");
  EXPECT_EQ(answer->orders[0].breakpoint, "digits-1");
  EXPECT_DOUBLE_EQ(answer->orders[0].seconds_left, 29.5);
}

TEST(OperatorSync, WhatDoesNotFitIsAnErrorAndNoCrash) {
  const std::string whole = kAnswer;
  for (std::size_t cut = 0; cut < whole.size(); ++cut) EXPECT_FALSE(decode_sync_answer(whole.substr(0, cut))) << cut;
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"8471", "84710"},
                                                        {"\"park\"", "\"dance\""},
                                                        {"29.5", "-1"},
                                                        {"29.5", "\"soon\""},
                                                        {"true", "1"},
                                                        {"\"ordinal\":0", "\"ordinal\":-1"},
                                                        {"\"ordinal\":0", "\"ordinal\":4294967296"},
                                                        {"\"pods_expected\":2", "\"pods_expected\":4294967298"}}) {
    std::string changed = whole;
    changed.replace(changed.find(from), from.size(), to);
    EXPECT_FALSE(decode_sync_answer(changed)) << to;
  }
}

}  // namespace
}  // namespace rekindle::sidecar
