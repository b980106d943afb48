#include <gtest/gtest.h>

#include "common/base/format.h"
#include "tests/abi/abi_test.h"
#include "tests/support/source_folder.h"
#include "tests/support/temporary_folder.h"

namespace rekindle {
namespace {

// A line that changes breaks every program that was compiled before: a new field goes where
// `reserved` was, and docs/formats/c-abi.md says so.
TEST(Abi, SizesOffsetsAndNumbersAreTheListedOnes) {
  std::size_t count = 0;
  const abi_number* const numbers = abi_numbers(&count);
  std::string seen;
  for (std::size_t i = 0; i < count; ++i) seen += format("{} {}\n", numbers[i].name, numbers[i].value);
  EXPECT_EQ(seen, read_bytes(test::source_path("tests/abi/structs.txt")));
}

}  // namespace
}  // namespace rekindle
