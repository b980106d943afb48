#include "worker-sidecar/launcher/event_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>

#include "common/base/format.h"
#include "common/base/json_fields.h"

namespace rekindle::launcher {

std::string event_line(const RunEvent& event, Duration since_start) {
  Json line{{"milliseconds", std::round(to_milliseconds(since_start) * 1000) / 1000}, {"event", event.event}};
  if (event.attempt != 0) line["attempt"] = event.attempt;
  if (event.step != 0 || event.event == "restored") line["step"] = event.step;
  if (event.term != 0) line["term"] = event.term;
  if (event.rank >= 0) line["rank"] = event.rank;
  if (!event.path.empty()) line["path"] = event.path;
  if (!event.message.empty()) line["message"] = event.message;
  if (event.exit_code >= 0) line["exit_code"] = event.exit_code;
  return dump_json(line);
}

EventLog::~EventLog() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status EventLog::open(const std::string& path) {
  const std::lock_guard lock(mutex_);
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0) return fail_errno(errno, format("the event file {} cannot be written", path));
  return {};
}

void EventLog::write(const RunEvent& event, Instant at) {
  const std::lock_guard lock(mutex_);
  if (descriptor_ < 0) return;
  const std::string line = event_line(event, at - start_) + "\n";
  // One write a line; an event that a full disk swallows is no reason to disturb the run.
  [[maybe_unused]] const ssize_t written = ::write(descriptor_, line.data(), line.size());
}

}  // namespace rekindle::launcher
