// Structured logs: one JSON object a line on standard error, with ts, level, msg and the keys that
// the caller gives. Text from users is escaped, so a line is always valid JSON. Any thread.
// A call never waits for who reads: what cannot be written for long is dropped, and a line says how
// many were (common/system/output_queue.h).
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/enum_names.h"
#include "common/base/error.h"

namespace rekindle {

enum class LogLevel { debug, info, warning, error };
constexpr auto enum_names(LogLevel) {
  return std::to_array<EnumName<LogLevel>>({{LogLevel::debug, "debug"},
                                            {LogLevel::info, "info"},
                                            {LogLevel::warning, "warning"},
                                            {LogLevel::error, "error"}});
}

Result<LogLevel> parse_log_level(std::string_view text);

void set_log_level(LogLevel level);

using LogFields = std::initializer_list<std::pair<std::string_view, nlohmann::json>>;

void log_line(LogLevel level, std::string_view message, LogFields fields = {});
// The same with fields whose number is not known beforehand.
void log_line(LogLevel level, std::string_view message,
              std::span<const std::pair<std::string_view, std::string>> fields);

inline void log_debug(std::string_view message, LogFields fields = {}) { log_line(LogLevel::debug, message, fields); }
inline void log_info(std::string_view message, LogFields fields = {}) { log_line(LogLevel::info, message, fields); }
inline void log_warning(std::string_view message, LogFields fields = {}) {
  log_line(LogLevel::warning, message, fields);
}
inline void log_error(std::string_view message, LogFields fields = {}) { log_line(LogLevel::error, message, fields); }

}  // namespace rekindle
