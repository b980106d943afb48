// Reads everything of one checkpoint and says what is wrong and where.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "worker-sidecar/checkpoint/manifest.h"
#include "worker-sidecar/storage/file_system.h"

namespace rekindle {

struct Finding {
  // name inside the folder, "" for the folder itself
  std::string file;
  std::uint64_t begin_byte = 0;
  // equal to begin_byte when no range belongs to it
  std::uint64_t end_byte = 0;
  std::string message;
  // keys of what lies in the range
  std::vector<std::string> tensors;

  bool operator==(const Finding&) const = default;
};

struct Verification {
  std::string folder;
  std::optional<SealedManifest> sealed;  // when it could be read
  // empty: every byte is as it was written
  std::vector<Finding> findings;
  std::uint64_t bytes_read = 0;

  bool fine() const { return findings.empty(); }
};

// progress(bytes done, bytes in all) is called now and then. `expected_job`: also checks whose
// checkpoint it is. Never fails: what cannot be read is a finding.
Verification verify_checkpoint(FileSystem& file_system, const std::string& job_folder, const std::string& folder_name,
                               const std::optional<JobIdentity>& expected_job = std::nullopt,
                               const std::function<void(std::uint64_t, std::uint64_t)>& progress = {});

}  // namespace rekindle
