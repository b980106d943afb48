// Writes JSON text piece by piece, byte for byte as dump_json does: for long lists, of which a tree
// in memory would take ten times the text. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rekindle {

void append_json_string(std::string& out, std::string_view text);
void append_json_numbers(std::string& out, const std::vector<std::uint64_t>& numbers);  // [1,2]

// `object` is the text of a JSON object in which `key` has an empty array, and no object inside it
// has that, too: puts `elements`, separated by commas, into the array.
void put_json_elements(std::string& object, std::string_view key, std::string_view elements);

}  // namespace rekindle
