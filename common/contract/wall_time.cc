#include "common/contract/wall_time.h"

#include <array>
#include <cstdint>
#include <cstdio>

namespace rekindle {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// Reads exactly `count` digits; -1 when they are not there.
int digits(std::string_view text, std::size_t at, std::size_t count) {
  if (at + count > text.size()) return -1;
  int value = 0;
  for (std::size_t i = at; i < at + count; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

struct Parts {
  std::chrono::year_month_day date;
  std::int64_t hour;
  std::int64_t minute;
  std::int64_t second;
  std::int64_t microsecond;
};

Parts parts_of(WallTime time) {
  const auto since_epoch = time.time_since_epoch();
  const auto day = std::chrono::floor<days>(since_epoch);
  const auto rest = since_epoch - day;
  return {std::chrono::year_month_day(std::chrono::sys_days(day)), rest / hours(1), rest % hours(1) / minutes(1),
          rest % minutes(1) / seconds(1), rest % seconds(1) / microseconds(1)};
}

}  // namespace

std::optional<WallTime> parse_wall_time(std::string_view text) {
  if (text.size() < 20 || text[4] != '-' || text[7] != '-' || (text[10] != 'T' && text[10] != 't') || text[13] != ':' ||
      text[16] != ':') {
    return std::nullopt;
  }
  const int year = digits(text, 0, 4), month = digits(text, 5, 2), day = digits(text, 8, 2);
  const int hour = digits(text, 11, 2), minute = digits(text, 14, 2), second = digits(text, 17, 2);
  if (year < 0 || month < 0 || day < 0 || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 ||
      second > 60) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  std::size_t at = 19;
  int fraction = 0;
  if (text[at] == '.') {
    int scale = 100'000;
    std::size_t count = 0;
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, ++count) {
      fraction += (text[at] - '0') * scale;
      scale /= 10;
    }
    if (count == 0) return std::nullopt;
  }
  minutes offset{0};
  const std::string_view zone = text.substr(at);
  if (zone.size() == 6 && (zone[0] == '+' || zone[0] == '-') && zone[3] == ':') {
    const int zone_hours = digits(zone, 1, 2), zone_minutes = digits(zone, 4, 2);
    if (zone_hours < 0 || zone_hours > 23 || zone_minutes < 0 || zone_minutes > 59) return std::nullopt;
    offset = hours(zone_hours) + minutes(zone_minutes);
    if (zone[0] == '-') offset = -offset;
  } else if (zone != "Z" && zone != "z") {
    return std::nullopt;
  }
  const auto since_epoch = std::chrono::sys_days(date).time_since_epoch() + hours(hour) + minutes(minute) +
                           seconds(second) + microseconds(fraction) - offset;
  return WallTime(std::chrono::duration_cast<microseconds>(since_epoch));
}

std::string to_text(WallTime time) {
  const Parts parts = parts_of(time);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02dZ", int(parts.date.year()),
                unsigned(parts.date.month()), unsigned(parts.date.day()), int(parts.hour), int(parts.minute),
                int(parts.second));
  return text.data();
}

std::string to_micro_text(WallTime time) {
  const Parts parts = parts_of(time);
  std::string text = to_text(time);
  text.pop_back();
  std::array<char, 32> fraction{};
  std::snprintf(fraction.data(), fraction.size(), ".%06dZ", int(parts.microsecond));
  return text + fraction.data();
}

}  // namespace rekindle
