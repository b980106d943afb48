#include "operator/reconcile/sidecar_directory.h"

#include <gtest/gtest.h>

#include "common/base/format.h"
#include "common/base/json_fields.h"

namespace rekindle::op {
namespace {

using std::chrono::seconds;

const WallTime kStart = *parse_wall_time("2026-11-21T10:00:00Z");
const SidecarIdentity kJob{"team-a", "j1"};

std::shared_ptr<Pod> make_pod(std::int32_t index, const std::string& uid) {
  auto pod = std::make_shared<Pod>();
  pod->namespace_name = "team-a";
  pod->name = format("digits-worker-{}", index);
  pod->uid = uid;
  pod->job_uid = "j1";
  pod->task = "worker";
  pod->index = index;
  pod->phase = PodPhase::running;
  pod->is_protected = pod->injected = true;
  return pod;
}

struct Desk {
  Desk() {
    job->namespace_name = "team-a";
    job->name = "digits";
    job->uid = "j1";
    job->tasks = {{.name = "worker", .replicas = 2, .is_protected = true}};
    view = {.job = job, .pods = {make_pod(0, "u0"), make_pod(1, "u1")}};
    directory.update(view, kStart);
    directory.set_ready();
  }

  Json call(const std::string& name, const std::string& uid, const char* phase = "waiting", int attempt = 0) {
    const Json body{{"pod", {{"name", name}, {"uid", uid}}},
                    {"address", "10.0.0.9"},
                    {"port", 8471},
                    {"seen", 0},
                    {"wait_seconds", 0},
                    {"report", {{"phase", phase}, {"attempt", attempt}}}};
    last = directory.receive(kJob, dump_json(body), kStart + seconds(1));
    return last.body.empty() ? Json() : *parse_json(last.body, "answer");
  }

  std::shared_ptr<Job> job = std::make_shared<Job>();
  DirectoryView view;
  SidecarDirectory directory{kStart};
  SyncOutcome last;
};

TEST(SidecarIdentity, IsReadFromTheCertificatesUriAndNothingElse) {
  EXPECT_EQ(parse_sidecar_identity("rekindle://team-a/j1"), kJob);
  for (const char* uri : {"", "rekindle://", "rekindle://team-a", "rekindle://team-a/", "rekindle:///j1",
                          "https://team-a/j1", "rekindle://team-a/j1/x", "rekindle://team-a/j1?x"}) {
    EXPECT_FALSE(parse_sidecar_identity(uri)) << uri;
  }
}

TEST(SidecarDirectory, GoIsGivenWhenEveryPodHasCalled) {
  Desk desk;
  const Json first = desk.call("digits-worker-0", "u0");
  EXPECT_FALSE(first["go"].get<bool>());
  EXPECT_EQ(first["pods_expected"], 2);
  EXPECT_EQ(first["pods"][0]["address"], "10.0.0.9");
  EXPECT_EQ(first["pods"][1]["address"], "");
  EXPECT_TRUE(desk.call("digits-worker-1", "u1")["go"].get<bool>());
}

TEST(SidecarDirectory, APhaseOfANewerSidecarIsNoReasonToRefuseIt) {
  Desk desk;
  desk.call("digits-worker-0", "u0", "dancing", 1);
  EXPECT_EQ(desk.last.status, 200);
  EXPECT_EQ(desk.directory.reports_of(kJob).at(0).sync.unknown_phase, "dancing");
}

TEST(SidecarDirectory, GoStaysWhileSomeHaveBegunAndOthersHaveNotHeardYet) {
  Desk desk;
  desk.call("digits-worker-0", "u0");
  desk.call("digits-worker-1", "u1");
  desk.call("digits-worker-0", "u0", "restoring", 1);
  EXPECT_TRUE(desk.call("digits-worker-1", "u1")["go"].get<bool>());
  EXPECT_TRUE(desk.call("digits-worker-0", "u0", "training", 1)["go"].get<bool>());
}

TEST(SidecarDirectory, AReplacementWaitsUntilTheOldAttemptIsGone) {
  Desk desk;
  desk.call("digits-worker-0", "u0");
  desk.call("digits-worker-1", "u1");
  desk.call("digits-worker-0", "u0", "training", 1);
  desk.view.pods[1] = make_pod(1, "u9");
  desk.directory.update(desk.view, kStart + seconds(5));
  EXPECT_FALSE(desk.call("digits-worker-1", "u9")["go"].get<bool>());
  desk.view.pods[0] = make_pod(0, "u8");
  desk.directory.update(desk.view, kStart + seconds(9));
  EXPECT_TRUE(desk.call("digits-worker-0", "u8")["go"].get<bool>());
}

TEST(SidecarDirectory, ADyingPodIsOldAndHoldsGo) {
  Desk desk;
  auto dying = std::make_shared<Pod>(*desk.view.pods[0]);
  dying->deletion_time = kStart + seconds(30);
  desk.view.pods[0] = dying;
  desk.directory.update(desk.view, kStart);
  desk.call("digits-worker-0", "u0");
  const Json answer = desk.call("digits-worker-1", "u1");
  EXPECT_TRUE(answer["pods"][0]["old"].get<bool>());
  EXPECT_FALSE(answer["go"].get<bool>());
}

TEST(SidecarDirectory, APodThatARestartLeftAliveIsOneOfTheNewAttempt) {
  Desk desk;
  desk.job->version = 3;
  desk.job->phase = JobPhase::restarting;
  desk.directory.update(desk.view, kStart);
  desk.call("digits-worker-0", "u0");
  EXPECT_FALSE(desk.call("digits-worker-1", "u1")["go"].get<bool>());
  desk.job->phase = JobPhase::pending;
  desk.job->phase_since = kStart + seconds(2);
  desk.directory.update(desk.view, kStart + seconds(2));
  EXPECT_TRUE(desk.call("digits-worker-1", "u1")["go"].get<bool>());
}

TEST(SidecarDirectory, ARecoveryHoldsGo) {
  Desk desk;
  desk.view.hold_start = true;
  desk.directory.update(desk.view, kStart);
  desk.call("digits-worker-0", "u0");
  EXPECT_FALSE(desk.call("digits-worker-1", "u1")["go"].get<bool>());
}

TEST(SidecarDirectory, AnAnswerThatIsKnownAlreadyIsHeld) {
  Desk desk;
  const Json answer = desk.call("digits-worker-0", "u0");
  const Json body{{"pod", {{"name", "digits-worker-0"}, {"uid", "u0"}}},
                  {"address", "10.0.0.9"},
                  {"port", 8471},
                  {"seen", answer["version"]},
                  {"wait_seconds", 25},
                  {"report", {{"phase", "waiting"}}}};
  const SyncOutcome held = desk.directory.receive(kJob, dump_json(body), kStart + seconds(2));
  EXPECT_TRUE(held.hold);
  EXPECT_EQ(held.wait, seconds(25));
  EXPECT_FALSE(held.report_changed);
  desk.call("digits-worker-1", "u1");
  EXPECT_NE(desk.directory.version_of(kJob), answer["version"].get<std::uint64_t>());
}

TEST(SidecarDirectory, ASidecarThatKnowsANewerVersionOfAnEarlierOperatorIsAnsweredAtOnce) {
  Desk desk;
  const Json body{
      {"pod", {{"name", "digits-worker-0"}, {"uid", "u0"}}}, {"seen", 99999999999999ull}, {"wait_seconds", 25}};
  EXPECT_FALSE(desk.directory.receive(kJob, dump_json(body), kStart).hold);
}

TEST(SidecarDirectory, OrdersGoToEverySidecarAndTheTimeLeftAloneWakesNobody) {
  Desk desk;
  desk.view.orders = {{.breakpoint = "b", .detail = "d", .seconds_left = 30}};
  desk.directory.update(desk.view, kStart);
  const Json answer = desk.call("digits-worker-1", "u1");
  EXPECT_EQ(answer["orders"][0],
            Json::parse(R"({"breakpoint":"b","cause":"operator","detail":"d","seconds_left":30,"after":"park"})"));
  const std::uint64_t version = desk.directory.version_of(kJob);
  desk.view.orders[0].seconds_left = 29;
  desk.directory.update(desk.view, kStart + seconds(1));
  EXPECT_EQ(desk.directory.version_of(kJob), version);
}

TEST(SidecarDirectory, RefusesWithTheDocumentedStatus) {
  Desk desk;
  const std::string body = R"({"pod":{"name":"digits-worker-0","uid":"u0"}})";
  EXPECT_EQ(desk.directory.receive({"team-a", "other"}, body, kStart).status, 404);
  EXPECT_EQ(desk.directory.receive({"team-b", "j1"}, body, kStart).status, 404);
  EXPECT_EQ(desk.directory.receive(kJob, "nonsense", kStart).status, 400);
  EXPECT_EQ(desk.directory.receive(kJob, R"({"pod":{"name":"digits-worker-7","uid":"u0"}})", kStart).status, 403);
  EXPECT_EQ(desk.directory.receive(kJob, R"({"pod":{"name":"digits-worker-7","uid":"u7"}})", kStart).status, 503);
  EXPECT_EQ(SidecarDirectory(kStart).receive(kJob, body, kStart).status, 503);
}

TEST(SidecarDirectory, WhatAPodReportedLastOutlivesItForAWhile) {
  Desk desk;
  desk.call("digits-worker-0", "u0", "parked", 1);
  desk.view.pods.erase(desk.view.pods.begin());
  desk.directory.update(desk.view, kStart + seconds(10));
  EXPECT_EQ(desk.directory.reports_of(kJob).size(), 1u);
  desk.directory.update(desk.view, kStart + seconds(10 + 15 * 60));
  EXPECT_TRUE(desk.directory.reports_of(kJob).empty());
}

TEST(SidecarDirectory, ACallWithoutAReportKeepsTheLastOne) {
  Desk desk;
  desk.call("digits-worker-0", "u0", "training", 3);
  desk.directory.receive(kJob, R"({"pod":{"name":"digits-worker-0","uid":"u0"},"address":"10.0.0.10"})",
                         kStart + seconds(9));
  const SidecarReport report = desk.directory.reports_of(kJob).at(0);
  EXPECT_EQ(report.sync.attempt, 3u);
  EXPECT_EQ(report.sender.address, "10.0.0.10");
  EXPECT_EQ(report.attempt_since, kStart + seconds(1));
}

TEST(SidecarDirectory, AnUnprotectedOrForgottenJobIsUnknown) {
  Desk desk;
  desk.directory.forget(kJob);
  EXPECT_EQ(desk.directory.answer(kJob).status, 404);
  EXPECT_EQ(desk.directory.version_of(kJob), 0u);
}

}  // namespace
}  // namespace rekindle::op
