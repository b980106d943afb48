#include "worker-sidecar/coordination/choose_step.h"

#include <algorithm>
#include <array>
#include <functional>

namespace rekindle {
namespace {

using Ranks = std::vector<CollectedRank>;

bool is_finished(const CollectedRank& rank) { return rank.phase == RankPhase::finished; }

// Its memory may be gone any moment after rk_close, so a finished rank is evidence of its step and never a source.
bool is_live(const CollectedRank& rank) { return rank.alive && !is_finished(rank); }

std::string name_of(const CollectedRank& rank) { return "rank " + std::to_string(rank.rank); }

std::string names_of(const std::vector<std::uint32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  return text;
}

std::vector<std::uint32_t> numbers_of(const Ranks& ranks, const std::function<bool(const CollectedRank&)>& wanted) {
  std::vector<std::uint32_t> numbers;
  for (const CollectedRank& rank : ranks) {
    if (wanted(rank)) numbers.push_back(rank.rank);
  }
  return numbers;
}

class Chooser {
 public:
  explicit Chooser(const ChooseInput& input) : input_(input), ranks_(input.ranks) {
    std::sort(ranks_.begin(), ranks_.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  }

  Choice choose() {
    if (std::none_of(ranks_.begin(), ranks_.end(), is_live)) return nobody_lives();
    if (const auto updating = updating_rank(); !updating.empty() && !input_.updating_over) {
      return wait(names_of(updating) + " to finish the update");
    }
    find_target();
    Choice choice = sources(target_).empty() ? reach_target() : keep_or_advance();
    if (choice.kind == ChoiceKind::take) choice = wait_for_stragglers(std::move(choice));
    choice.refused = refused_;
    return choice;
  }

 private:
  Choice wait(std::string what) const { return {.kind = ChoiceKind::wait, .why = std::move(what)}; }
  Choice permit(std::uint64_t step, std::vector<std::uint32_t> ranks) const {
    return {.kind = ChoiceKind::permit, .step = step, .ranks = std::move(ranks)};
  }
  Choice take(std::uint64_t step) const { return {.kind = ChoiceKind::take, .step = step, .ranks = sources(step)}; }

  Choice nobody_lives() const {
    if (ranks_.size() == input_.world_size && std::all_of(ranks_.begin(), ranks_.end(), is_finished)) {
      return {.kind = ChoiceKind::finished, .why = "every rank has finished"};
    }
    return {.kind = ChoiceKind::none, .why = "no live rank of the job can be reached, so nobody holds a copy of the state"};
  }

  std::vector<std::uint32_t> updating_rank() const {
    return numbers_of(ranks_, [](const auto& rank) { return is_live(rank) && rank.phase == RankPhase::updating; });
  }

  void find_target() {
    std::uint64_t live_most = 0;
    for (const CollectedRank& rank : ranks_) {
      if (is_live(rank)) live_most = std::max(live_most, rank.step);
    }
    target_ = live_most;
    for (const CollectedRank& rank : ranks_) {
      if (is_live(rank)) continue;
      if (rank.step > live_most + 1) {
        refused_.push_back(name_of(rank) + " is gone and claims step " + std::to_string(rank.step) + ", more than one beyond step " +
                           std::to_string(live_most) + " of every live rank");
      } else {
        target_ = std::max(target_, rank.step);
      }
    }
    for (const CollectedRank& rank : ranks_) {
      if (is_live(rank) && rank.step + 1 < live_most) {
        refused_.push_back(name_of(rank) + " is at step " + std::to_string(rank.step) + ", more than one behind step " +
                           std::to_string(live_most));
      }
    }
    live_most_ = live_most;
  }

  std::vector<std::uint32_t> sources(std::uint64_t step) const {
    return numbers_of(ranks_, [&](const auto& rank) {
      return is_live(rank) && rank.clean && rank.phase != RankPhase::updating && rank.step == step && rank.step + 1 >= live_most_;
    });
  }
  std::vector<std::uint32_t> waiting_at_update(std::uint64_t step) const {
    if (input_.permit_over) return {};
    return numbers_of(ranks_, [&](const auto& rank) {
      return is_live(rank) && rank.clean && rank.phase == RankPhase::waiting_at_update && rank.step == step;
    });
  }
  std::vector<std::uint32_t> computing(std::uint64_t step) const {
    return numbers_of(ranks_, [&](const auto& rank) { return is_live(rank) && rank.phase == RankPhase::computing && rank.step == step; });
  }

  // Rule 3. A rank that waits at its gate makes target + 1 with an update; what it costs is the small state of those that cannot follow.
  Choice keep_or_advance() const {
    const auto waiting = waiting_at_update(target_);
    const bool all_follow = waiting.size() == input_.world_size;
    if (!waiting.empty() && (all_follow || !input_.states_matter)) return permit(target_ + 1, waiting);
    return take(target_);
  }

  // Rule 4.
  Choice reach_target() const {
    if (target_ > 0) {
      if (const auto waiting = waiting_at_update(target_ - 1); !waiting.empty()) return permit(target_, waiting);
      if (const auto on_the_way = computing(target_ - 1); !on_the_way.empty() && !input_.arrival_over) {
        return wait(names_of(on_the_way) + " to arrive at the update to step " + std::to_string(target_));
      }
    }
    for (std::uint64_t behind = 1; behind <= 2 && behind <= target_; ++behind) {
      Choice choice = take(target_ - behind);
      if (choice.ranks.empty()) continue;
      choice.steps_lost = behind;
      choice.why = "step " + std::to_string(target_) + " was committed only by " +
                   names_of(numbers_of(ranks_, [&](const auto& rank) { return rank.step == target_; })) +
                   ", which is gone or in the middle of an update, and no live rank could make that update";
      return choice;
    }
    return {.kind = ChoiceKind::none,
            .why = "no live rank has a clean copy of the state: " +
                   names_of(numbers_of(ranks_, [](const auto& rank) { return is_live(rank); })) +
                   " stopped in the middle of an update or could not write"};
  }

  // Rule 5.
  Choice wait_for_stragglers(Choice choice) const {
    if (!input_.states_matter || choice.step == 0 || input_.straggler_over) return choice;
    if (auto waiting = waiting_at_update(choice.step - 1); !waiting.empty()) return permit(choice.step, std::move(waiting));
    if (const auto on_the_way = computing(choice.step - 1); !on_the_way.empty()) {
      return wait(names_of(on_the_way) + " to commit step " + std::to_string(choice.step) + " as well");
    }
    return choice;
  }

  const ChooseInput& input_;
  Ranks ranks_;
  std::uint64_t target_ = 0;
  std::uint64_t live_most_ = 0;
  std::vector<std::string> refused_;
};

}  // namespace

std::string_view to_string(ChoiceKind kind) {
  constexpr std::array<std::string_view, 5> kNames = {"wait", "permit", "take", "finished", "none"};
  return kNames[static_cast<std::size_t>(kind)];
}

Choice choose_step(const ChooseInput& input) { return Chooser(input).choose(); }

}  // namespace rekindle
