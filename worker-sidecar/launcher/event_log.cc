#include "worker-sidecar/launcher/event_log.h"

#include <fcntl.h>

#include <cerrno>
#include <cmath>
#include <utility>

#include "common/base/format.h"
#include "common/base/json_fields.h"

namespace rekindle::launcher {
namespace {

constexpr std::size_t kEventBytesMax = 1u << 20;

}  // namespace

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

Status EventLog::open(const std::string& path) {
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file) return fail_errno(errno, format("the event file {} cannot be written", path));
  lines_ = std::make_unique<OutputQueue>(std::move(file), kEventBytesMax, [](std::uint64_t dropped) {
    return dump_json(Json{{"event", "lines_dropped"}, {"message", std::to_string(dropped)}}) + "\n";
  });
  return {};
}

void EventLog::write(const RunEvent& event, Instant at) {
  // An event that a full disk swallows is no reason to disturb the run.
  if (lines_) lines_->write(event_line(event, at - start_) + "\n");
}

void EventLog::flush() const {
  if (lines_) lines_->flush(OutputQueue::kPatienceAtEnd);
}

}  // namespace rekindle::launcher
