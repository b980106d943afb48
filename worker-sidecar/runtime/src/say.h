// A sentence on standard error from the library's thread: whole or not at all, and never waiting
// for whoever reads it.
#pragma once

#include <string_view>

namespace rekindle::runtime {

void say(std::string_view sentence) noexcept;

}  // namespace rekindle::runtime
