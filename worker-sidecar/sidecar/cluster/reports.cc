#include "worker-sidecar/sidecar/cluster/reports.h"

#include <cmath>

#include "common/base/format.h"

namespace rekindle::sidecar {
namespace {

// Whole milliseconds, and only once there is something to tell.
std::optional<std::uint64_t> whole_milliseconds(double milliseconds) {
  if (milliseconds <= 0) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(std::ceil(milliseconds)));
}

}  // namespace

ReportedBreakpoint report_of(const TimedRecord& timed, const std::vector<std::string>& pod_names) {
  const BreakpointRecord& record = timed.record;
  const bool named = record.pod < pod_names.size() && !pod_names[record.pod].empty();
  return {.id = record.id,
          .term = record.term,
          .cause = record.cause,
          .pod = named ? pod_names[record.pod] : format("pod {}", record.pod),
          .detail = record.detail,
          .state = record.state,
          .step = record.step,
          .path = record.path,
          .manifest_hash = record.manifest_hash,
          .bytes = record.bytes,
          .ranks = record.ranks,
          .agreed_milliseconds = whole_milliseconds(record.agreed_milliseconds),
          .durable_milliseconds = whole_milliseconds(record.durable_milliseconds),
          .message = record.message,
          .time = timed.time,
          .rebuild = record.rebuild};
}

ReportedRestore report_of(const AttemptBegun& begun) {
  ReportedRestore restored{.attempt = begun.attempt,
                           .step = begun.step,
                           .path = begun.path,
                           .manifest_hash = begun.manifest_hash,
                           .bytes = {},
                           .ranks = {},
                           .agreed_milliseconds = {}};
  if (!begun.summary) return restored;
  restored.bytes = begun.summary->bytes;
  restored.ranks = {.expected = begun.summary->world_size, .live = begun.summary->live_ranks};
  if (begun.summary->agreed_milliseconds != 0) restored.agreed_milliseconds = begun.summary->agreed_milliseconds;
  return restored;
}

}  // namespace rekindle::sidecar
