// A job with two complete checkpoints, of steps 100 and 184, and what a test does to them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/format.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/temporary_folder.h"
#include "worker-sidecar/storage/attempt_store.h"

namespace rekindle::cli {

class SavedJob : public testing::Test {
 protected:
  SavedJob()
      : folder_(open_job_folder(real_file_system(), {.root = root_.path(), .job = make_job(), .nonce = "n0"})->path) {
    EXPECT_TRUE(claim_attempt(real_file_system(), folder_, {}, "n1"));
    for (const std::uint64_t step : {100, 184}) save({1, step, "x"}, make_memory(step, small_layout()));
  }
  void save(const FolderName& name, const RankMemory& memory) {
    EXPECT_TRUE(save_checkpoint(real_file_system(), folder_, make_job(), name, memory));
  }
  void flip(const std::string& file, std::size_t place) {
    std::string bytes = read_bytes(format("{}/{}", folder_, file));
    bytes.at(place) = static_cast<char>(bytes.at(place) ^ 1);
    write_bytes(format("{}/{}", folder_, file), bytes);
  }

  TemporaryFolder root_;
  const std::string folder_;
};

// Names of what lies in a folder, hidden or not.
inline std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace rekindle::cli
