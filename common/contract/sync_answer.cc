#include "common/contract/sync_answer.h"

#include <algorithm>
#include <utility>

#include "common/base/json_fields.h"
#include "common/contract/job_limits.h"

namespace rekindle {
namespace {

Json encode_pod(const SyncPod& pod) {
  return {{"name", pod.name},       {"uid", pod.uid},   {"ordinal", pod.ordinal},
          {"address", pod.address}, {"port", pod.port}, {"old", pod.stale}};
}

Result<SyncPod> decode_pod(const Json& object) {
  JsonFields in(object, "a pod of the operator's answer");
  const std::uint64_t ordinal = in.number("ordinal");
  if (ordinal >= kPodsMax) in.refuse("ordinal", "is no place in a job");
  const std::uint64_t port = in.number_or("port", 0);
  if (port > 65'535) in.refuse("port", "is no port");
  SyncPod pod{.name = in.text("name"),
              .uid = in.text("uid"),
              .ordinal = ordinal,
              .address = in.text_or("address", ""),
              .port = static_cast<std::uint16_t>(port),
              .stale = in.boolean_or("old", false)};
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  return pod;
}

Json encode_order(const SyncOrder& order) {
  return {{"breakpoint", order.breakpoint},
          {"cause", to_string(order.cause)},
          {"detail", order.detail},
          {"seconds_left", order.seconds_left},
          {"after", to_string(order.after)}};
}

Result<SyncOrder> decode_order(const Json& object) {
  JsonFields in(object, "an order of the operator");
  SyncOrder order{.breakpoint = in.text("breakpoint"), .detail = in.text_or("detail", "")};
  order.cause = parse_enum<TriggerCause>(in.text_or("cause", "")).value_or(TriggerCause::unknown);
  const Result<AfterBreakpoint> after = parse_after_breakpoint(in.text_or("after", to_string(AfterBreakpoint::park)));
  if (!after) in.refuse("after", "is none of go_on, park, stop");
  if (after) order.after = *after;
  if (in.has("seconds_left")) {
    const auto found = object.find("seconds_left");
    if (!found->is_number() || found->get<double>() < 0) {
      in.refuse("seconds_left", "is no number of seconds");
    } else {
      order.seconds_left = static_cast<std::int64_t>(std::min(found->get<double>(), kMessageSecondsMax));
    }
  }
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  return order;
}

}  // namespace

std::string encode_sync_answer(const SyncAnswer& answer) {
  Json body{{"version", answer.version},
            {"job", {{"namespace", answer.job_namespace}, {"name", answer.job_name}, {"uid", answer.job_uid}}},
            {"pods_expected", answer.pods_expected},
            {"pods", Json::array()},
            {"go", answer.start_allowed},
            {"orders", Json::array()}};
  for (const SyncPod& pod : answer.pods) body["pods"].push_back(encode_pod(pod));
  for (const SyncOrder& order : answer.orders) body["orders"].push_back(encode_order(order));
  return dump_json(body);
}

Result<SyncAnswer> decode_sync_answer(std::string_view text) {
  Result<Json> parsed = parse_json(text, "the operator's answer");
  if (!parsed) return std::unexpected(parsed.error());
  JsonFields in(*parsed, "the operator's answer");
  JsonFields job(in.object("job"), "job of the operator's answer");
  SyncAnswer answer{.version = in.number("version"),
                    .job_namespace = job.text_or("namespace", ""),
                    .job_name = job.text_or("name", ""),
                    .job_uid = job.text("uid"),
                    .pods_expected = in.number("pods_expected"),
                    .pods = {},
                    .start_allowed = in.boolean("go"),
                    .orders = {}};
  if (answer.pods_expected > kPodsMax) in.refuse("pods_expected", "is more than a job can have");
  const Json& pods = in.array("pods");
  if (pods.size() > kPodsMax) in.refuse("pods", "has too many entries");
  const Json& orders = in.array_or_empty("orders");
  if (orders.size() > kPodsMax) in.refuse("orders", "has too many entries");
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  if (Status status = job.finish(); !status) return std::unexpected(status.error());
  for (const Json& object : pods) {
    Result<SyncPod> pod = decode_pod(object);
    if (!pod) return std::unexpected(pod.error());
    answer.pods.push_back(std::move(*pod));
  }
  for (const Json& object : orders) {
    Result<SyncOrder> order = decode_order(object);
    if (!order) return std::unexpected(order.error());
    answer.orders.push_back(std::move(*order));
  }
  return answer;
}

}  // namespace rekindle
