#include "worker-sidecar/sidecar/cluster/reports.h"

#include <gtest/gtest.h>

namespace rekindle::sidecar {
namespace {

const TimedRecord kRecord{.record = {.id = "digits-1",
                                     .cause = TriggerCause::hook,
                                     .pod = 1,
                                     .state = SaveState::durable,
                                     .step = 184,
                                     .agreed_milliseconds = 5.25},
                          .time = "2026-11-21T12:00:00Z"};

TEST(Reports, ABreakpointNamesItsPodAsPeopleDo) {
  EXPECT_EQ(report_of(kRecord, {"digits-worker-0", "digits-worker-1"}).pod, "digits-worker-1");
}

TEST(Reports, APodWhoseNameIsNotKnownIsNamedByItsPlace) {
  EXPECT_EQ(report_of(kRecord, {"digits-worker-0"}).pod, "pod 1");
  EXPECT_EQ(report_of(kRecord, {"digits-worker-0", ""}).pod, "pod 1");
}

TEST(Reports, TimesAreWholeMillisecondsAndAbsentBeforeThereIsOne) {
  const ReportedBreakpoint told = report_of(kRecord, {});
  EXPECT_EQ(told.agreed_milliseconds, 6u);
  EXPECT_FALSE(told.durable_milliseconds);
}

TEST(Reports, ARestoreTellsWhatTheManifestSays) {
  const CheckpointSummary summary{.bytes = 1212000, .world_size = 4, .live_ranks = 3, .agreed_milliseconds = 6};
  EXPECT_EQ(report_of(AttemptBegun{.attempt = 2, .step = 184, .path = "p", .manifest_hash = "7d", .summary = summary}),
            (ReportedRestore{.attempt = 2,
                             .step = 184,
                             .path = "p",
                             .manifest_hash = "7d",
                             .bytes = 1212000,
                             .ranks = RankCounts{.expected = 4, .live = 3},
                             .agreed_milliseconds = 6}));
}

TEST(Reports, ARestoreOfNothingTellsNoManifest) {
  EXPECT_EQ(report_of(AttemptBegun{.attempt = 1}), (ReportedRestore{.attempt = 1}));
}

}  // namespace
}  // namespace rekindle::sidecar
