#include "worker-sidecar/checkpoint/record_time.h"

#include <algorithm>

namespace rekindle {

std::optional<std::chrono::sys_seconds> parse_record_time(std::string_view text) {
  constexpr std::string_view kPattern = "0000-00-00T00:00:00";
  if (text.size() <= kPattern.size() || text.back() != 'Z') return std::nullopt;
  const auto number = [&](std::size_t at, std::size_t digits) {
    int value = 0;
    for (std::size_t i = at; i < at + digits; ++i)
      value = value < 0 || text[i] < '0' || text[i] > '9' ? -1 : value * 10 + (text[i] - '0');
    return value;
  };
  const int year = number(0, 4), month = number(5, 2), day = number(8, 2), hour = number(11, 2), minute = number(14, 2),
            second = number(17, 2);
  if (std::min({year, month, day, hour, minute, second}) < 0) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         std::chrono::seconds(second);
}

}  // namespace rekindle
