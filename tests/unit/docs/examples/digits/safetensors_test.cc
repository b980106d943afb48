#include "docs/examples/digits/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace digits {
namespace {

TEST(Safetensors, HeaderTellsWhereEachArrayLies) {
  const std::string path = testing::TempDir() + "digits-" + std::to_string(getpid()) + ".safetensors";
  const std::vector<float> matrix = {1, 2, 3, 4, 5, 6};
  const std::vector<float> vector = {7, 8};
  ASSERT_TRUE(write_safetensors(path, {{"w", {2, 3}, matrix}, {"b", {2}, vector}}));
  std::ifstream file(path, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::remove(path.c_str());

  std::uint64_t header_bytes = 0;
  ASSERT_GE(content.size(), sizeof header_bytes);
  std::memcpy(&header_bytes, content.data(), sizeof header_bytes);
  EXPECT_EQ(header_bytes % 8, 0U);
  const auto header = nlohmann::json::parse(content.substr(8, header_bytes));
  EXPECT_EQ(header["w"], nlohmann::json::parse(R"({"dtype":"F32","shape":[2,3],"data_offsets":[0,24]})"));
  EXPECT_EQ(header["b"], nlohmann::json::parse(R"({"dtype":"F32","shape":[2],"data_offsets":[24,32]})"));
  EXPECT_EQ(std::memcmp(content.data() + 8 + header_bytes + 24, vector.data(), 8), 0);
  EXPECT_EQ(content.size(), 8 + header_bytes + 32);
}

TEST(Safetensors, FailureNamesThePlaceAndLeavesNothing) {
  const std::string path = testing::TempDir() + "no-such-folder/x.safetensors";
  const Status written = write_safetensors(path, {});
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().find(path), std::string::npos);
}

}  // namespace
}  // namespace digits
