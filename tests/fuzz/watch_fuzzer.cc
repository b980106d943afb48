// A WATCH of the API server, in portions of any size: lines, events, and the objects that the
// operator decides by. Where the stream is cut changes nothing; what an object says is within the
// bounds that decisions count on.
#include <chrono>
#include <optional>
#include <vector>

#include "operator/kube/line_splitter.h"
#include "operator/kube/watch_event.h"
#include "operator/model/breakpoint.h"
#include "operator/model/job.h"
#include "operator/model/pod.h"
#include "tests/fuzz/support/cost.h"

namespace rekindle::op {
namespace {

// As the thread of a watch does it: each line is taken before more comes. False: the stream was
// given up.
template <typename Take>
bool hear(std::string_view stream, std::size_t portion, std::size_t line_bytes_max, Take take) {
  LineSplitter splitter(line_bytes_max);
  while (!stream.empty()) {
    const Status fed = splitter.feed(stream.substr(0, portion));
    stream.remove_prefix(std::min(portion, stream.size()));
    while (std::optional<std::string> line = splitter.next()) take(std::move(*line));
    RK_ASSERT(splitter.unfinished_bytes() <= line_bytes_max);
    if (!fed) return false;
  }
  return true;
}

struct Heard {
  std::vector<std::string> lines;
  bool whole = false;

  bool operator==(const Heard&) const = default;
};

Heard lines_of(std::string_view stream, std::size_t portion, std::size_t line_bytes_max) {
  Heard heard;
  heard.whole =
      hear(stream, portion, line_bytes_max, [&](std::string line) { heard.lines.push_back(std::move(line)); });
  return heard;
}

void check_policies(const std::vector<PolicyRule>& rules) {
  for (const PolicyRule& rule : rules) RK_ASSERT(rule.timeout.count() >= 0 && rule.timeout <= std::chrono::days(366));
}

void check_job(const Json& object) {
  const Result<Job> job = job_from_json(object);
  if (!job) return expect_sentence(job.error());
  check_policies(job->policies);
  RK_ASSERT(pods_expected(*job) >= 0);
  for (const JobTask& task : job->tasks) {
    RK_ASSERT(!task.name.empty() && task.replicas >= 0);
    check_policies(task.policies);
  }
}

void check_pod(const Json& object) {
  const Result<Pod> pod = pod_from_json(object);
  if (!pod) return expect_sentence(pod.error());
  if (const std::optional<WallTime> began = deletion_began(*pod)) RK_ASSERT(*began <= *pod->deletion_time);
}

Json written_again(const Breakpoint& breakpoint) {
  Json object = breakpoint_to_json(breakpoint);
  object["status"] = breakpoint_status_to_json(breakpoint.status, 0);
  return object;
}

void check_breakpoint(const Json& object) {
  const Result<Breakpoint> breakpoint = breakpoint_from_json(object);
  if (!breakpoint) return expect_sentence(breakpoint.error());
  // Times are cut to seconds when they are written, so the objects are compared from then on.
  const Json written = written_again(*breakpoint);
  const Result<Breakpoint> again = breakpoint_from_json(written);
  RK_ASSERT(again.has_value() && written_again(*again) == written);
}

void check_line(std::string_view line) {
  const Result<WatchEvent> event = decode_watch_event(line);
  if (!event) return expect_sentence(event.error());
  RK_ASSERT((event->kind == WatchEventKind::error) == event->resource_version.empty());
  if (event->kind == WatchEventKind::error) return expect_sentence(to_error(event->status));
  check_job(event->object);
  check_pod(event->object);
  check_breakpoint(event->object);
}

}  // namespace
}  // namespace rekindle::op

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  using namespace rekindle;
  using namespace rekindle::op;
  // Of an empty object in a list the tree makes much more than of a text.
  constexpr CostBound kTreeBound{.microseconds_per_kib = 5000, .bytes_per_byte = 128};
  // The unfinished line, a copy while it grows, and the one that is given out.
  constexpr CostBound kBound{.bytes_per_byte = 4};
  const std::size_t most = LineSplitter::kLineBytesMax;
  const auto is_heard = [&](std::string_view name, const std::string& stream, std::size_t portion) {
    expect_cost(stream.size(), [&] { hear(stream, portion, most, [](const std::string&) {}); }, kBound, name);
  };
  is_heard("a long line", std::string(most + 1, 'x'), 1 << 14);
  is_heard("many lines", repeated("", "{}\n", "", most), 1 << 14);
  is_heard("empty lines", repeated("", "\r\n", "", most), most);
  // Objects in etcd are smaller than this one.
  constexpr std::size_t kBytes = 512 << 10;
  const auto is_read = [&](std::string_view name, const std::string& text) {
    expect_cost(text.size(), [&] { check_line(text); }, kTreeBound, name);
  };
  const std::string head = R"({"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"1"},)";
  for_each_large_json(head + R"("more":%}})", kBytes, is_read);
  for_each_large_json(head + R"("spec":{"jobRef":{"name":"a"},"tasks":%}}})", kBytes, is_read);
  for_each_large_json(head + R"("spec":{"tasks":[{"policies":%}]}}})", kBytes, is_read);
  const std::string named =
      head + R"("spec":{"tasks":[{"name":")" + std::string(kBytes / 2, 'n') + R"(","policies":[{})";
  is_read("policies of a task with a long name", repeated(named, ",{}", "]}]}}}", kBytes));
  for_each_large_json(head + R"("status":{"conditions":%}}})", kBytes, is_read);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace rekindle;
  using namespace rekindle::op;
  std::string_view stream = text_of(data, bytes);
  const std::size_t portion = 1 + take_number<std::uint8_t>(stream);
  // Small enough for an input to reach it.
  constexpr std::size_t kLineBytesMax = 2048;
  const Heard whole = lines_of(stream, stream.size() + 1, kLineBytesMax);
  RK_ASSERT(lines_of(stream, portion, kLineBytesMax) == whole);
  for (const std::string& line : whole.lines) {
    RK_ASSERT(!line.empty() && line.size() <= kLineBytesMax && line.find('\n') == std::string::npos);
    expect_cost(line.size(), [&] { check_line(line); }, {.bytes_per_byte = 128});
  }
  return 0;
}
