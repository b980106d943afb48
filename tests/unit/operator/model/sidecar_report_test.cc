#include "operator/model/sidecar_report.h"

#include <gtest/gtest.h>

#include <fstream>

#include "common/base/json_fields.h"
#include "tests/support/source_folder.h"

namespace rekindle::op {
namespace {

TEST(SyncRequest, ReadsTheDocumentedBody) {
  const Json body = Json::parse(
      R"({"pod":{"name":"digits-worker-0","uid":"u0"},"address":"10.1.2.3","port":8471,"ordinal":0,"seen":17,
    "wait_seconds":25,"coordinating":true,"report":{"attempt":2,"step":311,"phase":"training","ranks":{"expected":4,"live":4},
    "restored":{"attempt":2,"step":184,"path":"a1-s184-x","first_step":185},
    "breakpoints":[{"id":"","term":65536,"cause":"hook","pod":"digits-worker-0","detail":"d","state":"durable","step":184,"path":"a1-s184-x",
      "manifest_hash":"h","bytes":1258291,"ranks":4,"agreed_milliseconds":6,"durable_milliseconds":31,"message":"","time":"t"}],
    "problems":[{"code":"storage","message":"the folder is read-only"}]}})");
  const Result<SyncRequest> request = sync_request_from_json(body);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->seen, 17u);
  EXPECT_EQ(request->wait, std::chrono::seconds(25));
  EXPECT_EQ(request->report.phase, SidecarPhase::training);
  EXPECT_EQ(request->report.restored->first_step, 185u);
  EXPECT_EQ(request->report.breakpoints[0].state, SaveState::durable);
  EXPECT_EQ(request->report.breakpoints[0].durable_milliseconds, 31u);
  EXPECT_EQ(request->report.problems[0].code, "storage");
}

TEST(SyncRequest, ABreakpointWhoseRanksRebuildSaysSo) {
  const auto told = [](const char* more) {
    const Json body = Json::parse(
        std::string(
            R"({"pod":{"name":"p","uid":"u"},"report":{"breakpoints":[{"cause":"collective_failed","state":"durable")") +
        more + "}]}}");
    return sync_request_from_json(body)->report.breakpoints[0].rebuild;
  };
  EXPECT_TRUE(told(R"(,"rebuild":true)"));
  EXPECT_FALSE(told(""));
}

TEST(SyncRequest, ABareOneIsEnough) {
  const Result<SyncRequest> request = sync_request_from_json(Json::parse(R"({"pod":{"name":"p","uid":"u"}})"));
  ASSERT_TRUE(request);
  EXPECT_FALSE(request->has_report);
  EXPECT_EQ(request->report.phase, SidecarPhase::waiting);
}

TEST(SyncRequest, HostileBodiesCostLittle) {
  Json body = Json::parse(R"({"pod":{"name":"p","uid":"u"},"wait_seconds":999999,"report":{"phase":"training"}})");
  body["address"] = std::string(100000, 'x');
  body["report"]["restored"] = {{"manifest_hash", std::string(100000, 'x')}};
  for (int i = 0; i < 1000; ++i) {
    body["report"]["breakpoints"].push_back({{"state", "failed"}, {"term", i}, {"message", std::string(5000, 'y')}});
    body["report"]["problems"].push_back({{"code", "c"}});
  }
  const Result<SyncRequest> request = sync_request_from_json(body);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->wait, std::chrono::seconds(30));
  EXPECT_LE(request->report.address.size(), 1024u);
  EXPECT_LE(request->report.restored->manifest_hash.size(), 1024u);
  ASSERT_EQ(request->report.breakpoints.size(), 16u);
  EXPECT_EQ(request->report.breakpoints.back().term, 999u);
  EXPECT_EQ(request->report.problems.size(), 16u);
}

TEST(SyncRequest, WhatDoesNotFitIsNamed) {
  for (const char* text :
       {R"({})", R"({"pod":{"name":"p"}})", R"({"pod":{"name":"p","uid":"u"},"port":70000})",
        R"({"pod":{"name":"p","uid":"u"},"ordinal":-1})", R"({"pod":{"name":"p","uid":"u"},"ordinal":65536})",
        R"({"pod":{"name":"p","uid":"u"},"report":{"phase":"dancing"}})",
        R"({"pod":{"name":"p","uid":"u"},"report":{"breakpoints":[{"state":"maybe"}]}})",
        R"({"pod":{"name":"p","uid":"u"},"report":{"attempt":-1}})",
        R"({"pod":{"name":"p","uid":"u"},"report":{"restored":{"bytes":"many"}}})",
        R"({"pod":{"name":"p","uid":"u"},"report":{"restored":{"ranks":{"live":-1}}}})", R"([])"}) {
    EXPECT_FALSE(sync_request_from_json(Json::parse(text))) << text;
  }
}

// The sidecar's encoder is tested with the same file, so the two ends cannot drift apart.
TEST(SyncRequest, TheExampleOfTheFormatIsRead) {
  std::ifstream file(test::source_path("docs/formats/examples/sync-request.json"));
  const Result<SyncRequest> request = sync_request_from_json(Json::parse(file));
  ASSERT_TRUE(request) << request.error().message;
  const ReportedBreakpoint& breakpoint = request->report.breakpoints.at(0);
  EXPECT_EQ(breakpoint.state, SaveState::durable);
  EXPECT_EQ(breakpoint.agreed_milliseconds, 6u);
  EXPECT_EQ(breakpoint.durable_milliseconds, 32u);
  const ReportedRestore& restored = request->report.restored.value();
  EXPECT_EQ(restored.first_step, 185u);
  EXPECT_EQ(restored.manifest_hash, "7d");
  EXPECT_EQ(restored.bytes, 1212000u);
  EXPECT_EQ(restored.ranks_expected, 4u);
  EXPECT_EQ(restored.ranks_live, 4u);
  EXPECT_EQ(restored.agreed_milliseconds, 6u);
}

TEST(SyncRequest, ARestoreWithoutFactsIsReadToo) {
  const Result<SyncRequest> request = sync_request_from_json(Json::parse(
      R"({"pod":{"name":"p","uid":"u"},"report":{"restored":{"attempt":2,"step":184,"path":"a1-s184-x"}}})"));
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->report.restored, (ReportedRestore{.attempt = 2, .step = 184, .path = "a1-s184-x"}));
}

}  // namespace
}  // namespace rekindle::op
