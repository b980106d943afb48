#include "worker-sidecar/sidecar/cluster/operator_sync.h"

#include <cmath>

#include "common/base/format.h"
#include "common/base/json_fields.h"

namespace rekindle::sidecar {
namespace {

constexpr std::size_t kPodsMax = 65'536;

Json encode_breakpoint(const TimedRecord& timed, const std::vector<std::string>& pod_names) {
  const BreakpointRecord& record = timed.record;
  const std::string pod = record.pod < pod_names.size() && !pod_names[record.pod].empty()
                              ? pod_names[record.pod]
                              : format("pod {}", record.pod);
  Json told{{"id", record.id},
            {"term", record.term},
            {"cause", to_string(record.cause)},
            {"pod", pod},
            {"detail", record.detail},
            {"state", to_string(record.state)},
            {"step", record.step},
            {"path", record.path},
            {"manifest_hash", record.manifest_hash},
            {"bytes", record.bytes},
            {"ranks", record.ranks},
            {"message", record.message},
            {"time", timed.time}};
  // Whole milliseconds, and only once there is something to tell.
  if (record.agreed_milliseconds > 0) told["agreed_milliseconds"] = std::llround(std::ceil(record.agreed_milliseconds));
  if (record.rebuild) told["rebuild"] = true;
  if (record.durable_milliseconds > 0)
    told["durable_milliseconds"] = std::llround(std::ceil(record.durable_milliseconds));
  return told;
}

Json encode_restored(const RestoredReport& restored) {
  Json told{{"attempt", restored.attempt}, {"step", restored.step}, {"path", restored.path}};
  if (restored.first_step != 0) told["first_step"] = restored.first_step;
  if (!restored.manifest_hash.empty()) told["manifest_hash"] = restored.manifest_hash;
  if (!restored.summary) return told;
  told["bytes"] = restored.summary->bytes;
  told["ranks"] = {{"expected", restored.summary->world_size}, {"live", restored.summary->live_ranks}};
  if (restored.summary->agreed_milliseconds != 0) told["agreed_milliseconds"] = restored.summary->agreed_milliseconds;
  return told;
}

}  // namespace

std::string encode_sync_request(const SyncRequest& request, const std::vector<std::string>& pod_names) {
  const SyncReport& report = request.report;
  Json body{{"pod", {{"name", request.pod_name}, {"uid", request.pod_uid}}},
            {"address", request.address},
            {"port", request.port},
            {"ordinal", request.ordinal},
            {"seen", request.seen},
            {"wait_seconds", request.wait_seconds},
            {"coordinating", request.coordinating}};
  Json& told = body["report"];
  told = {{"attempt", report.attempt}, {"step", report.step}, {"phase", report.phase}};
  if (request.coordinating) told["ranks"] = {{"expected", report.ranks_expected}, {"live", report.ranks_live}};
  if (report.restored.attempt != 0) told["restored"] = encode_restored(report.restored);
  for (const TimedRecord& record : report.breakpoints)
    told["breakpoints"].push_back(encode_breakpoint(record, pod_names));
  for (const auto& [code, message] : report.problems)
    told["problems"].push_back({{"code", code}, {"message", message}});
  return dump_json(body);
}

Result<SyncAnswer> decode_sync_answer(std::string_view text) {
  Result<Json> parsed = parse_json(text, "the operator's answer");
  if (!parsed) return std::unexpected(parsed.error());
  JsonFields in(*parsed, "the operator's answer");
  SyncAnswer answer;
  answer.version = in.number("version");
  const std::uint64_t pods_expected = in.number("pods_expected");
  if (pods_expected > kPodsMax) in.refuse("pods_expected", "is more than a job can have");
  answer.pods_expected = static_cast<std::uint32_t>(pods_expected);
  answer.start_allowed = in.boolean("go");
  JsonFields job(in.object("job"), "job of the operator's answer");
  answer.job_uid = job.text("uid");
  const Json& pods = in.array("pods");
  if (pods.size() > kPodsMax) in.refuse("pods", "has too many entries");
  const Json& orders = in.array_or_empty("orders");
  if (orders.size() > kPodsMax) in.refuse("orders", "has too many entries");
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  if (Status status = job.finish(); !status) return std::unexpected(status.error());
  for (const Json& entry : pods) {
    JsonFields pod(entry, "a pod of the operator's answer");
    const std::uint64_t ordinal = pod.number("ordinal");
    if (ordinal >= kPodsMax) pod.refuse("ordinal", "is no place in a job");
    SyncPod seen{.name = pod.text("name"),
                 .uid = pod.text("uid"),
                 .ordinal = static_cast<std::uint32_t>(ordinal),
                 .address = pod.text_or("address", "")};
    const std::uint64_t port = pod.number_or("port", 0);
    seen.old = pod.boolean_or("old", false);
    if (port > 65'535) pod.refuse("port", "is no port");
    seen.port = static_cast<std::uint16_t>(port);
    if (Status status = pod.finish(); !status) return std::unexpected(status.error());
    answer.pods.push_back(std::move(seen));
  }
  for (const Json& entry : orders) {
    JsonFields order(entry, "an order of the operator");
    OrderArrived seen{.breakpoint = order.text("breakpoint"), .detail = order.text_or("detail", "")};
    const Result<AfterBreakpoint> after = parse_after_breakpoint(order.text_or("after", "park"));
    if (!after) order.refuse("after", "is none of go_on, park, stop");
    if (after) seen.after = *after;
    if (order.has("seconds_left")) {
      const auto found = entry.find("seconds_left");
      if (!found->is_number() || found->get<double>() < 0) {
        order.refuse("seconds_left", "is no number of seconds");
      } else {
        seen.seconds_left = found->get<double>();
      }
    }
    if (Status status = order.finish(); !status) return std::unexpected(status.error());
    answer.orders.push_back(std::move(seen));
  }
  return answer;
}

}  // namespace rekindle::sidecar
