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

// A disk that reported one, or an NFS server whose handle was replaced, may well take the same call
// a moment later.
TEST(Error, AnErrorOfStorageThatMayPassIsWorthARetry) {
  for (const int number : {EIO, ESTALE, EBUSY}) {
    const Status status = fail_errno(number, "making a folder");
    EXPECT_EQ(status.error().code, ErrorCode::io) << number;
    EXPECT_EQ(status.error().retry, Retry::yes) << number;
  }
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
