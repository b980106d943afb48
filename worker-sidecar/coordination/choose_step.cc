#include "worker-sidecar/coordination/choose_step.h"

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "common/base/format.h"
#include "worker-sidecar/checkpoint/shards.h"

namespace rekindle::sidecar {
namespace {

using Ranks = std::vector<CollectedRank>;
using Numbers = std::vector<std::uint32_t>;

bool is_finished(const CollectedRank& rank) { return rank.phase == RankPhase::finished; }

// Its memory may be gone any moment after rk_close, so a finished rank is evidence of its step and
// never a source.
bool is_live(const CollectedRank& rank) { return rank.alive && !is_finished(rank); }

std::string name_of(const CollectedRank& rank) { return format("rank {}", rank.rank); }

Numbers numbers_of(const Ranks& ranks, const std::function<bool(const CollectedRank&)>& wanted) {
  Numbers numbers;
  for (const CollectedRank& rank : ranks) {
    if (wanted(rank)) numbers.push_back(rank.rank);
  }
  return numbers;
}

bool has(const Numbers& sorted, std::uint32_t number) {
  return std::binary_search(sorted.begin(), sorted.end(), number);
}

// Both sorted.
bool have_one_in_common(const Numbers& left, const Numbers& right) {
  const Numbers& few = left.size() < right.size() ? left : right;
  const Numbers& many = left.size() < right.size() ? right : left;
  return std::any_of(few.begin(), few.end(), [&](std::uint32_t number) { return has(many, number); });
}

class Chooser {
 public:
  explicit Chooser(const ChooseInput& input) : input_(input), ranks_(input.ranks), groups_(input.groups) {
    std::sort(ranks_.begin(), ranks_.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
    if (!groups_.empty()) return;
    StepGroup all;
    for (std::uint32_t rank = 0; rank < input.world_size; ++rank) all.ranks.push_back(rank);
    all.sharers = all.ranks;
    groups_.push_back(std::move(all));
  }

  Choice choose() {
    if (ranks_.size() == input_.world_size && std::all_of(ranks_.begin(), ranks_.end(), is_finished)) {
      return {.kind = ChoiceKind::finished, .why = "every rank has finished"};
    }
    if (const auto updating = updating_ranks(); !updating.empty() && !input_.updating_over) {
      return wait(describe_ranks(updating) + " to finish the update");
    }
    find_target();
    Choice choice = choose_from_target();
    if (choice.kind == ChoiceKind::take) choice = wait_for_stragglers(std::move(choice));
    choice.refused = refused_;
    return choice;
  }

 private:
  Choice wait(std::string what) const { return {.kind = ChoiceKind::wait, .why = std::move(what)}; }
  Choice permit(std::uint64_t step, Numbers ranks) const {
    return {.kind = ChoiceKind::permit, .step = step, .ranks = std::move(ranks)};
  }

  Numbers updating_ranks() const {
    return numbers_of(ranks_, [](const auto& rank) { return is_live(rank) && rank.phase == RankPhase::updating; });
  }

  void find_target() {
    std::uint64_t live_max = 0;
    for (const CollectedRank& rank : ranks_) {
      if (!is_live(rank)) continue;
      any_live_ = true;
      live_max = std::max(live_max, rank.step);
    }
    target_ = live_max;
    for (const CollectedRank& rank : ranks_) {
      if (is_live(rank)) continue;
      if (any_live_ && rank.step > live_max + 1) {
        refused_.push_back(format("{} is gone and claims step {}, more than one beyond step {} of every live rank",
                                  name_of(rank), rank.step, live_max));
      } else {
        target_ = std::max(target_, rank.step);
      }
    }
    for (const CollectedRank& rank : ranks_) {
      if (is_live(rank) && rank.step + 1 < live_max) {
        refused_.push_back(
            format("{} is at step {}, more than one behind step {}", name_of(rank), rank.step, live_max));
      }
    }
    live_max_ = live_max;
  }

  Numbers sources(std::uint64_t step) const {
    return numbers_of(ranks_, [&](const auto& rank) {
      return is_live(rank) && rank.clean && rank.phase != RankPhase::updating && rank.step == step &&
             rank.step + 1 >= live_max_;
    });
  }
  Numbers waiting_at_update(std::uint64_t step) const {
    if (input_.permit_over) return {};
    return numbers_of(ranks_, [&](const auto& rank) {
      return is_live(rank) && rank.clean && rank.phase == RankPhase::waiting_at_update && rank.step == step;
    });
  }
  Numbers computing(std::uint64_t step) const {
    return numbers_of(ranks_, [&](const auto& rank) {
      return is_live(rank) && rank.phase == RankPhase::computing && rank.step == step;
    });
  }
  // A finished rank's shadow may go any moment, too.
  Numbers shadows(std::uint64_t step) const {
    return numbers_of(ranks_, [&](const auto& rank) {
      return !is_finished(rank) && std::binary_search(rank.shadow_steps.begin(), rank.shadow_steps.end(), step);
    });
  }

  Choice choose_from_target() const {
    if (const Numbers waiting = waiting_at_update(target_); may_advance(waiting)) return permit(target_ + 1, waiting);
    std::vector<std::size_t> lost_groups;
    for (const std::uint64_t step : steps_with_a_copy()) {
      Choice choice = reach(step);
      if (step == target_) lost_groups = choice.lost_groups;
      if (choice.kind == ChoiceKind::none) continue;
      if (choice.kind == ChoiceKind::take && step < target_) {
        choice.steps_lost = target_ - step;
        choice.lost_groups = lost_groups;
        choice.why = why_not_target(lost_groups);
      }
      return choice;
    }
    return {.kind = ChoiceKind::none, .lost_groups = std::move(lost_groups), .why = why_nothing()};
  }

  // Rule 3. A rank that waits at its gate makes target + 1 with an update; what it costs is the
  // small state of those that cannot follow.
  bool may_advance(const Numbers& waiting) const {
    if (waiting.empty() || (input_.states_matter && waiting.size() != input_.world_size)) return false;
    return std::all_of(groups_.begin(), groups_.end(),
                       [&](const StepGroup& group) { return have_one_in_common(group.ranks, waiting); });
  }

  // From target down.
  std::vector<std::uint64_t> steps_with_a_copy() const {
    std::set<std::uint64_t, std::greater<>> steps;
    for (std::uint64_t behind = 0; behind <= 2 && behind <= target_; ++behind) steps.insert(target_ - behind);
    for (const CollectedRank& rank : ranks_) {
      for (const std::uint64_t step : rank.shadow_steps) {
        if (step <= target_ && !is_finished(rank)) steps.insert(step);
      }
    }
    return {steps.begin(), steps.end()};
  }

  // Rule 4 for one step: take, permit, wait, or none with the groups that have no copy.
  Choice reach(std::uint64_t step) const {
    const Numbers live = sources(step);
    const Numbers copies = shadows(step);
    const bool near = step > 0 && step + 1 >= live_max_;  // who gets there counts as a source then
    const Numbers waiting = near ? waiting_at_update(step - 1) : Numbers{};
    const Numbers on_the_way = near && !input_.arrival_over ? computing(step - 1) : Numbers{};
    Choice choice{.kind = ChoiceKind::take, .step = step, .ranks = live};
    std::set<std::uint32_t> needed;
    Numbers awaited;
    bool hopeless = false;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const StepGroup& group = groups_[i];
      if (have_one_in_common(group.ranks, live)) continue;
      if (!group.sharers.empty() &&
          std::includes(copies.begin(), copies.end(), group.sharers.begin(), group.sharers.end())) {
        needed.insert(group.sharers.begin(), group.sharers.end());
        continue;
      }
      choice.lost_groups.push_back(i);
      if (have_one_in_common(group.ranks, waiting)) continue;
      if (!have_one_in_common(group.ranks, on_the_way)) hopeless = true;
      for (const std::uint32_t rank : on_the_way) {
        if (has(group.ranks, rank) && !has(awaited, rank))
          awaited.insert(std::upper_bound(awaited.begin(), awaited.end(), rank), rank);
      }
    }
    choice.shadows.assign(needed.begin(), needed.end());
    if (choice.lost_groups.empty()) return choice;
    if (hopeless) return {.kind = ChoiceKind::none, .lost_groups = std::move(choice.lost_groups)};
    if (!awaited.empty()) return wait(format("{} to arrive at the update to step {}", describe_ranks(awaited), step));
    Numbers may;
    for (const std::uint32_t rank : waiting) {
      if (std::any_of(choice.lost_groups.begin(), choice.lost_groups.end(),
                      [&](std::size_t i) { return has(groups_[i].ranks, rank); }))
        may.push_back(rank);
    }
    return permit(step, std::move(may));
  }

  std::string why_not_target(const std::vector<std::size_t>& lost_groups) const {
    const Numbers committed = numbers_of(ranks_, [&](const auto& rank) { return rank.step == target_; });
    if (groups_.size() == 1) {
      return format(
          "step {} was committed only by {}, which {} gone or in the middle of an update, and no live rank could make "
          "that update",
          target_, describe_ranks(committed), committed.size() == 1 ? "is" : "are");
    }
    std::string text = format("step {} is not complete: there is no copy of ", target_);
    for (std::size_t i = 0; i < lost_groups.size() && i < 2; ++i)
      text += (i == 0 ? "the part of " : " and of that of ") + describe_ranks(groups_[lost_groups[i]].ranks);
    return text + ", and no live rank could make that update";
  }

  std::string why_nothing() const {
    if (!any_live_) return "no live rank of the job can be reached, so nobody holds a copy of the state";
    if (groups_.size() == 1) {
      return format(
          "no live rank has a clean copy of the state: {} stopped in the middle of an update or could not write",
          describe_ranks(numbers_of(ranks_, is_live)));
    }
    return "no step is complete: what some ranks held is gone with them, or stopped in the middle of an update, or at "
           "another step than the rest";
  }

  // Rule 5.
  Choice wait_for_stragglers(Choice choice) const {
    if (!input_.states_matter || choice.step == 0 || input_.straggler_over) return choice;
    if (auto waiting = waiting_at_update(choice.step - 1); !waiting.empty())
      return permit(choice.step, std::move(waiting));
    if (const auto on_the_way = computing(choice.step - 1); !on_the_way.empty()) {
      return wait(format("{} to commit step {} as well", describe_ranks(on_the_way), choice.step));
    }
    return choice;
  }

  const ChooseInput& input_;
  Ranks ranks_;
  std::vector<StepGroup> groups_;
  std::uint64_t target_ = 0;
  std::uint64_t live_max_ = 0;
  bool any_live_ = false;
  std::vector<std::string> refused_;
};

}  // namespace

Choice choose_step(const ChooseInput& input) { return Chooser(input).choose(); }

}  // namespace rekindle::sidecar
