// Version of the library: that of the project in the root CMakeLists.txt.
#pragma once

namespace rekindle::runtime {

const char* library_version() noexcept;

}  // namespace rekindle::runtime
