#include "common/system/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "common/base/format.h"
#include "common/base/json_fields.h"
#include "common/system/clock.h"
#include "common/system/output_queue.h"

namespace rekindle {
namespace {

constexpr std::size_t kWaitingBytesMax = 1u << 20;

template <typename Fields>
std::string line_of(LogLevel level, std::string_view message, const Fields& fields) {
  nlohmann::ordered_json line{{"ts", to_micro_text(wall_now())}, {"level", to_string(level)}, {"msg", message}};
  for (const auto& [key, value] : fields) line[std::string(key)] = value;
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string notice_of(std::uint64_t dropped) {
  return line_of(LogLevel::warning, "log lines were dropped, because nobody read this output",
                 LogFields{{"lines", dropped}}) +
         "\n";
}

// Never destroyed: threads that still run while the process ends may log.
OutputQueue& standard_error() {
  static OutputQueue& queue = [] -> OutputQueue& {
    auto* const made = new OutputQueue(FileDescriptor(STDERR_FILENO), kWaitingBytesMax, notice_of);
    std::atexit([] { standard_error().flush(OutputQueue::kPatienceAtEnd); });
    return *made;
  }();
  return queue;
}

// A log that nobody reads any more must not hold who logs.
class QueueSink final : public spdlog::sinks::base_sink<std::mutex> {
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    standard_error().write(std::string(text.data(), text.size()));
  }
  void flush_() override {}
};

// The line is made here, escaped as JSON; spdlog's own pattern would put text in unescaped.
spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>("rekindle", std::make_shared<QueueSink>());
    made->set_pattern("%v");
    return made;
  }();
  return *instance;
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warning: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

Result<LogLevel> parse_log_level(std::string_view text) {
  if (const std::optional<LogLevel> level = parse_enum<LogLevel>(text)) return *level;
  return fail(ErrorCode::invalid_input, format("log level '{}' is none of {}", text, list_enum_names<LogLevel>()));
}

void set_log_level(LogLevel level) { logger().set_level(to_spdlog(level)); }

void log_line(LogLevel level, std::string_view message, LogFields fields) {
  if (!logger().should_log(to_spdlog(level))) return;
  logger().log(to_spdlog(level), "{}", line_of(level, message, fields));
}

void log_line(LogLevel level, std::string_view message,
              std::span<const std::pair<std::string_view, std::string>> fields) {
  if (!logger().should_log(to_spdlog(level))) return;
  logger().log(to_spdlog(level), "{}", line_of(level, message, fields));
}

}  // namespace rekindle
