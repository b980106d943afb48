// Where an object lives: namespace and name, unique within one kind at one time. A name can be used
// again by another object later; what must hit exactly one object carries its uid as well.
#pragma once

#include <compare>
#include <string>

#include "common/base/json_fields.h"

namespace rekindle::op {

struct ObjectKey {
  std::string namespace_name;  // empty for kinds without namespaces
  std::string name;

  auto operator<=>(const ObjectKey&) const = default;
};

// "team-a/digits", or "node-1" without a namespace.
std::string to_text(const ObjectKey& key);

// From an object's metadata; invalid_input when the name is missing.
Result<ObjectKey> key_of(const Json& object);

}  // namespace rekindle::op
