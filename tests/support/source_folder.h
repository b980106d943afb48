#pragma once

#include <string>

namespace rekindle::test {

// Absolute path of a file of the tree ("crds/breakpoints.yaml"), for tests that read what is
// committed. The root is compiled into one small object of its own, so that the objects of the
// tests are the same in every clone and the compiler cache serves them all.
std::string source_path(const std::string& file);

}  // namespace rekindle::test
