#include "common/base/error.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace rekindle {
namespace {

TEST(Error, FullDiskIsExhaustedAndWorthARetry) {
  const Status status = fail_errno(ENOSPC, "writing the stripe");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::exhausted);
  EXPECT_EQ(status.error().retry, Retry::yes);
  EXPECT_NE(status.error().message.find("writing the stripe: "), std::string::npos);
}

TEST(Error, UnlistedErrnoIsAnIoFailureWithoutRetry) {
  const Status status = fail_errno(EXDEV, "linking the manifest");
  EXPECT_EQ(status.error().code, ErrorCode::io);
  EXPECT_EQ(status.error().retry, Retry::no);
}

TEST(Error, ContextGoesInFrontAndKeepsTheCode) {
  const Error error = with_context({ErrorCode::corrupt, "wrong hash", Retry::no}, "manifest of step 7");
  EXPECT_EQ(error, (Error{ErrorCode::corrupt, "manifest of step 7: wrong hash", Retry::no}));
}

}  // namespace
}  // namespace rekindle
