#include "tests/support/source_folder.h"

namespace rekindle::test {

std::string source_path(const std::string& file) { return std::string(REKINDLE_SOURCE_DIR "/") + file; }

}  // namespace rekindle::test
