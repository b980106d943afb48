// The volume of the user's own that is mounted where the checkpoints lie: whether it can hold what
// the pods of a job write together and read again after a restart. Pure; accepts any JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace rekindle::op {

// Why it cannot, as the rest of a sentence about the task. None: it can, or no volume of the user's
// own serves the path. `has_claim`: then a claim serves it.
std::optional<std::string> fault_of_checkpoint_volume(const nlohmann::json& pod_spec, std::string_view path,
                                                      bool has_claim);

// It is a folder of the node that the pod runs on: shared only when that is the same storage on
// every node.
bool checkpoints_lie_on_node(const nlohmann::json& pod_spec, std::string_view path);

}  // namespace rekindle::op
