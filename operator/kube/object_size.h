// How large an object may be that the operator reads. Whoever may create a pod decides how large it
// is, and the tree of an object takes many times its text. Pure.
#pragma once

#include <cstddef>
#include <string_view>

#include "common/base/json_fields.h"

namespace rekindle::op {

// A Job of 1024 tasks has fewer; a review of more is refused as well.
inline constexpr std::size_t kObjectValuesMax = 50'000;

// What is known of an object that is not read: where it is, and its uid and version.
struct TooLargeObject {
  Json object;  // metadata alone
  Error error;

  bool operator==(const TooLargeObject& other) const { return object == other.object; }
};

TooLargeObject too_large_object(std::string_view text, std::size_t values);

}  // namespace rekindle::op
