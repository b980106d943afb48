// A message on standard error from the library's thread: whole or not at all, and never waiting for
// the process that reads it. A reader that has gone costs the message and nothing else. Any thread.
#pragma once

#include <string_view>

namespace rekindle::runtime {

void say(std::string_view message) noexcept;

}  // namespace rekindle::runtime
