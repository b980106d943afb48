// Standard base64 (RFC 4648 section 4, with padding), as Secrets, kubeconfigs and admission patches
// use it.
#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"

namespace rekindle {

std::string base64_encode(std::string_view bytes);

// White space is skipped; anything else outside the alphabet, or a wrong length, is invalid_input.
Result<std::string> base64_decode(std::string_view text);

}  // namespace rekindle
