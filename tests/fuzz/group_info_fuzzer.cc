// group_info.pb: what is accepted is a group of ranks in order, inside the limits, and comes back
// when it is written again.
#include <algorithm>

#include "tests/fuzz/support/fuzzing.h"
#include "worker-sidecar/mindspore/group_info.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace rekindle;
  const Result<RankGroup> group = decode_group_info(text_of(data, bytes));
  if (!group) {
    expect_sentence(group.error());
    return 0;
  }
  RK_ASSERT(!group->empty() && group->size() <= bytes);
  RK_ASSERT(std::ranges::is_sorted(*group) && std::ranges::adjacent_find(*group) == group->end());
  RK_ASSERT(group->back() <= kGroupRankMax);
  const Result<RankGroup> again = decode_group_info(encode_group_info(*group));
  RK_ASSERT(again && *again == *group);
  return 0;
}
