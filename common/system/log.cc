#include "common/system/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "common/base/format.h"
#include "common/base/json_fields.h"
#include "common/system/clock.h"

namespace rekindle {
namespace {

// The line is made here, escaped as JSON; spdlog's own pattern would put text in unescaped.
spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>("rekindle", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%v");
    made->flush_on(spdlog::level::trace);
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
  nlohmann::ordered_json line{{"ts", to_micro_text(wall_now())}, {"level", to_string(level)}, {"msg", message}};
  for (const auto& [key, value] : fields) line[std::string(key)] = value;
  logger().log(to_spdlog(level), "{}", line.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void log_line(LogLevel level, std::string_view message,
              std::span<const std::pair<std::string_view, std::string>> fields) {
  if (!logger().should_log(to_spdlog(level))) return;
  nlohmann::ordered_json line{{"ts", to_micro_text(wall_now())}, {"level", to_string(level)}, {"msg", message}};
  for (const auto& [key, value] : fields) line[std::string(key)] = value;
  logger().log(to_spdlog(level), "{}", line.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace rekindle
