// Parts of a JSON text by their place, without building a tree: what is large is taken apart, and
// each part parsed with limits of its own. Looks at strings and brackets and at nothing else, so
// what is wrong inside a part is for its parser to find. Pure; linear in the text.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace rekindle {

// What a tree of the text would be: its depth, and the number of its values (an empty list or
// object counts as two).
struct JsonExtent {
  int depth = 0;
  std::size_t values = 1;
};
JsonExtent extent_of(std::string_view text);

// The text of the object's field, of the last one where the name stands twice. None: no such field,
// or this is not one whole object.
std::optional<std::string_view> json_field(std::string_view object, std::string_view name);

// The texts of the list's elements. None: this is not one whole list.
std::optional<std::vector<std::string_view>> json_elements(std::string_view list);

}  // namespace rekindle
