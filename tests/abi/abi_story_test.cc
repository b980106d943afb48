#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/abi/abi_test.h"
#include "tests/support/temporary_folder.h"

namespace rekindle {
namespace {

TEST(Abi, AProgramInC99UsesEveryFunctionAndResumes) {
  const TemporaryFolder folder;
  const char* const failed = abi_use_everything(folder.path().c_str());
  EXPECT_EQ(failed, nullptr) << failed;
}

}  // namespace
}  // namespace rekindle
