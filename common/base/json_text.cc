#include "common/base/json_text.h"

#include <algorithm>

#include "common/base/assert.h"
#include "common/base/format.h"
#include "common/base/json_fields.h"

namespace rekindle {

void append_json_string(std::string& out, std::string_view text) {
  const bool plain = std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
  if (!plain) {
    out += dump_json(Json(text));
    return;
  }
  out += '"';
  out += text;
  out += '"';
}

void append_json_numbers(std::string& out, const std::vector<std::uint64_t>& numbers) {
  out += '[';
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) out += ',';
    out += std::to_string(numbers[i]);
  }
  out += ']';
}

void put_json_elements(std::string& object, std::string_view key, std::string_view elements) {
  // Quotes inside strings are escaped, so this is found where the field is and nowhere else.
  const std::string empty = format("\"{}\":[]", key);
  const std::size_t at = object.find(empty);
  RK_ASSERT(at != std::string::npos);
  object.insert(at + empty.size() - 1, elements);
}

}  // namespace rekindle
