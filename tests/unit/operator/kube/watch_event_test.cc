#include "operator/kube/watch_event.h"

#include <gtest/gtest.h>

namespace rekindle::op {
namespace {

TEST(WatchEvent, ChangesCarryTheObjectAndItsVersion) {
  const Result<WatchEvent> event = decode_watch_event(
      R"({"type":"MODIFIED","object":{"kind":"Pod","metadata":{"name":"a","resourceVersion":"7"}}})");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, WatchEventKind::modified);
  EXPECT_EQ(event->resource_version, "7");
  EXPECT_EQ(event->object["metadata"]["name"], "a");
}

TEST(WatchEvent, EveryTypeIsKnown) {
  const auto kind_of = [](const std::string& type) {
    return decode_watch_event(R"({"type":")" + type + R"(","object":{"metadata":{"resourceVersion":"1"}}})")->kind;
  };
  EXPECT_EQ(kind_of("ADDED"), WatchEventKind::added);
  EXPECT_EQ(kind_of("DELETED"), WatchEventKind::deleted);
  EXPECT_EQ(kind_of("BOOKMARK"), WatchEventKind::bookmark);
}

TEST(WatchEvent, ErrorsCarryTheStatusAndNoVersion) {
  const Result<WatchEvent> event = decode_watch_event(
      R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old",)"
      R"("details":{"retryAfterSeconds":2}}})");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, WatchEventKind::error);
  EXPECT_EQ(event->status.code, 410);
  EXPECT_EQ(event->status.retry_after, std::chrono::seconds(2));
}

TEST(WatchEvent, LinesThatDoNotFitAreRefused) {
  EXPECT_FALSE(decode_watch_event(""));
  EXPECT_FALSE(decode_watch_event("[]"));
  EXPECT_FALSE(decode_watch_event(R"({"type":"ADDED"})"));
  EXPECT_FALSE(decode_watch_event(R"({"type":"ADDED","object":{}})"));
  EXPECT_FALSE(decode_watch_event(R"({"type":"ADDED","object":{"metadata":{"resourceVersion":""}}})"));
  EXPECT_FALSE(decode_watch_event(R"({"type":"ADDED","object":{"metadata":{"resourceVersion":7}}})"));
  EXPECT_FALSE(decode_watch_event(R"({"type":"NEW","object":{"metadata":{"resourceVersion":"1"}}})"));
  EXPECT_FALSE(decode_watch_event(R"({"type":"ADDED","object":{"metadata":{"resourceVersion":"1")"));
}

TEST(WatchEvent, OfAnObjectThatIsTooLargeIsKnownByItsMetadataAlone) {
  std::string line =
      R"({"type":"MODIFIED","object":{"metadata":{"name":"p","resourceVersion":"7","labels":{"a":"b"}},"x":[1)";
  for (std::size_t i = 0; i < kObjectValuesMax; ++i) line += ",1";
  line += "]}}";
  const Result<WatchEvent> event = decode_watch_event(line);
  ASSERT_TRUE(event) << event.error().message;
  EXPECT_EQ(event->kind, WatchEventKind::modified);
  EXPECT_EQ(event->resource_version, "7");
  EXPECT_TRUE(event->too_large);
  EXPECT_EQ(event->object, (Json{{"metadata", {{"name", "p"}, {"resourceVersion", "7"}}}}));
}

}  // namespace
}  // namespace rekindle::op
