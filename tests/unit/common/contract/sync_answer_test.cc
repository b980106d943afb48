#include "common/contract/sync_answer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <utility>

#include "common/base/prng.h"
#include "tests/support/random_seed.h"
#include "tests/support/source_folder.h"

namespace rekindle {
namespace {

SyncAnswer example_answer() {
  return {.version = 18,
          .job_namespace = "team-a",
          .job_name = "digits",
          .job_uid = "j",
          .pods_expected = 2,
          .pods = {{.name = "a", .uid = "ua", .ordinal = 0, .address = "10.0.0.1", .port = 8471},
                   {.name = "b", .uid = "ub", .ordinal = 1, .stale = true}},
          .start_allowed = true,
          .orders = {{.breakpoint = "digits-1", .detail = "evicted", .seconds_left = 30}}};
}

std::string example_text() {
  std::ifstream file(test::source_path("docs/formats/examples/sync-answer.json"));
  return {std::istreambuf_iterator<char>(file), {}};
}

SyncAnswer random_answer(Prng& random) {
  const auto text = [&] { return std::string(random.below(4), 'a') + (random.below(2) == 0 ? "\"ä" : ""); };
  SyncAnswer answer{.version = random.next(),
                    .job_namespace = text(),
                    .job_name = text(),
                    .job_uid = text(),
                    .pods_expected = random.below(65'537),
                    .start_allowed = random.below(2) == 0};
  for (std::uint64_t left = random.below(5); left > 0; --left) {
    answer.pods.push_back({.name = text(),
                           .uid = text(),
                           .ordinal = random.below(65'536),
                           .address = text(),
                           .port = static_cast<std::uint16_t>(random.below(65'536)),
                           .stale = random.below(2) == 0});
  }
  constexpr std::array kAfters = {AfterBreakpoint::go_on, AfterBreakpoint::park, AfterBreakpoint::stop};
  for (std::uint64_t left = random.below(5); left > 0; --left) {
    answer.orders.push_back({.breakpoint = text(),
                             .cause = random.below(2) == 0 ? TriggerCause::user : TriggerCause::operator_order,
                             .detail = text(),
                             .seconds_left = static_cast<std::int64_t>(random.below(10'000'001)),
                             .after = kAfters[random.below(kAfters.size())]});
  }
  return answer;
}

TEST(SyncAnswer, WhatTheOperatorWritesASidecarReads) {
  test::for_each_seed({.fixed = {1, 2}}, [](std::uint64_t seed) {
    Prng random(seed);
    for (int i = 0; i < 200; ++i) {
      const SyncAnswer answer = random_answer(random);
      const std::string text = encode_sync_answer(answer);
      const Result<SyncAnswer> read = decode_sync_answer(text);
      ASSERT_TRUE(read) << read.error().message << "\n" << text;
      ASSERT_EQ(*read, answer) << text;
    }
  });
}

TEST(SyncAnswer, TheExampleOfTheFormatIsWrittenAndRead) {
  EXPECT_EQ(encode_sync_answer(example_answer()) + "\n", example_text());
  const Result<SyncAnswer> read = decode_sync_answer(example_text());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, example_answer());
}

std::string changed(const std::string& from, const std::string& to) {
  std::string text = example_text();
  return text.replace(text.find(from), from.size(), to);
}

TEST(SyncAnswer, WhatDoesNotFitIsAnErrorAndNoCrash) {
  const std::string whole = encode_sync_answer(example_answer());
  for (std::size_t cut = 0; cut < whole.size(); ++cut) EXPECT_FALSE(decode_sync_answer(whole.substr(0, cut))) << cut;
  for (const auto& [from, to] :
       {std::pair{"8471", "84710"}, std::pair{"\"park\"", "\"dance\""}, std::pair{"\"park\"", "\"rebuild\""},
        std::pair{"30", "-1"}, std::pair{"30", "\"soon\""}, std::pair{"true", "1"},
        std::pair{"\"ordinal\":0", "\"ordinal\":-1"}, std::pair{"\"ordinal\":0", "\"ordinal\":4294967296"},
        std::pair{"\"pods_expected\":2", "\"pods_expected\":4294967298"}}) {
    EXPECT_FALSE(decode_sync_answer(changed(from, to))) << to;
  }
}

TEST(SyncAnswer, ACauseOfANewerOperatorAndPartsOfSecondsAreRead) {
  EXPECT_EQ(decode_sync_answer(changed("\"operator\"", "\"solar_flare\""))->orders[0].cause, TriggerCause::unknown);
  EXPECT_EQ(decode_sync_answer(changed("30", "29.5"))->orders[0].seconds_left, 29);
  EXPECT_EQ(decode_sync_answer(changed("30", "1e300"))->orders[0].seconds_left, 10'000'000);
}

}  // namespace
}  // namespace rekindle
