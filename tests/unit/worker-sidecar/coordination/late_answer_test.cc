// A leader and what others send to it, in any order: answers to Collect that are older than what it
// knows, of a pod that was lost meanwhile, or about ranks of others; and triggers with less time.
#include <gtest/gtest.h>

#include <algorithm>

#include "worker-sidecar/checkpoint/layout.h"
#include "worker-sidecar/coordination/coordination.h"

namespace rekindle::sidecar {
namespace {

const Layout kLayout{{whole_tensor("w", Dtype::f32, {100, 2})}};

class Leader {
 public:
  explicit Leader(std::uint32_t pods) : machine({.pods = pods}) {
    PeerTableSeen table{{{0, false}}, true};
    handle(RankConnected{.rank = 0});
    for (std::uint32_t pod = 1; pod < pods; ++pod) {
      handle(PeerConnected{pod});
      table.pods.push_back({pod, false});
    }
    handle(table);
    for (std::uint32_t pod = 1; pod < pods; ++pod) receive(pod, ready(pod, ReadyState::connected));
    handle(RankRegistered{0, {.layout = kLayout}});
    for (std::uint32_t pod = 1; pod < pods; ++pod) receive(pod, ready(pod, ReadyState::registered));
    handle(CandidatesListed{std::vector<RestoreCandidate>{}});
    handle(RankLoaded{0, {.ok = true}});
    for (std::uint32_t pod = 1; pod < pods; ++pod) receive(pod, PodLoadedMessage{.ordinal = pod, .ok = true});
    handle(AttemptClaimed{.attempt = 1u, .failures = {}});
  }

  void handle(const CoordinationEvent& event) {
    now += std::chrono::milliseconds(1);
    for (const CoordinationOutput& output : machine.advance(event, now)) outputs.push_back(output);
  }
  void receive(std::uint32_t pod, PeerMessage message) {
    handle(PeerMessageArrived{pod, machine.attempt(), std::move(message)});
  }
  // That pod's answer in the first round: its rank computes the step after 12.
  void receive_answer(std::uint32_t pod) {
    receive(pod,
            CollectedMessage{
                .term = make_term(1, 0),
                .ordinal = pod,
                .ranks = {{.rank = pod, .alive = true, .clean = true, .step = 12, .phase = RankPhase::computing}}});
  }
  void wait(Duration time) {
    for (const Instant until = now + time; now < until;) {
      now = std::min(until, std::max(now, machine.next_wake().value_or(until)));
      handle(Tick{});
    }
  }

  template <typename Output>
  std::vector<Output> all() const {
    std::vector<Output> found;
    for (const CoordinationOutput& output : outputs) {
      if (const auto* one = std::get_if<Output>(&output)) found.push_back(*one);
    }
    return found;
  }

  Coordination machine;
  Instant now{std::chrono::hours(1)};
  std::vector<CoordinationOutput> outputs;

 private:
  static ReadyMessage ready(std::uint32_t pod, ReadyState state) {
    ReadyMessage message{.ordinal = pod, .ranks = {{pod, state}}};
    if (state == ReadyState::registered) message.layout_hash = layout_hash(kLayout);
    return message;
  }
};

const RankStatus kAt12{.step = 12, .phase = RankPhase::computing};

TEST(LateAnswer, OfALostPodCostsARoundAndNotTheCheckpoint) {
  Leader leader(2);
  leader.handle(HookCalled{.hook = 1, .container = "main", .seconds_left = 30});
  leader.handle(RankSeen{0, kAt12});
  leader.handle(PeerLost{1});
  leader.receive_answer(1);
  leader.wait(std::chrono::seconds(2));
  ASSERT_EQ(leader.all<CreateFolder>().size(), 1u);
  leader.handle(FolderCreated{leader.all<CreateFolder>()[0].term, "a1-s12-n1"});
  EXPECT_EQ(leader.all<RemoveFolder>().size(), 1u) << "a writer of the round is gone";
  leader.handle(RankSeen{0, kAt12});
  leader.wait(std::chrono::seconds(2));
  ASSERT_EQ(leader.all<CreateFolder>().size(), 2u);
  leader.handle(FolderCreated{leader.all<CreateFolder>()[1].term, "a1-s12-n2"});
  ASSERT_FALSE(leader.all<StartWrite>().empty());
  EXPECT_EQ(leader.all<StartWrite>().back().write.path, "a1-s12-n2");
}

TEST(LateAnswer, OfBeforeALossIsWorthNothingWhenThePodIsBack) {
  Leader leader(3);
  leader.handle(HookCalled{.hook = 1, .container = "main", .seconds_left = 30});
  leader.handle(RankSeen{0, kAt12});
  leader.receive_answer(1);
  leader.handle(PeerLost{1});
  leader.handle(PeerConnected{1});
  leader.receive_answer(2);
  EXPECT_TRUE(leader.all<CreateFolder>().empty()) << "pod 1 is asked again: nobody leaves its ranks out";
  leader.receive_answer(1);
  EXPECT_EQ(leader.all<CreateFolder>().size(), 1u);
}

TEST(Answer, AboutARankOfAnotherPodIsNotBelieved) {
  Leader leader(3);
  leader.handle(PeerLost{1});
  leader.handle(HookCalled{.hook = 1, .container = "main", .seconds_left = 30});
  leader.handle(RankSeen{0, kAt12});
  leader.receive(2,
                 CollectedMessage{
                     .term = make_term(1, 0),
                     .ordinal = 2,
                     .ranks = {{.rank = 1, .alive = true, .clean = true, .step = 13, .phase = RankPhase::computing},
                               {.rank = 2, .alive = true, .clean = true, .step = 12, .phase = RankPhase::computing}}});
  leader.wait(std::chrono::seconds(20));
  ASSERT_FALSE(leader.all<CreateFolder>().empty());
  EXPECT_EQ(leader.all<CreateFolder>()[0].step, 12u);
}

TEST(Trigger, OfTwoTheShorterTimeCounts) {
  for (const auto& [first, second] : {std::pair(60.0, 5.0), std::pair(5.0, 60.0)}) {
    Leader leader(2);
    for (const double seconds_left : {first, second})
      leader.receive(
          1, TriggerMessage{
                 .cause = TriggerCause::hook, .pod = 1, .seconds_left = seconds_left, .after = AfterBreakpoint::park});
    // Nobody makes its folder.
    leader.handle(RankSeen{0, kAt12});
    leader.wait(std::chrono::seconds(6));
    ASSERT_FALSE(leader.all<ReportBreakpoint>().empty());
    EXPECT_EQ(leader.all<ReportBreakpoint>().back().record.state, SaveState::failed)
        << first << " s, then " << second << " s";
  }
}

}  // namespace
}  // namespace rekindle::sidecar
