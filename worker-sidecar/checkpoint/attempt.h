// The record of one attempt, attempts/<n>.json: who claimed it and where it took its state from
// (PROTOCOL P15). Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace rekindle {

inline constexpr std::uint64_t kAttemptVersion = 1;

// The checkpoint that an attempt continues.
struct ParentPoint {
  std::uint64_t attempt = 0;
  std::uint64_t step = 0;
  // name of the folder inside the job's folder
  std::string path;

  bool operator==(const ParentPoint&) const = default;
};

struct PodIdentity {
  std::string name;
  std::string uid;

  bool operator==(const PodIdentity&) const = default;
};

struct AttemptRecord {
  std::uint64_t attempt = 0;          // from 1
  std::optional<ParentPoint> parent;  // empty: nothing was restored
  std::string job_uid;
  std::vector<PodIdentity> pods;
  std::string time;  // wall clock, for people

  bool operator==(const AttemptRecord&) const = default;
};

std::string encode_attempt(const AttemptRecord& record);

// Refuses other formats, newer versions by name, a parent that is not an earlier attempt, unsafe
// paths.
Result<AttemptRecord> decode_attempt(std::string_view text);

// Shared with the manifest. decode_parent is given the value of the field `parent` (null: empty)
// and the attempt that has it.
nlohmann::json encode_parent(const std::optional<ParentPoint>& parent);
Result<std::optional<ParentPoint>> decode_parent(const nlohmann::json& value, std::uint64_t attempt);

}  // namespace rekindle
