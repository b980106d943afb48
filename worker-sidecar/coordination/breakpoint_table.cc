#include "worker-sidecar/coordination/breakpoint_table.h"

#include <array>

namespace rekindle::sidecar {
namespace {

using C = CoordinatorMove;
using M = MemberMove;

template <typename Move, std::size_t States, std::size_t Inputs>
using Table = std::array<std::array<Move, Inputs>, States>;

// clang-format off
constexpr Table<CoordinatorMove, kCoordinatorStates, kCoordinatorInputs> kCoordinatorTable = {{
  // The columns are the inputs in their order: trigger, collected, folder_created, folder_failed,
  // written, write_failed, published, publish_failed, pod_connected, pod_lost, outranked, refused,
  // wake. Each row is a state.
  // idle
  {{C::begin,  C::ignore,        C::ignore, C::ignore,            C::ignore, C::ignore,    C::remember, C::ignore,            C::ignore,  C::ignore,        C::ignore,    C::ignore,      C::ignore}},
  // collecting
  {{C::merge,  C::evaluate,      C::ignore, C::ignore,            C::ignore, C::ignore,    C::remember, C::ignore,            C::request, C::evaluate,      C::step_down, C::raise_round, C::drive}},
  // creating
  {{C::merge,  C::check_writers, C::assign, C::new_round_or_fail, C::ignore, C::ignore,    C::remember, C::ignore,            C::request, C::check_writers, C::step_down, C::raise_round, C::drive}},
  // writing
  {{C::merge,  C::check_writers, C::ignore, C::ignore,            C::gather, C::new_round, C::remember, C::ignore,            C::request, C::check_writers, C::step_down, C::raise_round, C::drive}},
  // publishing
  {{C::merge,  C::ignore,        C::ignore, C::ignore,            C::ignore, C::ignore,    C::conclude, C::new_round_or_fail, C::request, C::ignore,        C::step_down, C::ignore,      C::drive}},
  // settled
  {{C::answer, C::ignore,        C::ignore, C::ignore,            C::ignore, C::ignore,    C::remember, C::ignore,            C::ignore,  C::ignore,        C::step_down, C::ignore,      C::ignore}},
}};

constexpr Table<MemberMove, kMemberStates, kMemberInputs> kMemberTable = {{
  // The columns: collect, permit, assign, outcome, rank_seen, rank_died, rank_written,
  // states_written, wake.
  // free
  {{M::hold,         M::ignore, M::ignore, M::adopt, M::ignore, M::raise,            M::ignore, M::ignore, M::query}},
  // held
  {{M::hold,         M::permit, M::write,  M::adopt, M::report, M::raise_and_report, M::ignore, M::ignore, M::query}},
  // writing
  {{M::hold,         M::ignore, M::write,  M::adopt, M::report, M::raise_and_report, M::gather, M::gather, M::query}},
  // settled
  {{M::send_outcome, M::ignore, M::ignore, M::adopt, M::ignore, M::end_ranks,        M::ignore, M::ignore, M::query}},
}};
// clang-format on

template <typename Move, std::size_t States, std::size_t Inputs>
constexpr bool every_cell_is_filled(const Table<Move, States, Inputs>& table) {
  for (const auto& row : table) {
    for (const Move move : row) {
      if (move == Move::none) return false;
    }
  }
  return true;
}
static_assert(every_cell_is_filled(kCoordinatorTable));
static_assert(every_cell_is_filled(kMemberTable));

}  // namespace

CoordinatorMove coordinator_move(CoordinatorState state, CoordinatorInput input) {
  return kCoordinatorTable[static_cast<std::size_t>(state)][static_cast<std::size_t>(input)];
}

MemberMove member_move(MemberState state, MemberInput input) {
  return kMemberTable[static_cast<std::size_t>(state)][static_cast<std::size_t>(input)];
}

}  // namespace rekindle::sidecar
