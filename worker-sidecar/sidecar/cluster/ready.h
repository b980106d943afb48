// `rekindle-sidecar ready`, the startup probe: does the sidecar's socket answer?
#pragma once

#include <string>

#include "common/base/instant.h"

namespace rekindle::sidecar {

// Asks for the status and waits for the answer. Empty: it answers; else a message.
std::string find_why_not_ready(const std::string& socket_path, Duration patience);

}  // namespace rekindle::sidecar
