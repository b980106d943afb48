#include "worker-sidecar/coordination/record.h"

#include "common/base/format.h"

namespace rekindle::sidecar {

std::string to_text(const BreakpointRecord& record) {
  std::string text = "breakpoint";
  const auto add = [&text](std::string_view name, std::string_view value) {
    if (value.empty()) return;
    text.append(" ").append(name).append("=");
    const bool quoted = value.find(' ') != std::string_view::npos;
    if (quoted) text += '"';
    text.append(value);
    if (quoted) text += '"';
  };
  const auto milliseconds = [](double value) { return format("{:.0f}", value); };
  add("state", to_string(record.state));
  add("id", record.id);
  add("term", std::to_string(record.term));
  add("cause", to_string(record.cause));
  add("pod", std::to_string(record.pod));
  add("detail", record.detail);
  add("step", std::to_string(record.step));
  add("path", record.path);
  add("ranks", std::to_string(record.ranks));
  if (record.bytes != 0) add("bytes", std::to_string(record.bytes));
  if (record.agreed_milliseconds > 0) add("agreed_milliseconds", milliseconds(record.agreed_milliseconds));
  if (record.durable_milliseconds > 0) add("durable_milliseconds", milliseconds(record.durable_milliseconds));
  if (record.steps_lost != 0) add("steps_lost", std::to_string(record.steps_lost));
  if (record.rebuild) add("rebuild", "true");
  add("message", record.message);
  return text;
}

}  // namespace rekindle::sidecar
