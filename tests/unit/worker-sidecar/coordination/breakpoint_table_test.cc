#include "worker-sidecar/coordination/breakpoint_table.h"

#include <gtest/gtest.h>

namespace rekindle::sidecar {
namespace {

TEST(BreakpointTable, HasNoEmptyCell) {
  for (std::size_t state = 0; state < kCoordinatorStates; ++state) {
    for (std::size_t input = 0; input < kCoordinatorInputs; ++input) {
      const auto s = static_cast<CoordinatorState>(state);
      const auto i = static_cast<CoordinatorInput>(input);
      EXPECT_NE(coordinator_move(s, i), CoordinatorMove::none) << to_string(s) << ", input " << input;
    }
  }
  for (std::size_t state = 0; state < kMemberStates; ++state) {
    for (std::size_t input = 0; input < kMemberInputs; ++input) {
      const auto s = static_cast<MemberState>(state);
      const auto i = static_cast<MemberInput>(input);
      EXPECT_NE(member_move(s, i), MemberMove::none) << to_string(s) << ", input " << input;
    }
  }
}

TEST(BreakpointTable, CountsEveryNamedStateAndInput) {
  EXPECT_EQ(static_cast<std::size_t>(CoordinatorState::settled) + 1, kCoordinatorStates);
  EXPECT_EQ(static_cast<std::size_t>(CoordinatorInput::wake) + 1, kCoordinatorInputs);
  EXPECT_EQ(static_cast<std::size_t>(MemberState::settled) + 1, kMemberStates);
  EXPECT_EQ(static_cast<std::size_t>(MemberInput::wake) + 1, kMemberInputs);
}

TEST(BreakpointTable, EveryTriggerLeadsSomewhere) {
  for (std::size_t state = 0; state < kCoordinatorStates; ++state) {
    EXPECT_NE(coordinator_move(static_cast<CoordinatorState>(state), CoordinatorInput::trigger),
              CoordinatorMove::ignore);
  }
}

TEST(BreakpointTable, OnlyPublishingConcludes) {
  for (std::size_t state = 0; state < kCoordinatorStates; ++state) {
    const auto s = static_cast<CoordinatorState>(state);
    EXPECT_EQ(coordinator_move(s, CoordinatorInput::published) == CoordinatorMove::conclude,
              s == CoordinatorState::publishing);
  }
}

TEST(BreakpointTable, P7_WhoeverLeadsGivesWayToAHigherTerm) {
  for (const auto state : {CoordinatorState::collecting, CoordinatorState::creating, CoordinatorState::writing,
                           CoordinatorState::publishing}) {
    EXPECT_EQ(coordinator_move(state, CoordinatorInput::outranked), CoordinatorMove::step_down);
  }
}

}  // namespace
}  // namespace rekindle::sidecar
