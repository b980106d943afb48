#include "common/contract/after_breakpoint.h"

#include <string>

namespace rekindle {

Result<AfterBreakpoint> parse_after_breakpoint(std::string_view text) {
  constexpr std::string_view kWhat = "order for the time after a breakpoint (go_on, park or stop)";
  const std::optional<AfterBreakpoint> after = parse_enum<AfterBreakpoint>(text);
  if (after == AfterBreakpoint::rebuild)
    return fail(ErrorCode::invalid_input, "rebuild is no " + std::string(kWhat) + "; it can only be how one ends");
  if (after) return *after;
  return fail(ErrorCode::invalid_input, "'" + std::string(text.substr(0, 40)) + "' is no " + std::string(kWhat));
}

}  // namespace rekindle
