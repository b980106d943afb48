#include "common/base/json_fields.h"

#include <algorithm>
#include <utility>

#include "common/base/format.h"
#include "common/base/json_slices.h"

namespace rekindle {
namespace {

constexpr int kDepthMax = 64;

const Json& empty_array() {
  static const Json value = Json::array();
  return value;
}

const Json& empty_object() {
  static const Json value = Json::object();
  return value;
}

Result<Json> parse_with_limits(std::string_view text, std::string_view what, std::size_t bytes_max,
                               std::size_t values_max, const Json::parser_callback_t& callback) {
  const std::string name(what);
  if (text.size() > bytes_max) {
    return fail(ErrorCode::invalid_input, format("{} is larger than {} bytes", name, bytes_max));
  }
  const JsonExtent extent = extent_of(text);
  if (extent.depth > kDepthMax) {
    return fail(ErrorCode::invalid_input, format("{} is nested deeper than {} levels", name, kDepthMax));
  }
  if (extent.values > values_max) {
    return fail(ErrorCode::invalid_input,
                format("{} has {} values, and {} are read at most: make it smaller", name, extent.values, values_max));
  }
  Json value = Json::parse(text, callback, false);
  if (value.is_discarded()) {
    return fail(ErrorCode::invalid_input, name + " is not valid JSON");
  }
  return value;
}

// Where the parser is: the field of each object that is open, by depth; none at the depth of an
// array's elements.
class PlaceInJson {
 public:
  void enter_field(int depth, std::string name) {
    leave(depth);
    fields_.resize(static_cast<std::size_t>(depth));
    fields_.emplace_back(std::move(name));
  }
  void leave(int depth) {
    if (fields_.size() > static_cast<std::size_t>(depth)) fields_.resize(static_cast<std::size_t>(depth));
  }
  // Depth 0 is outside of everything and has no field.
  bool is_in(const std::vector<std::string_view>& path) const {
    if (fields_.size() <= path.size()) return false;
    // of an object, not of an array
    if (fields_.size() > path.size() + 1 && fields_[path.size() + 1]) return false;
    for (std::size_t i = 0; i < path.size(); ++i) {
      if (fields_[i + 1] != path[i]) return false;
    }
    return true;
  }

 private:
  std::vector<std::optional<std::string>> fields_;
};

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view what, std::size_t bytes_max, std::size_t values_max) {
  return parse_with_limits(text, what, bytes_max, values_max, nullptr);
}

Result<Json> parse_json_elements(std::string_view text, std::string_view what, std::size_t bytes_max,
                                 const std::vector<std::string_view>& path,
                                 const std::function<Status(const Json&)>& take) {
  PlaceInJson place;
  Status taken;
  const int element_depth = static_cast<int>(path.size()) + 1;
  const auto callback = [&](int depth, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::key) place.enter_field(depth, value.get<std::string>());
    // What was inside is over; a field of the same depth then belongs to what is around.
    if (event == Json::parse_event_t::object_end) place.leave(depth + 1);
    if (event != Json::parse_event_t::object_end || depth != element_depth || !place.is_in(path)) return true;
    if (taken) taken = take(value);
    return false;
  };
  Result<Json> rest = parse_with_limits(text, what, bytes_max, SIZE_MAX, callback);
  if (!taken) return std::unexpected(taken.error());
  return rest;
}

std::string dump_json(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

JsonFields::JsonFields(const Json& object, std::string what) : object_(object), what_(std::move(what)) {
  if (!object_.is_object()) {
    first_error_ = Error{ErrorCode::invalid_input, what_ + " must be a JSON object", Retry::no};
  }
}

const Json* JsonFields::find(std::string_view name) const {
  if (!object_.is_object()) return nullptr;
  const auto it = object_.find(name);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

bool JsonFields::has(std::string_view name) const { return find(name) != nullptr; }

void JsonFields::refuse(std::string_view name, std::string_view why) {
  if (!first_error_) {
    first_error_ = Error{ErrorCode::invalid_input, format("{}: {} {}", what_, name, why), Retry::no};
  }
}

const Json* JsonFields::require(std::string_view name) {
  const Json* value = find(name);
  if (value == nullptr) refuse(name, "is missing");
  return value;
}

void JsonFields::wrong_type(std::string_view name, std::string_view expected) {
  refuse(name, "must be " + std::string(expected));
}

std::string JsonFields::text(std::string_view name) {
  return require(name) == nullptr ? std::string() : text_or(name, "");
}
std::uint64_t JsonFields::number(std::string_view name) { return require(name) == nullptr ? 0 : number_or(name, 0); }
std::int64_t JsonFields::integer(std::string_view name) { return require(name) == nullptr ? 0 : integer_or(name, 0); }
bool JsonFields::boolean(std::string_view name) { return require(name) != nullptr && boolean_or(name, false); }
const Json& JsonFields::array(std::string_view name) {
  return require(name) == nullptr ? empty_array() : array_or_empty(name);
}
const Json& JsonFields::object(std::string_view name) {
  return require(name) == nullptr ? empty_object() : object_or_empty(name);
}

std::string JsonFields::text_or(std::string_view name, std::string_view otherwise) {
  const Json* value = find(name);
  if (value == nullptr) return std::string(otherwise);
  if (!value->is_string()) {
    wrong_type(name, "a string");
    return std::string(otherwise);
  }
  return value->get<std::string>();
}

std::uint64_t JsonFields::number_or(std::string_view name, std::uint64_t otherwise) {
  const Json* value = find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_number_integer() || (!value->is_number_unsigned() && value->get<std::int64_t>() < 0)) {
    wrong_type(name, "a whole number that is not negative");
    return otherwise;
  }
  return value->get<std::uint64_t>();
}

std::int64_t JsonFields::integer_or(std::string_view name, std::int64_t otherwise) {
  const Json* value = find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_number_integer()) {
    wrong_type(name, "a whole number");
    return otherwise;
  }
  return value->get<std::int64_t>();
}

bool JsonFields::boolean_or(std::string_view name, bool otherwise) {
  const Json* value = find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) {
    wrong_type(name, "true or false");
    return otherwise;
  }
  return value->get<bool>();
}

const Json& JsonFields::array_or_empty(std::string_view name) {
  const Json* value = find(name);
  if (value == nullptr) return empty_array();
  if (!value->is_array()) {
    wrong_type(name, "an array");
    return empty_array();
  }
  return *value;
}

const Json& JsonFields::object_or_empty(std::string_view name) {
  const Json* value = find(name);
  if (value == nullptr) return empty_object();
  if (!value->is_object()) {
    wrong_type(name, "an object");
    return empty_object();
  }
  return *value;
}

std::vector<std::string> JsonFields::texts_or_empty(std::string_view name) {
  std::vector<std::string> texts;
  for (const Json& item : array_or_empty(name)) {
    if (!item.is_string()) {
      wrong_type(name, "an array of strings");
      return {};
    }
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

std::vector<std::uint64_t> JsonFields::numbers(std::string_view name) {
  std::vector<std::uint64_t> values;
  for (const Json& item : array(name)) {
    if (!item.is_number_unsigned()) {
      wrong_type(name, "an array of whole numbers that are not negative");
      return {};
    }
    values.push_back(item.get<std::uint64_t>());
  }
  return values;
}

Status JsonFields::finish() const {
  if (first_error_) return std::unexpected(*first_error_);
  return {};
}

}  // namespace rekindle
