#include "operator/model/sidecar_report.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/json_fields.h"

namespace rekindle::op {
namespace {

constexpr std::size_t kTextBytesMax = 1024;
constexpr std::size_t kListMax = 16;
constexpr std::uint64_t kWaitSecondsMax = 30;
constexpr std::int64_t kPodsMax = 65'536;

constexpr std::array<std::pair<std::string_view, SidecarPhase>, 6> kSidecarPhases{{
    {"waiting", SidecarPhase::waiting},
    {"restoring", SidecarPhase::restoring},
    {"training", SidecarPhase::training},
    {"saving", SidecarPhase::saving},
    {"parked", SidecarPhase::parked},
    {"finished", SidecarPhase::finished},
}};

constexpr std::array<std::pair<std::string_view, SaveState>, 4> kSaveStates{{
    {"collecting", SaveState::collecting},
    {"writing", SaveState::writing},
    {"durable", SaveState::durable},
    {"failed", SaveState::failed},
}};

// Cut at the limit, without leaving half a character of UTF-8 behind.
std::string cut(std::string text) {
  if (text.size() <= kTextBytesMax) return text;
  std::size_t end = kTextBytesMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0u) == 0x80u) --end;
  text.resize(end);
  return text;
}

template <typename Value, std::size_t Count>
Value one_of(JsonFields& in, std::string_view name, const std::string& text,
             const std::array<std::pair<std::string_view, Value>, Count>& words, Value otherwise) {
  for (const auto& [word, value] : words) {
    if (word == text) return value;
  }
  in.refuse(name, "has an unknown value");
  return otherwise;
}

Result<ReportedBreakpoint> breakpoint_from(const Json& entry) {
  JsonFields in(entry, "reported breakpoint");
  ReportedBreakpoint read{.id = cut(in.text_or("id", "")),
                          .term = in.number_or("term", 0),
                          .cause = cut(in.text_or("cause", "")),
                          .pod = cut(in.text_or("pod", "")),
                          .detail = cut(in.text_or("detail", "")),
                          .step = in.number_or("step", 0),
                          .path = cut(in.text_or("path", "")),
                          .manifest_hash = cut(in.text_or("manifest_hash", "")),
                          .bytes = in.number_or("bytes", 0),
                          .ranks = in.number_or("ranks", 0),
                          .message = cut(in.text_or("message", "")),
                          .time = cut(in.text_or("time", "")),
                          .rebuild = in.boolean_or("rebuild", false)};
  read.state = one_of(in, "state", in.text("state"), kSaveStates, SaveState::failed);
  if (in.has("agreed_milliseconds")) read.agreed_milliseconds = in.number_or("agreed_milliseconds", 0);
  if (in.has("durable_milliseconds")) read.durable_milliseconds = in.number_or("durable_milliseconds", 0);
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  return read;
}

Result<ReportedRestore> restore_from(const Json& entry) {
  JsonFields in(entry, "report restored");
  JsonFields ranks(in.object_or_empty("ranks"), "report restored ranks");
  ReportedRestore read{.attempt = in.number_or("attempt", 0),
                       .step = in.number_or("step", 0),
                       .path = cut(in.text_or("path", "")),
                       .first_step = in.number_or("first_step", 0),
                       .manifest_hash = cut(in.text_or("manifest_hash", "")),
                       .bytes = in.number_or("bytes", 0),
                       .ranks_expected = ranks.number_or("expected", 0),
                       .ranks_live = ranks.number_or("live", 0)};
  if (in.has("agreed_milliseconds")) read.agreed_milliseconds = in.number_or("agreed_milliseconds", 0);
  if (Status status = ranks.finish(); !status) return std::unexpected(status.error());
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  return read;
}

Status read_report(const Json& body, SidecarReport& report) {
  JsonFields in(body, "report");
  report.attempt = in.number_or("attempt", 0);
  report.step = in.number_or("step", 0);
  report.phase = one_of(in, "phase", in.text_or("phase", "waiting"), kSidecarPhases, SidecarPhase::waiting);
  JsonFields ranks(in.object_or_empty("ranks"), "report ranks");
  report.ranks_expected = ranks.number_or("expected", 0);
  report.ranks_live = ranks.number_or("live", 0);
  if (Status status = ranks.finish(); !status) return status;
  if (in.has("restored")) {
    Result<ReportedRestore> restored = restore_from(in.object_or_empty("restored"));
    if (!restored) return std::unexpected(restored.error());
    report.restored = std::move(*restored);
  }
  const Json& breakpoints = in.array_or_empty("breakpoints");
  const std::size_t skip = breakpoints.size() > kListMax ? breakpoints.size() - kListMax : 0;
  for (std::size_t i = skip; i < breakpoints.size(); ++i) {
    Result<ReportedBreakpoint> read = breakpoint_from(breakpoints[i]);
    if (!read) return std::unexpected(read.error());
    report.breakpoints.push_back(std::move(*read));
  }
  const Json& problems = in.array_or_empty("problems");
  for (std::size_t i = 0; i < std::min(problems.size(), kListMax); ++i) {
    JsonFields problem(problems[i], "report problem");
    report.problems.push_back({cut(problem.text_or("code", "")), cut(problem.text_or("message", ""))});
    if (Status status = problem.finish(); !status) return status;
  }
  return in.finish();
}

}  // namespace

std::string_view to_string(SidecarPhase phase) { return kSidecarPhases[static_cast<std::size_t>(phase)].first; }
std::string_view to_string(SaveState state) { return kSaveStates[static_cast<std::size_t>(state)].first; }

Result<SyncRequest> sync_request_from_json(const Json& body) {
  JsonFields in(body, "sync request");
  SyncRequest request;
  SidecarReport& report = request.report;
  JsonFields pod(in.object("pod"), "sync request pod");
  report.pod_name = cut(pod.text("name"));
  report.pod_uid = cut(pod.text("uid"));
  report.address = cut(in.text_or("address", ""));
  const std::uint64_t port = in.number_or("port", 0);
  if (port > 65535) in.refuse("port", "must be at most 65535");
  report.port = static_cast<std::uint16_t>(port);
  report.ordinal = in.integer_or("ordinal", 0);
  // It is told to the other sidecars, which would refuse the whole answer.
  if (report.ordinal < 0 || report.ordinal >= kPodsMax) in.refuse("ordinal", "is no place in a job");
  report.coordinating = in.boolean_or("coordinating", false);
  request.seen = in.number_or("seen", 0);
  request.wait = std::chrono::seconds(std::min(in.number_or("wait_seconds", 0), kWaitSecondsMax));
  request.has_report = in.has("report");
  const Json& contents = in.object_or_empty("report");
  if (Status status = pod.finish(); !status) return std::unexpected(status.error());
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  if (Status status = read_report(contents, report); !status) return std::unexpected(status.error());
  return request;
}

}  // namespace rekindle::op
