// What happens to the ranks when a breakpoint is over: of orders and of triggers.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/base/enum_names.h"
#include "common/base/error.h"

namespace rekindle {

// The later value is the stronger one. `rebuild` can only be an outcome: everybody lives, and the
// ranks abort their communicators, make new ones and go on from one step.
enum class AfterBreakpoint : std::uint8_t { go_on = 0, rebuild = 1, park = 2, stop = 3 };

constexpr auto enum_names(AfterBreakpoint) {
  return std::to_array<EnumName<AfterBreakpoint>>({{AfterBreakpoint::go_on, "go_on"},
                                                   {AfterBreakpoint::rebuild, "rebuild"},
                                                   {AfterBreakpoint::park, "park"},
                                                   {AfterBreakpoint::stop, "stop"}});
}

// Of an order or a trigger, so never `rebuild`.
Result<AfterBreakpoint> parse_after_breakpoint(std::string_view text);

}  // namespace rekindle
