// Version of the library, the same as in the root CMakeLists.txt.
#pragma once

namespace rekindle::runtime {

inline constexpr const char* kLibraryVersion = "0.1.0";

}  // namespace rekindle::runtime
