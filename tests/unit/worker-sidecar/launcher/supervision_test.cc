#include "worker-sidecar/launcher/supervision.h"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "common/base/format.h"

namespace rekindle::launcher {
namespace {

using namespace std::chrono_literals;

std::string text_of(const SupervisionAction& action) {
  if (const auto* save = std::get_if<SaveBecauseRankEnded>(&action))
    return format("save rank={} code={}", save->rank, save->exit_code);
  if (std::holds_alternative<SaveBecauseTerminated>(action)) return "save terminated";
  if (const auto* signal = std::get_if<SignalRanks>(&action)) return signal->signal == SIGTERM ? "SIGTERM" : "SIGKILL";
  const auto& over = std::get<LifeOver>(action);
  return format("over code={}{}", over.exit_code, over.terminated ? " terminated" : "");
}

// One life of two ranks; at(seconds).on(event) gives the actions as text.
class Life {
 public:
  explicit Life(bool saves_on_terminate = true)
      : machine_({.ranks = {0, 1}, .deadline = 60s, .saves_on_terminate = saves_on_terminate}) {}
  Life& at(Duration since_start) {
    now_ = Instant(since_start);
    return *this;
  }
  std::string on(const SupervisionEvent& event) {
    std::string text;
    for (const SupervisionAction& action : machine_.advance(event, now_))
      text += (text.empty() ? "" : ", ") + text_of(action);
    return text;
  }
  Supervision& machine() { return machine_; }

 private:
  Supervision machine_;
  Instant now_{};
};

TEST(Supervision, AllRanksThatEndWellEndTheRunWell) {
  Life life;
  EXPECT_EQ(life.on(RankEnded{0, 0}), "");
  EXPECT_EQ(life.on(RankEnded{1, 0}), "over code=0");
  EXPECT_TRUE(life.machine().over());
}

TEST(Supervision, ADeadRankIsSavedBeforeTheOthersAreTouched) {
  Life life;
  EXPECT_EQ(life.at(10s).on(RankEnded{1, 137}), "save rank=1 code=137");
  EXPECT_EQ(life.at(30s).on(TimePassed{}), "");
  EXPECT_EQ(life.at(31s).on(SaveEnded{}), "");
  EXPECT_EQ(life.at(31s).on(RankEnded{0, 143}), "over code=137");
}

TEST(Supervision, ABreakpointThatTakesTooLongDoesNotHoldTheRunForEver) {
  Life life;
  life.at(10s).on(RankEnded{1, 137});
  EXPECT_EQ(life.at(70s).on(TimePassed{}), "SIGTERM");
  EXPECT_EQ(life.at(75s).on(TimePassed{}), "SIGKILL");
  EXPECT_EQ(life.at(75s).on(RankEnded{0, 137}), "over code=137");
}

TEST(Supervision, TimeInWhichEverythingWasFrozenIsNotTimeThatABreakpointHad) {
  Life life;
  life.at(10s).on(RankEnded{1, 137});
  EXPECT_EQ(life.at(72s).on(TimePassed{}), "");
  EXPECT_EQ(life.at(73s).on(SaveEnded{}), "");
  EXPECT_EQ(life.at(73s).on(RankEnded{0, 143}), "over code=137");
}

TEST(Supervision, ARankThatDoesNotLeaveAfterTheBreakpointIsEnded) {
  Life life;
  life.at(10s).on(RankEnded{1, 3});
  life.at(11s).on(SaveEnded{});
  EXPECT_EQ(life.at(13s).on(TimePassed{}), "SIGTERM");
  EXPECT_EQ(life.at(18s).on(TimePassed{}), "SIGKILL");
  EXPECT_EQ(life.at(23s).on(TimePassed{}), "over code=3");
}

TEST(Supervision, TheLastRankToDieIsStillSaved) {
  Life life;
  life.on(RankEnded{0, 137});
  EXPECT_EQ(life.on(RankEnded{1, 137}), "");
  EXPECT_EQ(life.on(SaveEnded{}), "over code=137");
}

TEST(Supervision, TerminationSavesFirstAndEndsWith143) {
  Life life;
  EXPECT_EQ(life.on(TerminateRequested{}), "save terminated");
  EXPECT_EQ(life.on(SaveEnded{}), "");
  EXPECT_EQ(life.on(RankEnded{0, 143}), "");
  EXPECT_EQ(life.on(RankEnded{1, 143}), "over code=143 terminated");
}

TEST(Supervision, ASecondSignalDoesNotWait) {
  Life life;
  life.on(TerminateRequested{});
  EXPECT_EQ(life.on(TerminateRequested{}), "SIGTERM");
}

TEST(Supervision, TerminationWhileADeathIsBeingSavedForbidsTheRestart) {
  Life life;
  life.on(RankEnded{0, 137});
  EXPECT_EQ(life.on(TerminateRequested{}), "");
  life.on(SaveEnded{});
  EXPECT_EQ(life.on(RankEnded{1, 143}), "over code=143 terminated");
}

TEST(Supervision, InAPodTerminationIsForwardedAtOnce) {
  Life life(false);
  EXPECT_EQ(life.at(1s).on(TerminateRequested{}), "SIGTERM");
  EXPECT_EQ(life.at(6s).on(TimePassed{}), "SIGKILL");
}

TEST(Supervision, ARankThatWasStoppedByAnOrderIsNoGoodEnd) {
  Life life;
  EXPECT_EQ(life.on(RankEnded{0, 143}), "save rank=0 code=143");
}

}  // namespace
}  // namespace rekindle::launcher
