#include "common/contract/sync_request.h"

#include <algorithm>
#include <utility>

#include "common/base/json_fields.h"
#include "common/contract/job_limits.h"

namespace rekindle {
namespace {

constexpr std::size_t kRequestBytesMax = 1u << 20;
// The longest report of today's sidecars has some four hundred.
constexpr std::size_t kRequestValuesMax = 10'000;
constexpr std::size_t kTextBytesMax = 1024;
constexpr std::size_t kListMax = 16;
constexpr std::uint64_t kWaitSecondsMax = 30;

// Cut at the limit, without leaving half a character of UTF-8 behind.
std::string cut(std::string text) {
  if (text.size() <= kTextBytesMax) return text;
  std::size_t end = kTextBytesMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0u) == 0x80u) --end;
  text.resize(end);
  return text;
}

template <NamedEnum Word>
std::string_view written(Word word, std::string_view unknown) {
  return word == Word::unknown ? unknown : to_string(word);
}

template <NamedEnum Word>
void read_word(std::string text, Word& word, std::string& unknown) {
  word = parse_enum<Word>(text).value_or(Word::unknown);
  if (word == Word::unknown) unknown = cut(std::move(text));
}

std::optional<std::uint64_t> optional_number(JsonFields& in, std::string_view name) {
  return in.has(name) ? std::optional(in.number_or(name, 0)) : std::nullopt;
}

Json encode_ranks(const RankCounts& ranks) { return {{"expected", ranks.expected}, {"live", ranks.live}}; }

Result<std::optional<RankCounts>> decode_ranks(JsonFields& in) {
  if (!in.has("ranks")) return std::nullopt;
  JsonFields fields(in.object_or_empty("ranks"), "ranks of a report");
  const RankCounts ranks{.expected = fields.number_or("expected", 0), .live = fields.number_or("live", 0)};
  if (Status status = fields.finish(); !status) return std::unexpected(status.error());
  return ranks;
}

Json encode_breakpoint(const ReportedBreakpoint& breakpoint) {
  Json object{{"id", breakpoint.id},
              {"term", breakpoint.term},
              {"cause", cause_word(breakpoint)},
              {"pod", breakpoint.pod},
              {"detail", breakpoint.detail},
              {"state", written(breakpoint.state, breakpoint.unknown_state)},
              {"step", breakpoint.step},
              {"path", breakpoint.path},
              {"manifest_hash", breakpoint.manifest_hash},
              {"bytes", breakpoint.bytes},
              {"ranks", breakpoint.ranks},
              {"message", breakpoint.message},
              {"time", breakpoint.time}};
  if (breakpoint.agreed_milliseconds) object["agreed_milliseconds"] = *breakpoint.agreed_milliseconds;
  if (breakpoint.durable_milliseconds) object["durable_milliseconds"] = *breakpoint.durable_milliseconds;
  if (breakpoint.rebuild) object["rebuild"] = true;
  return object;
}

Result<ReportedBreakpoint> decode_breakpoint(const Json& object) {
  JsonFields in(object, "reported breakpoint");
  ReportedBreakpoint breakpoint{.id = cut(in.text_or("id", "")),
                                .term = in.number_or("term", 0),
                                .pod = cut(in.text_or("pod", "")),
                                .detail = cut(in.text_or("detail", "")),
                                .step = in.number_or("step", 0),
                                .path = cut(in.text_or("path", "")),
                                .manifest_hash = cut(in.text_or("manifest_hash", "")),
                                .bytes = in.number_or("bytes", 0),
                                .ranks = in.number_or("ranks", 0),
                                .agreed_milliseconds = optional_number(in, "agreed_milliseconds"),
                                .durable_milliseconds = optional_number(in, "durable_milliseconds"),
                                .message = cut(in.text_or("message", "")),
                                .time = cut(in.text_or("time", "")),
                                .rebuild = in.boolean_or("rebuild", false)};
  read_word(in.text_or("cause", ""), breakpoint.cause, breakpoint.unknown_cause);
  read_word(in.text("state"), breakpoint.state, breakpoint.unknown_state);
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  return breakpoint;
}

Json encode_restore(const ReportedRestore& restore) {
  Json object{{"attempt", restore.attempt}, {"step", restore.step}, {"path", restore.path}};
  if (restore.first_step != 0) object["first_step"] = restore.first_step;
  if (!restore.manifest_hash.empty()) object["manifest_hash"] = restore.manifest_hash;
  if (restore.bytes) object["bytes"] = *restore.bytes;
  if (restore.ranks) object["ranks"] = encode_ranks(*restore.ranks);
  if (restore.agreed_milliseconds) object["agreed_milliseconds"] = *restore.agreed_milliseconds;
  return object;
}

Result<ReportedRestore> decode_restore(const Json& object) {
  JsonFields in(object, "report restored");
  Result<std::optional<RankCounts>> ranks = decode_ranks(in);
  if (!ranks) return std::unexpected(ranks.error());
  ReportedRestore restore{.attempt = in.number_or("attempt", 0),
                          .step = in.number_or("step", 0),
                          .path = cut(in.text_or("path", "")),
                          .first_step = in.number_or("first_step", 0),
                          .manifest_hash = cut(in.text_or("manifest_hash", "")),
                          .bytes = optional_number(in, "bytes"),
                          .ranks = *ranks,
                          .agreed_milliseconds = optional_number(in, "agreed_milliseconds")};
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  return restore;
}

Json encode_report(const SyncReport& report) {
  Json object{
      {"attempt", report.attempt}, {"step", report.step}, {"phase", written(report.phase, report.unknown_phase)}};
  if (report.ranks) object["ranks"] = encode_ranks(*report.ranks);
  if (report.restored) object["restored"] = encode_restore(*report.restored);
  for (const ReportedBreakpoint& breakpoint : report.breakpoints)
    object["breakpoints"].push_back(encode_breakpoint(breakpoint));
  for (const ReportedProblem& problem : report.problems)
    object["problems"].push_back({{"code", problem.code}, {"message", problem.message}});
  return object;
}

Result<SyncReport> decode_report(const Json& object) {
  JsonFields in(object, "report");
  Result<std::optional<RankCounts>> ranks = decode_ranks(in);
  if (!ranks) return std::unexpected(ranks.error());
  SyncReport report{.attempt = in.number_or("attempt", 0), .step = in.number_or("step", 0), .ranks = *ranks};
  read_word(in.text_or("phase", to_string(SidecarPhase::waiting)), report.phase, report.unknown_phase);
  if (in.has("restored")) {
    Result<ReportedRestore> restored = decode_restore(in.object_or_empty("restored"));
    if (!restored) return std::unexpected(restored.error());
    report.restored = std::move(*restored);
  }
  const Json& breakpoints = in.array_or_empty("breakpoints");
  for (std::size_t i = breakpoints.size() - std::min(breakpoints.size(), kListMax); i < breakpoints.size(); ++i) {
    Result<ReportedBreakpoint> breakpoint = decode_breakpoint(breakpoints[i]);
    if (!breakpoint) return std::unexpected(breakpoint.error());
    report.breakpoints.push_back(std::move(*breakpoint));
  }
  const Json& problems = in.array_or_empty("problems");
  for (std::size_t i = 0; i < std::min(problems.size(), kListMax); ++i) {
    JsonFields problem(problems[i], "report problem");
    report.problems.push_back({cut(problem.text_or("code", "")), cut(problem.text_or("message", ""))});
    if (Status status = problem.finish(); !status) return std::unexpected(status.error());
  }
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  return report;
}

}  // namespace

std::string_view cause_word(const ReportedBreakpoint& breakpoint) {
  return written(breakpoint.cause, breakpoint.unknown_cause);
}

std::string encode_sync_request(const SyncRequest& request) {
  const SyncSender& sender = request.sender;
  Json body{{"pod", {{"name", sender.pod_name}, {"uid", sender.pod_uid}}},
            {"address", sender.address},
            {"port", sender.port},
            {"ordinal", sender.ordinal},
            {"coordinating", sender.coordinating},
            {"seen", request.seen},
            {"wait_seconds", request.wait.count()}};
  if (request.report) body["report"] = encode_report(*request.report);
  return dump_json(body);
}

Result<SyncRequest> decode_sync_request(std::string_view text) {
  Result<Json> body = parse_json(text, "sync request", kRequestBytesMax, kRequestValuesMax);
  if (!body) return std::unexpected(body.error());
  JsonFields in(*body, "sync request");
  JsonFields pod(in.object("pod"), "sync request pod");
  const std::uint64_t port = in.number_or("port", 0);
  if (port > 65'535) in.refuse("port", "must be at most 65535");
  // It is told to the other sidecars, which would refuse the whole answer.
  const std::uint64_t ordinal = in.number_or("ordinal", 0);
  if (ordinal >= kPodsMax) in.refuse("ordinal", "is no place in a job");
  SyncRequest request{.sender = {.pod_name = cut(pod.text("name")),
                                 .pod_uid = cut(pod.text("uid")),
                                 .address = cut(in.text_or("address", "")),
                                 .port = static_cast<std::uint16_t>(port),
                                 .ordinal = static_cast<std::uint32_t>(ordinal),
                                 .coordinating = in.boolean_or("coordinating", false)},
                      .seen = in.number_or("seen", 0),
                      .wait = std::chrono::seconds(std::min(in.number_or("wait_seconds", 0), kWaitSecondsMax)),
                      .report = {}};
  const Json& contents = in.object_or_empty("report");
  if (Status status = pod.finish(); !status) return std::unexpected(status.error());
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  if (!in.has("report")) return request;
  Result<SyncReport> report = decode_report(contents);
  if (!report) return std::unexpected(report.error());
  request.report = std::move(*report);
  return request;
}

}  // namespace rekindle
