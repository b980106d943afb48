// A sidecar that is restarted while one of its ranks dies: what that rank held is known from the
// process before it.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "worker-sidecar/coordination/coordination.h"

namespace rekindle::sidecar {
namespace {

const CoordinationConfig kTwoRanks{.pods = 1, .ranks_per_pod = 2, .wait_for_go = false};
const RegisteredMessage kRegistered{.layout = {{whole_tensor("w", Dtype::f32, {100, 2})}}};
const RankStatus kAtStep12{.step = 12, .phase = RankPhase::computing};

class Sidecar {
 public:
  void handle(const CoordinationEvent& event) {
    now += std::chrono::milliseconds(1);
    for (const CoordinationOutput& output : machine.advance(event, now)) outputs.push_back(output);
  }
  // Time until the machine wants nothing more for a while.
  void wait(Duration time) {
    for (const Instant until = now + time; now < until;) {
      now = std::min(until, std::max(now + std::chrono::milliseconds(1), machine.next_wake().value_or(until)));
      handle(Tick{});
    }
  }
  template <typename Output>
  const Output* find() const {
    for (const CoordinationOutput& output : outputs) {
      if (const auto* found = std::get_if<Output>(&output)) return found;
    }
    return nullptr;
  }

  Coordination machine{kTwoRanks};
  Instant now{std::chrono::hours(1)};
  std::vector<CoordinationOutput> outputs;
};

RememberJob what_the_first_sidecar_left() {
  Sidecar first;
  for (std::uint32_t rank = 0; rank < 2; ++rank) first.handle(RankConnected{.rank = rank});
  for (std::uint32_t rank = 0; rank < 2; ++rank) first.handle(RankRegistered{rank, kRegistered});
  first.handle(CandidatesListed{std::vector<RestoreCandidate>{}});
  for (std::uint32_t rank = 0; rank < 2; ++rank) first.handle(RankLoaded{rank, {.ok = true}});
  first.handle(AttemptClaimed{.attempt = 1u, .failures = {}});
  const auto* left = first.find<RememberJob>();
  EXPECT_NE(left, nullptr);
  return left != nullptr ? *left : RememberJob{};
}

// Rank 1 died while the sidecar was away.
void come_back(Sidecar& second, const RegisteredMessage& registered) {
  second.handle(RankConnected{.rank = 0, .attempt = 1, .term = 0, .word = kAtStep12});
  second.handle(RankRegistered{0, registered});
  second.handle(RankDied{.rank = 1, .word = kAtStep12, .attempt = 1});
  second.handle(RankSeen{0, kAtStep12});
  second.wait(std::chrono::seconds(5));
}

TEST(JobMemory, ARankThatCannotSayAnyMoreWhatItHeldIsKnownFromBefore) {
  const RememberJob left = what_the_first_sidecar_left();
  Sidecar second;
  second.handle(JobRemembered{left.attempt, left.job_layout_hash});
  come_back(second, kRegistered);
  ASSERT_NE(second.find<CreateFolder>(), nullptr);
  EXPECT_EQ(second.find<CreateFolder>()->step, 12u);
}

TEST(JobMemory, WithoutItNothingIsSavedThatMightLackAPart) {
  Sidecar second;
  come_back(second, kRegistered);
  EXPECT_EQ(second.find<CreateFolder>(), nullptr);
}

TEST(JobMemory, OfAnEarlierAttemptDoesNotCount) {
  const RememberJob left = what_the_first_sidecar_left();
  Sidecar second;
  second.handle(JobRemembered{left.attempt + 1, left.job_layout_hash});
  come_back(second, kRegistered);
  EXPECT_EQ(second.find<CreateFolder>(), nullptr);
}

TEST(JobMemory, ThatDoesNotFitWhatTheOtherRankHoldsDoesNotCount) {
  const RememberJob left = what_the_first_sidecar_left();
  Sidecar second;
  second.handle(JobRemembered{left.attempt, left.job_layout_hash});
  come_back(second, {.layout = {{whole_tensor("other", Dtype::f32, {100, 2})}}});
  EXPECT_EQ(second.find<CreateFolder>(), nullptr);
}

}  // namespace
}  // namespace rekindle::sidecar
