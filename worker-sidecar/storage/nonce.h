// Random numbers and names from the system. Any thread.
#pragma once

#include <cstdint>
#include <string>

namespace rekindle {

std::uint64_t draw_number();

// Random text that is_nonce accepts.
std::string draw_nonce();

}  // namespace rekindle
