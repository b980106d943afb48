// YAML as people write it, as the JSON that the API server would see. For tests.
#pragma once

#include <string>
#include <vector>

#include "common/base/json_fields.h"

namespace rekindle::op {

// Every document of a file.
std::vector<Json> read_yaml(const std::string& path);
Json parse_yaml(const std::string& text);

}  // namespace rekindle::op
