#include "operator/kube/object_size.h"

#include <array>
#include <string>

#include "common/base/format.h"
#include "common/base/json_slices.h"

namespace rekindle::op {
namespace {

// Names, uids and versions; nothing that is longer is one.
constexpr std::size_t kIdentityBytesMax = 1024;
constexpr std::array<std::string_view, 4> kIdentity{"namespace", "name", "uid", "resourceVersion"};

}  // namespace

TooLargeObject too_large_object(std::string_view text, std::size_t values) {
  Json metadata = Json::object();
  const std::string_view its_metadata = json_field(text, "metadata").value_or("{}");
  for (const std::string_view name : kIdentity) {
    const Result<Json> value = parse_json(json_field(its_metadata, name).value_or("null"), name, kIdentityBytesMax);
    if (value && value->is_string()) metadata[std::string(name)] = *value;
  }
  return {
      .object = {{"metadata", std::move(metadata)}},
      .error = {ErrorCode::invalid_input,
                format("the object has {} values, and {} are read at most: make it smaller", values, kObjectValuesMax),
                Retry::no}};
}

}  // namespace rekindle::op
