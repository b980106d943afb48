// Reads typed fields out of a JSON object that another program wrote. The first field that is
// missing or has the wrong type is remembered with its name; later reads return defaults, and
// finish() gives the one error. Nothing throws.
//
//   JsonFields in(document, "manifest");
//   Manifest m{.step = in.number("step"), .files = ...};
//   if (Status status = in.finish(); !status) return std::unexpected(status.error());
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace rekindle {

using Json = nlohmann::json;

// Parses text with limits. Depth is bounded so that printing (which recurses) stays safe; no
// exception leaves it. `values_max` is for what strangers send: the tree of "[],[],[]..." takes
// thirty times its text, so the number of values is counted (an empty list or object as two) and
// bounds the memory before any of it is taken.
Result<Json> parse_json(std::string_view text, std::string_view what, std::size_t bytes_max = 16u << 20,
                        std::size_t values_max = SIZE_MAX);

// As parse_json, for long lists: the objects in the array at `path` (field inside field) are handed
// to `take` in their order, each as soon as it was read, and are not in the result.
Result<Json> parse_json_elements(std::string_view text, std::string_view what, std::size_t bytes_max,
                                 const std::vector<std::string_view>& path,
                                 const std::function<Status(const Json&)>& take);

// Text on one line; invalid UTF-8 in strings is replaced, never thrown on.
std::string dump_json(const Json& value);

class JsonFields {
 public:
  // `what` names the object in errors ("manifest", "pod status"). `object` must outlive this
  // reader.
  JsonFields(const Json& object, std::string what);

  // Required fields: absent or of another type is an error.
  std::string text(std::string_view name);
  std::uint64_t number(std::string_view name);  // an unsigned integer
  std::int64_t integer(std::string_view name);
  bool boolean(std::string_view name);
  const Json& array(std::string_view name);   // an empty array after an error
  const Json& object(std::string_view name);  // an empty object after an error

  // Optional fields: absent or null gives the default; another type is an error.
  std::string text_or(std::string_view name, std::string_view otherwise);
  std::uint64_t number_or(std::string_view name, std::uint64_t otherwise);
  std::int64_t integer_or(std::string_view name, std::int64_t otherwise);
  bool boolean_or(std::string_view name, bool otherwise);
  const Json& array_or_empty(std::string_view name);
  const Json& object_or_empty(std::string_view name);
  bool has(std::string_view name) const;

  std::vector<std::string> texts_or_empty(std::string_view name);
  std::vector<std::uint64_t> numbers(std::string_view name);

  // Reports a rule that the reader itself found broken ("step must not be 0").
  void refuse(std::string_view name, std::string_view why);

  Status finish() const;

 private:
  const Json* find(std::string_view name) const;
  const Json* require(std::string_view name);
  void wrong_type(std::string_view name, std::string_view expected);

  const Json& object_;
  std::string what_;
  std::optional<Error> first_error_;
};

}  // namespace rekindle
