// The leader of two pods whose other pod's answer to Collect is read after its loss.
#include <gtest/gtest.h>

#include <algorithm>

#include "worker-sidecar/checkpoint/layout.h"
#include "worker-sidecar/coordination/coordination.h"

namespace rekindle::sidecar {
namespace {

const Layout kLayout{{whole_tensor("w", Dtype::f32, {100, 2})}};

class Leader {
 public:
  Leader() {
    handle(RankConnected{.rank = 0});
    handle(PeerConnected{1});
    handle(PeerTableSeen{{{0, false}, {1, false}}, true});
    receive(ready(ReadyState::connected));
    handle(RankRegistered{0, {.layout = kLayout}});
    receive(ready(ReadyState::registered));
    handle(CandidatesListed{std::vector<RestoreCandidate>{}});
    handle(RankLoaded{0, {.ok = true}});
    receive(PodLoadedMessage{.ordinal = 1, .ok = true});
    handle(AttemptClaimed{.attempt = 1u, .failures = {}});
  }

  void handle(const CoordinationEvent& event) {
    now += std::chrono::milliseconds(1);
    for (const CoordinationOutput& output : machine.advance(event, now)) outputs.push_back(output);
  }
  void receive(PeerMessage message) { handle(PeerMessageArrived{1, machine.attempt(), std::move(message)}); }
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

  Coordination machine{{.pods = 2}};
  Instant now{std::chrono::hours(1)};
  std::vector<CoordinationOutput> outputs;

 private:
  static ReadyMessage ready(ReadyState state) {
    ReadyMessage message{.ordinal = 1, .ranks = {{1, state}}};
    if (state == ReadyState::registered) message.layout_hash = layout_hash(kLayout);
    return message;
  }
};

TEST(LateAnswer, OfALostPodCostsARoundAndNotTheCheckpoint) {
  Leader leader;
  const RankStatus at_12{.step = 12, .phase = RankPhase::computing};
  leader.handle(HookCalled{.hook = 1, .container = "main", .seconds_left = 30});
  leader.handle(RankSeen{0, at_12});
  leader.handle(PeerLost{1});
  leader.receive(CollectedMessage{
      .term = make_term(1, 0),
      .ordinal = 1,
      .ranks = {{.rank = 1, .alive = true, .clean = true, .step = 12, .phase = RankPhase::computing}}});
  leader.wait(std::chrono::seconds(2));
  ASSERT_EQ(leader.all<CreateFolder>().size(), 1u);
  leader.handle(FolderCreated{leader.all<CreateFolder>()[0].term, "a1-s12-n1"});
  EXPECT_EQ(leader.all<RemoveFolder>().size(), 1u) << "a writer of the round is gone";
  leader.handle(RankSeen{0, at_12});
  leader.wait(std::chrono::seconds(2));
  ASSERT_EQ(leader.all<CreateFolder>().size(), 2u);
  leader.handle(FolderCreated{leader.all<CreateFolder>()[1].term, "a1-s12-n2"});
  ASSERT_FALSE(leader.all<StartWrite>().empty());
  EXPECT_EQ(leader.all<StartWrite>().back().write.path, "a1-s12-n2");
}

}  // namespace
}  // namespace rekindle::sidecar
