#include "worker-sidecar/runtime/src/version.h"

namespace rekindle::runtime {

const char* library_version() noexcept { return REKINDLE_VERSION; }

}  // namespace rekindle::runtime
