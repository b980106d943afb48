// The one file that carries fmt's code.
#define FMT_HEADER_ONLY 1

#include "common/base/format.h"

#include <fmt/format.h>

namespace rekindle::detail {

std::string format_values(fmt::string_view pattern, fmt::format_args values) { return fmt::vformat(pattern, values); }

}  // namespace rekindle::detail
