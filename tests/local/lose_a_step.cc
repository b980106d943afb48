// The chooser of a breakpoint's step with a planted fault: as soon as the real one takes a step, it
// takes the one before, from the ranks' shadows, and says that nothing was lost. Training goes on
// at the step behind what was saved and ends with the weights of an undisturbed run, so only a
// count of steps that shares nothing with Rekindle can notice.
#define choose_step choose_step_as_it_is
#include "worker-sidecar/coordination/choose_step.cc"
#undef choose_step

namespace rekindle::sidecar {

Choice choose_step(const ChooseInput& input);

Choice choose_step(const ChooseInput& input) {
  Choice choice = choose_step_as_it_is(input);
  if (choice.kind != ChoiceKind::take) return choice;
  // As if nobody lived, and no shadow were as new as the step that was taken.
  ChooseInput poorer = input;
  for (CollectedRank& rank : poorer.ranks) {
    rank.alive = false;
    std::erase_if(rank.shadow_steps, [&](std::uint64_t step) { return step >= choice.step; });
  }
  Choice before = choose_step_as_it_is(poorer);
  if (before.kind != ChoiceKind::take) return choice;
  before.steps_lost = 0;
  before.lost_groups.clear();
  before.why.clear();
  return before;
}

}  // namespace rekindle::sidecar
