#include "operator/admission/json_edit.h"

#include "common/base/assert.h"

namespace rekindle::op {

using Json = nlohmann::json;

std::string pointer_part(std::string_view name) {
  std::string part;
  for (const char c : name) {
    if (c == '~') {
      part += "~0";
    } else if (c == '/') {
      part += "~1";
    } else {
      part += c;
    }
  }
  return part;
}

const Json* JsonEdit::find(const std::string& pointer) const {
  const Json::json_pointer at(pointer);
  if (!document_.contains(at)) return nullptr;
  const Json& value = document_.at(at);
  return value.is_null() ? nullptr : &value;
}

void JsonEdit::record(std::string_view operation, const std::string& pointer, const Json* value) {
  Json entry{{"op", operation}, {"path", pointer}};
  if (value != nullptr) entry["value"] = *value;
  operations_.push_back(std::move(entry));
}

void JsonEdit::add(const std::string& pointer, Json value) {
  const Json::json_pointer at(pointer);
  // own bug: callers have looked at the parent, or made it with ensure()
  RK_ASSERT(!at.empty() && document_.contains(at.parent_pointer()));
  record("add", pointer, &value);
  Json& parent = document_.at(at.parent_pointer());
  if (!parent.is_array()) {
    parent[at.back()] = std::move(value);
  } else if (at.back() == "-") {
    parent.push_back(std::move(value));
  } else {
    const std::size_t index = std::stoul(at.back());
    // own bug: the index is 0 or was counted in this array
    RK_ASSERT(index <= parent.size());
    parent.insert(parent.begin() + static_cast<std::ptrdiff_t>(index), std::move(value));
  }
}

void JsonEdit::replace(const std::string& pointer, Json value) {
  const Json::json_pointer at(pointer);
  // own bug: callers have found it there
  RK_ASSERT(document_.contains(at));
  record("replace", pointer, &value);
  document_.at(at) = std::move(value);
}

void JsonEdit::remove(const std::string& pointer) {
  const Json::json_pointer at(pointer);
  // own bug: callers have found it there
  RK_ASSERT(document_.contains(at));
  record("remove", pointer, nullptr);
  Json& parent = document_.at(at.parent_pointer());
  if (parent.is_array()) {
    parent.erase(std::stoul(at.back()));
  } else {
    parent.erase(at.back());
  }
}

void JsonEdit::set(const std::string& pointer, Json value) {
  const Json* there = find(pointer);
  if (there == nullptr) {
    add(pointer, std::move(value));
  } else if (*there != value) {
    replace(pointer, std::move(value));
  }
}

void JsonEdit::ensure(const std::string& pointer, Json empty) {
  if (find(pointer) == nullptr) add(pointer, std::move(empty));
}

}  // namespace rekindle::op
