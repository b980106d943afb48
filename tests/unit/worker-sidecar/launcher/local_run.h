// `rekindle run` with real processes of test_rank, and what they leave.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "common/base/format.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_process.h"

namespace rekindle::launcher {

inline constexpr int kRanks = 3;

class LocalRun : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_.at("out"));
    environment_["TEST_FOLDER"] = folder_.at("out");
    environment_["TEST_STEPS"] = "40";
    environment_["REKINDLE_CHECKPOINT_DIR"] = folder_.at("checkpoints");
  }

  std::vector<std::string> command(const std::vector<std::string>& options, int ranks) {
    std::vector<std::string> words{REKINDLE_PROGRAM,      "run",      "-n",
                                   std::to_string(ranks), "--events", folder_.at("events")};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", REKINDLE_TEST_RANK});
    return words;
  }
  std::unique_ptr<TestProcess> start(const std::vector<std::string>& options = {}, int ranks = kRanks) {
    return std::make_unique<TestProcess>(command(options, ranks), environment_, folder_.at("log"));
  }

  static std::vector<pid_t> ranks_of(const TestProcess& run) {
    const std::string process = std::to_string(run.pid());
    std::istringstream words(read_bytes(format("/proc/{}/task/{}/children", process, process)));
    return {std::istream_iterator<pid_t>(words), {}};
  }

  // What every rank that holds everything ends an undisturbed run of 40 steps with: weights, then
  // moments.
  std::string undisturbed() {
    TemporaryFolder other;
    std::filesystem::create_directory(other.at("out"));
    TestProcess run(
        {REKINDLE_PROGRAM, "run", "--", REKINDLE_TEST_RANK},
        {{"TEST_FOLDER", other.at("out")}, {"TEST_STEPS", "40"}, {"REKINDLE_CHECKPOINT_DIR", other.at("checkpoints")}},
        other.at("log"));
    EXPECT_EQ(run.wait(), 0) << run.output();
    return read_bytes(other.at("out/weights-0"));
  }

  void expect_undisturbed_end(int ranks = kRanks) {
    const std::string expected = undisturbed();
    ASSERT_FALSE(expected.empty());
    const bool alike = !environment_.contains("TEST_LAYOUT");
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string found = read_bytes(folder_.at(format("out/weights-{}", rank)));
      EXPECT_TRUE(found == (alike ? expected : rows_of(expected, rank, ranks)))
          << "rank " << rank << " ended with other weights, " << found.size() << " bytes";
    }
  }

  std::uint64_t number_in(const std::string& name) {
    std::ifstream file(folder_.at("out/" + name));
    std::uint64_t value = 0;
    file >> value;
    return value;
  }

  std::vector<nlohmann::json> events(const std::string& name = "") {
    std::vector<nlohmann::json> found;
    std::ifstream file(folder_.at("events"));
    for (std::string line; std::getline(file, line);) {
      nlohmann::json event = nlohmann::json::parse(line);
      if (name.empty() || event["event"] == name) found.push_back(std::move(event));
    }
    return found;
  }
  std::uint64_t last_step_of(const std::string& event) {
    const std::vector<nlohmann::json> found = events(event);
    return found.empty() ? 0 : found.back()["step"].get<std::uint64_t>();
  }

  TemporaryFolder folder_;
  TestProcess::Environment environment_;

 private:
  // The part of a rank whose layout is "rows" or "stages".
  static std::string rows_of(const std::string& all, int rank, int ranks) {
    constexpr std::size_t kRows = 64;
    const std::size_t array_bytes = all.size() / 2;
    const std::size_t row_bytes = array_bytes / kRows;
    const std::size_t begin = kRows * static_cast<std::size_t>(rank) / static_cast<std::size_t>(ranks);
    const std::size_t end = kRows * (static_cast<std::size_t>(rank) + 1) / static_cast<std::size_t>(ranks);
    const std::size_t bytes = (end - begin) * row_bytes;
    return all.substr(begin * row_bytes, bytes) + all.substr(array_bytes + begin * row_bytes, bytes);
  }
};

}  // namespace rekindle::launcher
