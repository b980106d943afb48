#include "worker-sidecar/checkpoint/restore_policy.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

namespace rekindle {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using enum AfterFailure;

struct Case {
  ErrorCode code;
  std::uint32_t tries;
  Duration elapsed;
  AfterFailure expected;
};

TEST(RestorePolicy, OnlyDamageAndWhatStaysMissingLeadToAnOlderCheckpoint) {
  for (const auto& [code, tries, elapsed, expected] : {
           Case{ErrorCode::corrupt, 1, seconds(0), next_older},
           Case{ErrorCode::not_found, 1, seconds(0), try_again},
           Case{ErrorCode::not_found, 9, milliseconds(4999), try_again},
           Case{ErrorCode::not_found, 9, seconds(5), next_older},
           Case{ErrorCode::not_found, 1, seconds(300), try_again},
           Case{ErrorCode::not_found, 2, seconds(300), next_older},
           Case{ErrorCode::io, 1, seconds(0), try_again},
           Case{ErrorCode::io, 9, milliseconds(59999), try_again},
           Case{ErrorCode::io, 9, seconds(60), stop},
           // one try that took minutes to time out is not the last one
           Case{ErrorCode::io, 1, seconds(300), try_again},
           Case{ErrorCode::io, 2, seconds(300), stop},
           Case{ErrorCode::unavailable, 3, seconds(3), try_again},
           Case{ErrorCode::unavailable, 3, seconds(60), stop},
           Case{ErrorCode::deadline_exceeded, 3, seconds(3), try_again},
           Case{ErrorCode::deadline_exceeded, 3, seconds(60), stop},
           Case{ErrorCode::exhausted, 3, seconds(3), try_again},
           Case{ErrorCode::exhausted, 3, seconds(60), stop},
           Case{ErrorCode::conflict, 3, seconds(3), try_again},
           Case{ErrorCode::gone, 3, seconds(60), stop},
           Case{ErrorCode::invalid_input, 1, seconds(0), stop},
           Case{ErrorCode::already_exists, 1, seconds(0), stop},
           Case{ErrorCode::refused, 1, seconds(0), stop},
           Case{ErrorCode::unauthorized, 1, seconds(0), stop},
           Case{ErrorCode::internal, 1, seconds(0), stop},
       }) {
    EXPECT_EQ(after_failure(code, tries, elapsed), expected)
        << to_string(code) << ", " << tries << " tries, " << elapsed.count() << " ns";
  }
}

// What the kernel says when storage is away for a moment.
TEST(RestorePolicy, NoErrorOfTheSystemButAMissingNameGivesUpACheckpoint) {
  for (const int number : {EIO, ESTALE, EMFILE, ENFILE, ETIMEDOUT, EAGAIN, ENOMEM, ENODEV, ENXIO, EACCES, EPERM}) {
    const ErrorCode code = fail_errno(number, "reading").error().code;
    EXPECT_NE(after_failure(code, 1000, seconds(3600)), next_older) << strerror(number);
  }
  for (const int number : {EIO, ESTALE, EMFILE, ETIMEDOUT}) {
    const ErrorCode code = fail_errno(number, "reading").error().code;
    EXPECT_EQ(after_failure(code, 1, seconds(0)), try_again) << strerror(number);
  }
}

TEST(RestorePolicy, AFileThatIsNotWhatItShouldBeIsDamage) {
  EXPECT_EQ(as_damage({ErrorCode::invalid_input, "not a plain file"}).code, ErrorCode::corrupt);
  EXPECT_EQ(as_damage({ErrorCode::io, "reading"}).code, ErrorCode::io);
}

}  // namespace
}  // namespace rekindle
