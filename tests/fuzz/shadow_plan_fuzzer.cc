// The front of a shadow: header and plan. What is accepted stays inside its file, is what its own
// encoding says, and costs a rank neither a division by zero nor memory that the header alone
// claims. The checksum is made to fit, so that mutations of the plan get past it.
#include <xxhash.h>

#include "tests/fuzz/support/fuzzing.h"
#include "worker-sidecar/protocol/shadow_plan.h"

namespace rekindle {
namespace {

constexpr std::size_t kPlanOffset = 88;
constexpr std::size_t kPlanBytesAt = 80;
constexpr std::size_t kChecksumAt = 84;

void check(const ShadowPlan& plan, std::size_t input_bytes) {
  RK_ASSERT(plan.slots >= 1 && plan.slots <= kShadowSlotsMax && plan.pieces.size() <= input_bytes);
  RK_ASSERT((plan.shadow_slots() > 0) == (plan.shadow_every_steps > 0));
  RK_ASSERT(plan.slots_offset % kShadowPageBytes == 0 && plan.slot_bytes % kShadowPageBytes == 0);
  RK_ASSERT(plan.file_bytes() / plan.slots >= plan.slot_bytes);
  RK_ASSERT(plan.state_offset + plan.state_bytes <= plan.slot_bytes && plan.state_offset >= kShadowPageBytes);
  for (const ShadowPiece& piece : plan.pieces) {
    RK_ASSERT(piece.piece.begin_row <= piece.piece.end_row && piece.offset >= kShadowPageBytes);
    RK_ASSERT(piece.offset <= plan.state_offset && piece.bytes <= plan.state_offset - piece.offset);
  }
  // Its text is written anew here and may be longer than it was, in a place that is long enough.
  ShadowPlan roomy = plan;
  roomy.slots_offset = (8 * input_bytes / kShadowPageBytes + 1) * kShadowPageBytes;
  const std::string again = encode_shadow_plan(roomy);
  const Result<ShadowPlan> decoded = decode_shadow_plan(again);
  RK_ASSERT(decoded && *decoded == roomy);
}

void check_front(std::string_view front) {
  const Result<std::uint64_t> wanted = shadow_front_bytes(front.substr(0, kShadowPageBytes));
  if (wanted) {
    RK_ASSERT(*wanted <= kPlanOffset + kShadowPlanBytesMax);
  } else {
    expect_sentence(wanted.error());
  }
  const Result<ShadowPlan> plan = decode_shadow_plan(front);
  if (plan) {
    RK_ASSERT(wanted && *wanted <= front.size());
    check(*plan, front.size());
  } else {
    expect_sentence(plan.error());
  }
}

}  // namespace
}  // namespace rekindle

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace rekindle;
  std::string front(text_of(data, bytes));
  check_front(front);
  if (front.size() < kPlanOffset) return 0;
  const auto plan_bytes = static_cast<std::uint32_t>(front.size() - kPlanOffset);
  const auto checksum = static_cast<std::uint32_t>(XXH3_64bits(front.data() + kPlanOffset, plan_bytes));
  std::memcpy(front.data() + kPlanBytesAt, &plan_bytes, sizeof plan_bytes);
  std::memcpy(front.data() + kChecksumAt, &checksum, sizeof checksum);
  check_front(front);
  return 0;
}
