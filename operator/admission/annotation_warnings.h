// What is admitted although it hardly is what the user meant: annotations of ours that nobody
// reads. Pure; accepts any JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace rekindle::op {

// About a Job that is to be protected; a bounded number of them.
std::vector<std::string> annotation_warnings(const nlohmann::json& job);

}  // namespace rekindle::op
