#include "worker-sidecar/checkpoint/attempt.h"

#include <gtest/gtest.h>

#include "common/contract/job_limits.h"

namespace rekindle {
namespace {

AttemptRecord make_record() {
  return {.attempt = 2,
          .parent = ParentPoint{1, 184, "a1-s184-x"},
          .job_uid = "5f1c",
          .pods = {{"digits-worker-0", "77"}},
          .time = "2026-01-02T03:04:05Z"};
}

TEST(AttemptRecord, GoldenBytes) {
  EXPECT_EQ(
      encode_attempt(make_record()),
      R"({"attempt":2,"format":"rekindle-attempt","job_uid":"5f1c","parent":{"attempt":1,"path":"a1-s184-x","step":184},)"
      R"("pods":[{"name":"digits-worker-0","uid":"77"}],"time":"2026-01-02T03:04:05Z","version":1})");
}

TEST(AttemptRecord, GoesThereAndBack) {
  EXPECT_EQ(decode_attempt(encode_attempt(make_record())).value(), make_record());
  AttemptRecord first = make_record();
  first.attempt = 1;
  first.parent.reset();
  EXPECT_EQ(decode_attempt(encode_attempt(first)).value(), first);
}

TEST(AttemptRecord, CutShortAtEachLengthIsRefused) {
  const std::string text = encode_attempt(make_record());
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes)
    EXPECT_FALSE(decode_attempt(text.substr(0, bytes))) << bytes;
}

TEST(AttemptRecord, TheLargestJobIsReadAndNoMore) {
  AttemptRecord record = make_record();
  record.pods.assign(kPodsMax, {"w", "7"});
  EXPECT_TRUE(decode_attempt(encode_attempt(record)));
  record.pods.assign(2 * kPodsMax, {"w", "7"});
  EXPECT_FALSE(decode_attempt(encode_attempt(record)));
}

TEST(AttemptRecord, AParentIsAlwaysEarlier) {
  for (const ParentPoint& parent :
       {ParentPoint{2, 184, "a2-s184-x"}, ParentPoint{3, 184, "a3-s184-x"}, ParentPoint{0, 184, "a0-s184-x"},
        ParentPoint{1, 0, "a1-s0-x"}, ParentPoint{1, 184, "../a1-s184-x"}, ParentPoint{1, 184, "a1-s185-x"}}) {
    AttemptRecord record = make_record();
    record.parent = parent;
    EXPECT_FALSE(decode_attempt(encode_attempt(record))) << parent.path;
  }
}

TEST(AttemptRecord, ANewerVersionIsRefusedByName) {
  std::string text = encode_attempt(make_record());
  text.replace(text.find("\"version\":1"), 11, "\"version\":7");
  const Result<AttemptRecord> record = decode_attempt(text);
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().code, ErrorCode::refused);
  EXPECT_NE(record.error().message.find("version 7"), std::string::npos);
}

}  // namespace
}  // namespace rekindle
