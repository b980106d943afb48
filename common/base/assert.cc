#include "common/base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace rekindle {

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "rekindle: bug: %s does not hold at %s:%d; please report it\n", condition, file, line);
  std::abort();
}

}  // namespace rekindle
