#include "operator/controller/watch_machine.h"

#include <gtest/gtest.h>

#include <set>

#include "common/base/format.h"

namespace rekindle::op {
namespace {

using namespace std::chrono_literals;

Json pod(const std::string& name, const std::string& version) {
  return {{"metadata", {{"namespace", "a"}, {"name", name}, {"resourceVersion", version}}}};
}

std::string text_of(const StoreEvent<Json>& event) {
  struct Text {
    std::string operator()(const Init&) const { return "init"; }
    std::string operator()(const InitApply<Json>& one) const { return "init " + one.key.name; }
    std::string operator()(const InitKeep& one) const { return "keep " + one.key.name; }
    std::string operator()(const InitDone&) const { return "init done"; }
    std::string operator()(const Apply<Json>& one) const { return "apply " + one.key.name; }
    std::string operator()(const Delete<Json>& one) const { return "delete " + one.key.name; }
  };
  return std::visit(Text{}, event);
}

// Drives a machine in virtual time and keeps what it asks for as one line of text an input.
class WatchMachineTest : public testing::Test {
 protected:
  std::string give(watch::Input input) {
    std::string text;
    for (const watch::Output& output : machine.advance(std::move(input), now)) {
      if (!text.empty()) text += "; ";
      if (const auto* list = std::get_if<watch::SendList>(&output)) {
        text += format("list {} limit {}", list->continue_token.empty() ? "first" : list->continue_token, list->limit);
      } else if (const auto* open = std::get_if<watch::OpenWatch>(&output)) {
        text += "watch " + open->resource_version;
        last_timeout = open->timeout;
      } else if (std::holds_alternative<watch::CloseWatch>(output)) {
        text += "close";
      } else if (const auto* emit = std::get_if<watch::Emit>(&output)) {
        text += text_of(emit->event);
      } else if (const auto* wake = std::get_if<watch::WakeAt>(&output)) {
        wake_at = wake->when;
        text += "wake";
      } else {
        text += "trouble";
        troubles.push_back(std::get<watch::Trouble>(output).next);
      }
    }
    return text;
  }

  std::string page(std::vector<Json> items, const std::string& version, const std::string& token = "") {
    return give(watch::PageArrived{{.items = std::move(items), .resource_version = version, .continue_token = token}});
  }
  std::string line(WatchEventKind kind, Json object, const std::string& version) {
    return give(watch::WatchLine{WatchEvent{.kind = kind, .object = std::move(object), .resource_version = version}});
  }
  std::string error_line(int code, std::optional<Duration> retry_after = std::nullopt) {
    return give(watch::WatchLine{
        WatchEvent{.kind = WatchEventKind::error, .status = {.code = code, .retry_after = retry_after}}});
  }
  std::string closed() { return give(watch::StreamClosed{}); }
  std::string closed(ErrorCode code, std::optional<Duration> retry_after = std::nullopt) {
    return give(watch::StreamClosed{Error{code, "broken", Retry::yes}, retry_after});
  }
  std::string list_failed(ErrorCode code, std::optional<Duration> retry_after = std::nullopt) {
    return give(watch::ListFailed{Error{code, "refused", Retry::yes}, retry_after});
  }
  std::string tick() { return give(watch::Tick{}); }

  // To where a watch from version 10 is open.
  void start_watching() {
    ASSERT_EQ(tick(), "list first limit 500");
    ASSERT_EQ(page({pod("p", "9")}, "10"), "init; init p; init done; watch 10; wake");
  }

  // Sleeps as the machine asked and ticks.
  std::string wake_up() {
    now = wake_at;
    return tick();
  }

  WatchSettings settings{.backoff = {.jitter = 0}};
  WatchMachine machine{settings, 1};
  Instant now{1h};
  Instant wake_at{};
  std::chrono::seconds last_timeout{};
  std::vector<std::string> troubles;
};

TEST_F(WatchMachineTest, ListsByPagesAndThenWatchesFromTheVersionOfTheList) {
  EXPECT_EQ(tick(), "list first limit 500");
  EXPECT_EQ(page({pod("a", "1"), pod("b", "2")}, "10", "t1"), "init; init a; init b; list t1 limit 500");
  EXPECT_EQ(page({pod("c", "3")}, "10", "t2"), "init c; list t2 limit 500");
  EXPECT_EQ(page({}, "10"), "init done; watch 10; wake");
  EXPECT_EQ(name_of(machine.state()), "watching");
}

TEST_F(WatchMachineTest, ChangesAreEmittedInOrder) {
  start_watching();
  EXPECT_EQ(line(WatchEventKind::added, pod("q", "11"), "11"), "apply q");
  EXPECT_EQ(line(WatchEventKind::modified, pod("q", "12"), "12"), "apply q");
  EXPECT_EQ(line(WatchEventKind::deleted, pod("q", "13"), "13"), "delete q");
}

TEST_F(WatchMachineTest, ClosedStreamResumesFromLastVersion) {
  start_watching();
  line(WatchEventKind::modified, pod("p", "17"), "17");
  now += 300s;
  EXPECT_EQ(closed(), "watch 17; wake");
  EXPECT_TRUE(troubles.empty());
}

TEST_F(WatchMachineTest, BookmarkAdvancesVersionWithoutAnEvent) {
  start_watching();
  EXPECT_EQ(line(WatchEventKind::bookmark, pod("", "99"), "99"), "");
  now += 60s;
  EXPECT_EQ(closed(), "watch 99; wake");
}

TEST_F(WatchMachineTest, GoneDuringWatchRelistsFromEmpty) {
  start_watching();
  EXPECT_EQ(error_line(410), "trouble; close");
  EXPECT_EQ(closed(), "list first limit 500");
  EXPECT_EQ(page({}, "50"), "init; init done; watch 50; wake");
  EXPECT_EQ(troubles, (std::vector<std::string>{"lists anew at once"}));
}

TEST_F(WatchMachineTest, GoneAsTheAnswerToAWatchRelistsFromEmpty) {
  start_watching();
  EXPECT_EQ(closed(ErrorCode::gone), "trouble; list first limit 500");
}

TEST_F(WatchMachineTest, GoneAgainAndAgainIsSlowedDown) {
  start_watching();
  EXPECT_EQ(closed(ErrorCode::gone), "trouble; list first limit 500");
  page({}, "20");
  EXPECT_EQ(closed(ErrorCode::gone), "trouble; wake");
  EXPECT_EQ(wake_at, now + 1600ms);
  EXPECT_EQ(wake_up(), "list first limit 500");
}

TEST_F(WatchMachineTest, SilentStreamIsClosedAfterIdleLimit) {
  start_watching();
  EXPECT_EQ(wake_at, now + 100s);
  now += 60s;
  line(WatchEventKind::bookmark, pod("", "11"), "11");
  now += 40s;
  EXPECT_EQ(tick(), "wake");
  EXPECT_EQ(wake_at, now + 60s);
  EXPECT_EQ(wake_up(), "trouble; close");
  EXPECT_EQ(closed(ErrorCode::unavailable), "watch 11; wake");
}

TEST_F(WatchMachineTest, BrokenStreamResumesAfterAPause) {
  start_watching();
  line(WatchEventKind::modified, pod("p", "17"), "17");
  EXPECT_EQ(closed(ErrorCode::unavailable), "trouble; wake");
  EXPECT_EQ(wake_at, now + 800ms);
  EXPECT_EQ(wake_up(), "watch 17; wake");
  EXPECT_EQ(troubles, (std::vector<std::string>{"watches again from version 17 in 0.8 s"}));
}

TEST_F(WatchMachineTest, PausesDoubleToThirtySecondsAndResetAfterTwoQuietMinutes) {
  start_watching();
  std::vector<Duration> pauses;
  for (int i = 0; i < 8; ++i) {
    closed(ErrorCode::unavailable);
    pauses.push_back(wake_at - now);
    wake_up();
  }
  EXPECT_EQ(pauses, (std::vector<Duration>{800ms, 1600ms, 3200ms, 6400ms, 12800ms, 25600ms, 30s, 30s}));
  now += 120s;
  closed(ErrorCode::unavailable);
  EXPECT_EQ(wake_at - now, 800ms);
}

TEST_F(WatchMachineTest, RetryAfterOfTheServerWinsOverAShorterPause) {
  EXPECT_EQ(tick(), "list first limit 500");
  EXPECT_EQ(list_failed(ErrorCode::unavailable, 7s), "trouble; wake");
  EXPECT_EQ(wake_at, now + 7s);
  EXPECT_EQ(wake_up(), "list first limit 500");
  EXPECT_EQ(list_failed(ErrorCode::unavailable, 1s), "trouble; wake");
  EXPECT_EQ(wake_at, now + 1600ms);
}

TEST_F(WatchMachineTest, RetryAfterInTheStreamIsObeyed) {
  start_watching();
  EXPECT_EQ(error_line(429, 5s), "trouble; close");
  EXPECT_EQ(closed(), "wake");
  EXPECT_EQ(wake_at, now + 5s);
  EXPECT_EQ(wake_up(), "watch 10; wake");
}

TEST_F(WatchMachineTest, RetryAfterOfARefusedWatchIsObeyed) {
  start_watching();
  EXPECT_EQ(closed(ErrorCode::unavailable, 9s), "trouble; wake");
  EXPECT_EQ(wake_at, now + 9s);
}

TEST_F(WatchMachineTest, FailedPageIsAskedForAgain) {
  tick();
  page({pod("a", "1")}, "10", "t1");
  EXPECT_EQ(list_failed(ErrorCode::unavailable), "trouble; wake");
  EXPECT_EQ(wake_up(), "list t1 limit 500");
  EXPECT_EQ(page({pod("b", "1")}, "10"), "init b; init done; watch 10; wake");
}

TEST_F(WatchMachineTest, ExpiredContinueTokenListsAnewInOnePage) {
  tick();
  page({pod("a", "1")}, "10", "t1");
  EXPECT_EQ(list_failed(ErrorCode::gone), "trouble; list first limit 0");
  EXPECT_EQ(page({pod("a", "1")}, "12"), "init; init a; init done; watch 12; wake");
}

TEST_F(WatchMachineTest, StreamThatEndsAtOnceWithoutAWordIsAFailure) {
  start_watching();
  EXPECT_EQ(closed(), "trouble; wake");
  EXPECT_EQ(wake_up(), "watch 10; wake");
}

TEST_F(WatchMachineTest, UnreadableLineListsAnew) {
  start_watching();
  EXPECT_EQ(give(watch::WatchLine{fail(ErrorCode::invalid_input, "no JSON")}), "trouble; close");
  EXPECT_EQ(closed(), "wake");
  EXPECT_EQ(wake_up(), "list first limit 500");
}

TEST_F(WatchMachineTest, ChangeWithoutANameListsAnew) {
  start_watching();
  EXPECT_EQ(line(WatchEventKind::added, Json::object(), "11"), "trouble; close");
  EXPECT_EQ(closed(), "wake");
  EXPECT_EQ(wake_up(), "list first limit 500");
}

TEST_F(WatchMachineTest, ObjectWithoutANameIsLeftOutOfTheList) {
  tick();
  EXPECT_EQ(page({pod("a", "1"), Json::object(), pod("b", "1")}, "10"),
            "init; init a; trouble; init b; init done; watch 10; wake");
}

TEST_F(WatchMachineTest, LinesBehindACloseAreDropped) {
  start_watching();
  error_line(500);
  EXPECT_EQ(line(WatchEventKind::added, pod("late", "12"), "12"), "");
  closed();
  EXPECT_EQ(wake_up(), "watch 10; wake");
}

TEST_F(WatchMachineTest, ErrorThatResumingCannotCureListsAnew) {
  start_watching();
  EXPECT_EQ(error_line(400), "trouble; close");
  EXPECT_EQ(closed(), "wake");
  EXPECT_EQ(wake_up(), "list first limit 500");
}

TEST_F(WatchMachineTest, EarlyTickKeepsWaiting) {
  start_watching();
  closed(ErrorCode::unavailable);
  now += 100ms;
  EXPECT_EQ(tick(), "wake");
  EXPECT_EQ(wake_at, now + 700ms);
}

TEST_F(WatchMachineTest, EachStreamAsksForAnotherTimeWithinItsBounds) {
  start_watching();
  std::set<std::int64_t> seen;
  for (int i = 0; i < 50; ++i) {
    now += 300s;
    closed();
    EXPECT_GE(last_timeout, 300s);
    EXPECT_LE(last_timeout, 600s);
    seen.insert(last_timeout.count());
  }
  EXPECT_GT(seen.size(), 10u);
}

TEST_F(WatchMachineTest, TheSameSeedGivesTheSamePauses) {
  const auto pauses_of = [](std::uint64_t seed) {
    WatchMachine one({}, seed);
    std::vector<Instant> wakes;
    Instant time{1h};
    one.advance(watch::Tick{}, time);
    for (int i = 0; i < 5; ++i) {
      const auto outputs = one.advance(watch::ListFailed{Error{ErrorCode::unavailable, "", Retry::yes}, {}}, time);
      time = std::get<watch::WakeAt>(outputs.back()).when;
      wakes.push_back(time);
      one.advance(watch::Tick{}, time);
    }
    return wakes;
  };
  EXPECT_EQ(pauses_of(3), pauses_of(3));
  EXPECT_NE(pauses_of(3), pauses_of(4));
}

TEST_F(WatchMachineTest, AnAnswerThatIsTooLargeIsAskedForInSmallerPages) {
  ASSERT_EQ(tick(), "list first limit 500");
  EXPECT_EQ(list_failed(ErrorCode::exhausted), "trouble; list first limit 125");
  EXPECT_EQ(troubles.back(), "asks for 125 objects a page at once");
  EXPECT_EQ(list_failed(ErrorCode::exhausted), "trouble; list first limit 31");
  EXPECT_EQ(page({pod("p", "9")}, "10", "more"), "init; init p; list more limit 31") << "the next page is as large";
  EXPECT_EQ(list_failed(ErrorCode::exhausted), "trouble; list more limit 7");
  EXPECT_EQ(list_failed(ErrorCode::exhausted), "trouble; list more limit 1");
  EXPECT_EQ(list_failed(ErrorCode::exhausted), "trouble; wake") << "no page is smaller: any other failure";
}

TEST_F(WatchMachineTest, AListInOnePageThatIsTooLargeIsPagedAfterAll) {
  ASSERT_EQ(tick(), "list first limit 500");
  ASSERT_EQ(page({}, "10", "more"), "init; list more limit 500");
  ASSERT_EQ(list_failed(ErrorCode::gone), "trouble; list first limit 0");
  EXPECT_EQ(list_failed(ErrorCode::exhausted), "trouble; list first limit 125");
}

TEST_F(WatchMachineTest, AnObjectThatIsTooLargeKeepsItsLastGoodStateAndHurtsNoOther) {
  const TooLargeObject large{pod("large", "9"), {ErrorCode::invalid_input, "too many values", Retry::no}};
  ASSERT_EQ(tick(), "list first limit 500");
  EXPECT_EQ(give(watch::PageArrived{{.items = {pod("p", "8")}, .too_large = {large}, .resource_version = "10"}}),
            "init; init p; keep large; trouble; init done; watch 10; wake");
  WatchEvent changed{.kind = WatchEventKind::modified,
                     .object = pod("large", "11"),
                     .resource_version = "11",
                     .too_large = large.error};
  EXPECT_EQ(give(watch::WatchLine{changed}), "trouble");
  EXPECT_EQ(troubles.back(), "keeps what was known of it");
  changed.kind = WatchEventKind::deleted;
  EXPECT_EQ(give(watch::WatchLine{changed}), "delete large");
  EXPECT_EQ(closed(), "watch 11; wake") << "what could not be read does not come again";
}

}  // namespace
}  // namespace rekindle::op
