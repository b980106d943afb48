#include "operator/model/breakpoint.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/unit/operator/model/yaml.h"

namespace rekindle::op {
namespace {

TEST(Breakpoint, ComesBackAsItWasWritten) {
  Breakpoint written{.namespace_name = "team-a", .name = "b", .owner_uid = "j1"};
  written.spec = {.job_name = "digits",
                  .job_uid = "j1",
                  .trigger = Trigger::container_died,
                  .requested_by = "rekindle-operator",
                  .deadline = std::chrono::seconds(90),
                  .reason = "container main died",
                  .attempt = 3,
                  .broken = PodRef{"p", "u"},
                  .pods = {{"p", "u"}, {"q", "v"}}};
  BreakpointStatus& status = written.status;
  status = {.state = BreakpointState::restored,
            .attempt = 3,
            .step = 184,
            .ranks_saved = 4,
            .ranks_expected = 4,
            .bytes = 1258291,
            .agreed_milliseconds = 6,
            .durable_milliseconds = 4100,
            .path = "a3-s184-x",
            .manifest_hash = "h",
            .restart_time = parse_wall_time("2026-11-20T10:00:00Z"),
            .restored_attempt = 4,
            .restored_step = 184,
            .first_step = 185,
            .message = "resumed"};
  set_condition(status, "Durable", "True", "Published", "published", *parse_wall_time("2026-11-20T10:00:00Z"));
  Json object = breakpoint_to_json(written);
  object["status"] = breakpoint_status_to_json(status, 1);
  const Result<Breakpoint> read = breakpoint_from_json(object);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, written);
  EXPECT_EQ(object["status"]["ranks"], "4/4");
  EXPECT_EQ(object["status"]["size"], "1.2Mi");
  EXPECT_EQ(object["status"]["durableIn"], "4.1s");
}

// Statuses are merged into what is there: what is left out would stay as an earlier round said it.
TEST(Breakpoint, NobodyWhoSavedIsANumberToo) {
  const Json status = breakpoint_status_to_json({.step = 184, .ranks_saved = 0, .ranks_expected = 4}, 1);
  EXPECT_EQ(status.at("ranksSaved"), 0);
  EXPECT_EQ(status.at("ranks"), "0/4");
}

TEST(Breakpoint, ByHandTakesAJobAndNothingElse) {
  const Result<Breakpoint> read =
      breakpoint_from_json(parse_yaml("{metadata: {name: now}, spec: {jobRef: {name: digits}}}"));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->spec.trigger, Trigger::user);
  EXPECT_EQ(read->spec.deadline, std::chrono::seconds(60));
  EXPECT_EQ(read->status.state, BreakpointState::requested);
}

TEST(Breakpoint, WrongValuesAreNamed) {
  EXPECT_EQ(breakpoint_from_json(parse_yaml("{metadata: {name: b}, spec: {jobRef: {}}}")).error().message,
            "breakpoint jobRef: name is missing");
  EXPECT_EQ(breakpoint_from_json(parse_yaml("{metadata: {name: b}, spec: {jobRef: {name: j}, deadline: soon}}"))
                .error()
                .message,
            "breakpoint spec: deadline must be a duration such as 60s or 2m");
  EXPECT_FALSE(breakpoint_from_json(parse_yaml("{metadata: {name: b}}")));
}

TEST(Breakpoint, AConditionKeepsItsTimeWhileItHolds) {
  BreakpointStatus status;
  const WallTime first = *parse_wall_time("2026-11-20T10:00:00Z");
  set_condition(status, "Restored", "Unknown", "Restarting", "one", first);
  set_condition(status, "Restored", "Unknown", "Restarting", "two", first + std::chrono::seconds(5));
  EXPECT_EQ(find_condition(status, "Restored")->last_transition, first);
  EXPECT_EQ(find_condition(status, "Restored")->message, "two");
  set_condition(status, "Restored", "True", "Resumed", "three", first + std::chrono::seconds(9));
  EXPECT_EQ(find_condition(status, "Restored")->last_transition, first + std::chrono::seconds(9));
  EXPECT_EQ(status.conditions.size(), 1u);
}

TEST(BreakpointName, IsAFunctionOfTheFault) {
  EXPECT_EQ(breakpoint_name("digits", 1, "j/p"), breakpoint_name("digits", 1, "j/p"));
  std::set<std::string> names;
  for (int i = 0; i < 1000; ++i) names.insert(breakpoint_name("digits", 1, "job-uid/" + std::to_string(i)));
  EXPECT_EQ(names.size(), 1000u);
  EXPECT_LE(breakpoint_name(std::string(253, 'x'), 12345, "k").size(), 253u);
}

TEST(HumanNumbers, ReadAsKubectlPrintsThem) {
  EXPECT_EQ(human_bytes(812), "812");
  EXPECT_EQ(human_bytes(1258291), "1.2Mi");
  EXPECT_EQ(human_bytes(300ull << 30), "300Gi");
  EXPECT_EQ(human_milliseconds(31), "31ms");
  EXPECT_EQ(human_milliseconds(60000), "60.0s");
}

TEST(Trigger, KnowsTheSidecarsCauses) {
  for (const TriggerCause cause :
       {TriggerCause::hook, TriggerCause::operator_order, TriggerCause::rank_died, TriggerCause::pod_lost,
        TriggerCause::collective_failed, TriggerCause::user, TriggerCause::terminated}) {
    EXPECT_NE(trigger_from_cause(cause), Trigger::other) << to_string(cause);
  }
  EXPECT_EQ(trigger_from_cause(TriggerCause::unknown), Trigger::other);
}

}  // namespace
}  // namespace rekindle::op
