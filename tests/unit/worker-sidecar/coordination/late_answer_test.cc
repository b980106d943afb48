// A leader and answers to Collect that are older than what it knows: of a pod that was lost
// meanwhile.
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
    tell(RankConnected{.rank = 0});
    for (std::uint32_t pod = 1; pod < pods; ++pod) {
      tell(PeerConnected{pod});
      table.pods.push_back({pod, false});
    }
    tell(table);
    for (std::uint32_t pod = 1; pod < pods; ++pod) hear(pod, ready(pod, ReadyState::connected));
    tell(RankRegistered{0, {.layout = kLayout}});
    for (std::uint32_t pod = 1; pod < pods; ++pod) hear(pod, ready(pod, ReadyState::registered));
    tell(CandidatesListed{std::vector<RestoreCandidate>{}});
    tell(RankLoaded{0, {.ok = true}});
    for (std::uint32_t pod = 1; pod < pods; ++pod) hear(pod, PodLoadedMessage{.ordinal = pod, .ok = true});
    tell(AttemptClaimed{.attempt = 1u, .failures = {}});
  }

  void tell(const CoordinationEvent& event) {
    now += std::chrono::milliseconds(1);
    for (const CoordinationOutput& output : machine.advance(event, now)) outputs.push_back(output);
  }
  void hear(std::uint32_t pod, PeerMessage message) {
    tell(PeerMessageArrived{pod, machine.attempt(), std::move(message)});
  }
  // That pod's answer in the first round: its rank computes the step after 12.
  void hear_answer(std::uint32_t pod) {
    hear(pod, CollectedMessage{
                  .term = make_term(1, 0),
                  .ordinal = pod,
                  .ranks = {{.rank = pod, .alive = true, .clean = true, .step = 12, .phase = RankPhase::computing}}});
  }
  void wait(Duration time) {
    for (const Instant until = now + time; now < until;) {
      now = std::min(until, std::max(now, machine.next_wake().value_or(until)));
      tell(Tick{});
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
  leader.tell(HookCalled{.hook = 1, .container = "main", .seconds_left = 30});
  leader.tell(RankSeen{0, kAt12});
  leader.tell(PeerLost{1});
  leader.hear_answer(1);
  leader.wait(std::chrono::seconds(2));
  ASSERT_EQ(leader.all<CreateFolder>().size(), 1u);
  leader.tell(FolderCreated{leader.all<CreateFolder>()[0].term, "a1-s12-n1"});
  EXPECT_EQ(leader.all<RemoveFolder>().size(), 1u) << "a writer of the round is gone";
  leader.tell(RankSeen{0, kAt12});
  leader.wait(std::chrono::seconds(2));
  ASSERT_EQ(leader.all<CreateFolder>().size(), 2u);
  leader.tell(FolderCreated{leader.all<CreateFolder>()[1].term, "a1-s12-n2"});
  ASSERT_FALSE(leader.all<StartWrite>().empty());
  EXPECT_EQ(leader.all<StartWrite>().back().write.path, "a1-s12-n2");
}

TEST(LateAnswer, OfBeforeALossIsWorthNothingWhenThePodIsBack) {
  Leader leader(3);
  leader.tell(HookCalled{.hook = 1, .container = "main", .seconds_left = 30});
  leader.tell(RankSeen{0, kAt12});
  leader.hear_answer(1);
  leader.tell(PeerLost{1});
  leader.tell(PeerConnected{1});
  leader.hear_answer(2);
  EXPECT_TRUE(leader.all<CreateFolder>().empty()) << "pod 1 is asked again: nobody leaves its ranks out";
  leader.hear_answer(1);
  EXPECT_EQ(leader.all<CreateFolder>().size(), 1u);
}

}  // namespace
}  // namespace rekindle::sidecar
