#include "common/contract/sync_request.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "common/base/json_fields.h"
#include "common/base/prng.h"
#include "tests/support/random_seed.h"
#include "tests/support/source_folder.h"

namespace rekindle {
namespace {

SyncRequest example_request() {
  return {.sender = {.pod_name = "digits-worker-1",
                     .pod_uid = "u1",
                     .address = "10.1.2.3",
                     .port = 8471,
                     .ordinal = 1,
                     .coordinating = true},
          .seen = 17,
          .wait = std::chrono::seconds(25),
          .report = SyncReport{.attempt = 2,
                               .step = 190,
                               .phase = SidecarPhase::training,
                               .ranks = RankCounts{.expected = 4, .live = 4},
                               .restored = ReportedRestore{.attempt = 2,
                                                           .step = 184,
                                                           .path = "a1-s184-x",
                                                           .first_step = 185,
                                                           .manifest_hash = "7d",
                                                           .bytes = 1212000,
                                                           .ranks = RankCounts{.expected = 4, .live = 4},
                                                           .agreed_milliseconds = 6},
                               .breakpoints = {{.id = "digits-1",
                                                .term = 65537,
                                                .cause = TriggerCause::hook,
                                                .pod = "digits-worker-0",
                                                .detail = "digits-worker-0",
                                                .state = SaveState::durable,
                                                .step = 184,
                                                .path = "a1-s184-x",
                                                .manifest_hash = "7d",
                                                .bytes = 1212000,
                                                .ranks = 4,
                                                .agreed_milliseconds = 6,
                                                .durable_milliseconds = 32,
                                                .time = "2026-11-21T12:00:00Z"}},
                               .problems = {{"storage", "it is full"}}}};
}

// Whatever a sidecar can have to say, within the limits.
class RandomRequests {
 public:
  explicit RandomRequests(std::uint64_t seed) : random_(seed) {}

  SyncRequest next() {
    SyncRequest request{.sender = {.pod_name = text(),
                                   .pod_uid = text(),
                                   .address = text(),
                                   .port = static_cast<std::uint16_t>(random_.below(65'536)),
                                   .ordinal = static_cast<std::uint32_t>(random_.below(65'536)),
                                   .coordinating = chance()},
                        .seen = random_.next(),
                        .wait = std::chrono::seconds(random_.below(31))};
    if (chance()) request.report = report();
    return request;
  }

 private:
  bool chance() { return random_.below(2) == 0; }
  std::string text() {
    constexpr std::array<std::string_view, 6> kParts = {"a", "\"", "\\", "ä", "\n", "unknown"};
    std::string made;
    for (std::uint64_t left = random_.below(6); left > 0; --left) made += kParts[random_.below(kParts.size())];
    return made;
  }
  std::optional<std::uint64_t> maybe() { return chance() ? std::optional(random_.next()) : std::nullopt; }
  RankCounts ranks() { return {.expected = random_.next(), .live = random_.next()}; }

  // A word of this version, or one that it does not know.
  template <NamedEnum Word>
  void word(Word& value, std::string& unknown) {
    value = static_cast<Word>(random_.below(static_cast<std::uint64_t>(Word::unknown) + 1));
    if (value == Word::unknown) unknown = text();
  }

  SyncReport report() {
    SyncReport made{.attempt = random_.next(), .step = random_.next()};
    word(made.phase, made.unknown_phase);
    if (chance()) made.ranks = ranks();
    if (chance()) {
      made.restored = ReportedRestore{.attempt = random_.next(),
                                      .step = random_.next(),
                                      .path = text(),
                                      .first_step = random_.below(3),
                                      .manifest_hash = text(),
                                      .bytes = maybe(),
                                      .agreed_milliseconds = maybe()};
      if (chance()) made.restored->ranks = ranks();
    }
    for (std::uint64_t left = random_.below(17); left > 0; --left) made.breakpoints.push_back(breakpoint());
    for (std::uint64_t left = random_.below(17); left > 0; --left) made.problems.push_back({text(), text()});
    return made;
  }

  ReportedBreakpoint breakpoint() {
    ReportedBreakpoint made{.id = text(),
                            .term = random_.next(),
                            .pod = text(),
                            .detail = text(),
                            .step = random_.next(),
                            .path = text(),
                            .manifest_hash = text(),
                            .bytes = random_.next(),
                            .ranks = random_.next(),
                            .agreed_milliseconds = maybe(),
                            .durable_milliseconds = maybe(),
                            .message = text(),
                            .time = text(),
                            .rebuild = chance()};
    word(made.cause, made.unknown_cause);
    word(made.state, made.unknown_state);
    return made;
  }

  Prng random_;
};

TEST(SyncRequest, WhatASidecarWritesTheOperatorReads) {
  test::for_each_seed({.fixed = {1, 2}}, [](std::uint64_t seed) {
    RandomRequests random(seed);
    for (int i = 0; i < 200; ++i) {
      const SyncRequest request = random.next();
      const std::string text = encode_sync_request(request);
      const Result<SyncRequest> read = decode_sync_request(text);
      ASSERT_TRUE(read) << read.error().message << "\n" << text;
      ASSERT_EQ(*read, request) << text;
    }
  });
}

TEST(SyncRequest, TheExampleOfTheFormatIsWrittenAndRead) {
  std::ifstream file(test::source_path("docs/formats/examples/sync-request.json"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(encode_sync_request(example_request()) + "\n", text);
  const Result<SyncRequest> read = decode_sync_request(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, example_request());
}

TEST(SyncRequest, WhatThereIsNothingToSayAboutIsAbsent) {
  const Json report = Json::parse(encode_sync_request({.report = SyncReport{}}))["report"];
  EXPECT_EQ(report, Json::parse(R"({"attempt":0,"step":0,"phase":"waiting"})"));
}

TEST(SyncRequest, WhatIsNotKnownOfTheRestoredCheckpointIsAbsent) {
  const SyncRequest request{.report = SyncReport{.restored = ReportedRestore{.attempt = 1}}};
  const Json restored = Json::parse(encode_sync_request(request))["report"]["restored"];
  EXPECT_EQ(restored, Json::parse(R"({"attempt":1,"step":0,"path":""})"));
}

TEST(SyncRequest, ABareOneIsEnough) {
  const Result<SyncRequest> request = decode_sync_request(R"({"pod":{"name":"p","uid":"u"}})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_FALSE(request->report);
  EXPECT_EQ(request->wait, std::chrono::seconds(0));
}

TEST(SyncRequest, WordsAndFieldsOfANewerSidecarAreKeptAndRefuseNothing) {
  const Result<SyncRequest> request = decode_sync_request(
      R"({"pod":{"name":"p","uid":"u"},"report":{"attempt":2,"phase":"dancing","mood":"good",
          "breakpoints":[{"cause":"solar_flare","state":"maybe"}]}})");
  ASSERT_TRUE(request) << request.error().message;
  const SyncReport& report = *request->report;
  EXPECT_EQ(report.attempt, 2u);
  EXPECT_EQ(report.phase, SidecarPhase::unknown);
  EXPECT_EQ(report.unknown_phase, "dancing");
  EXPECT_EQ(report.breakpoints[0].cause, TriggerCause::unknown);
  EXPECT_EQ(cause_word(report.breakpoints[0]), "solar_flare");
  EXPECT_EQ(report.breakpoints[0].state, SaveState::unknown);
  EXPECT_EQ(report.breakpoints[0].unknown_state, "maybe");
}

TEST(SyncRequest, HostileBodiesCostLittle) {
  Json body = Json::parse(R"({"pod":{"name":"p","uid":"u"},"wait_seconds":999999,"report":{}})");
  body["address"] = std::string(100000, 'x');
  body["report"]["phase"] = std::string(100000, 'x');
  body["report"]["restored"] = {{"manifest_hash", std::string(100000, 'x')}};
  for (int i = 0; i < 100; ++i) {
    body["report"]["breakpoints"].push_back({{"state", "failed"}, {"term", i}, {"message", std::string(5000, 'y')}});
    body["report"]["problems"].push_back({{"code", "c"}});
  }
  const Result<SyncRequest> request = decode_sync_request(dump_json(body));
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->wait, std::chrono::seconds(30));
  EXPECT_LE(request->sender.address.size(), 1024u);
  EXPECT_LE(request->report->unknown_phase.size(), 1024u);
  EXPECT_LE(request->report->restored->manifest_hash.size(), 1024u);
  ASSERT_EQ(request->report->breakpoints.size(), 16u);
  EXPECT_EQ(request->report->breakpoints.back().term, 99u);
  EXPECT_EQ(request->report->problems.size(), 16u);
}

TEST(SyncRequest, MoreThanAnySidecarSaysIsRefusedBeforeItCostsMemory) {
  std::string body = R"({"pod":{"name":"p","uid":"u"},"report":{"problems":[{})";
  for (int i = 0; i < 10'000; ++i) body += ",{}";
  const Result<SyncRequest> request = decode_sync_request(body + "]}}");
  ASSERT_FALSE(request);
  EXPECT_NE(request.error().message.find("make it smaller"), std::string::npos) << request.error().message;
}

TEST(SyncRequest, WhatDoesNotFitIsRefused) {
  for (const char* text :
       {"", "{", R"({})", R"({"pod":{"name":"p"}})", R"({"pod":{"name":"p","uid":"u"},"port":70000})",
        R"({"pod":{"name":"p","uid":"u"},"ordinal":-1})", R"({"pod":{"name":"p","uid":"u"},"ordinal":65536})",
        R"({"pod":{"name":"p","uid":"u"},"report":{"phase":7}})", R"({"pod":{"name":"p","uid":"u"},"report":[]})",
        R"({"pod":{"name":"p","uid":"u"},"report":{"breakpoints":[{}]}})",
        R"({"pod":{"name":"p","uid":"u"},"report":{"attempt":-1}})",
        R"({"pod":{"name":"p","uid":"u"},"report":{"restored":{"bytes":"many"}}})",
        R"({"pod":{"name":"p","uid":"u"},"report":{"restored":{"ranks":{"live":-1}}}})", R"([])"}) {
    EXPECT_FALSE(decode_sync_request(text)) << text;
  }
}

}  // namespace
}  // namespace rekindle
