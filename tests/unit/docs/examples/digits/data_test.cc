#include "docs/examples/digits/data.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <set>

namespace digits {
namespace {

class DataFile : public testing::Test {
 protected:
  DataFile() : path_(testing::TempDir() + "digits-data-" + std::to_string(getpid()) + ".csv") {}
  ~DataFile() override { std::remove(path_.c_str()); }

  // `images` lines whose first pixel tells them apart.
  void write(int images, const std::string& last_line = "") {
    std::ofstream file(path_);
    for (int image = 0; image < images; ++image) {
      file << image % 17;
      for (std::size_t pixel = 1; pixel < kPixels; ++pixel) file << ",0";
      file << "," << image % 10 << "\n";
    }
    file << last_line;
  }

  std::string path_;
};

TEST_F(DataFile, FifthIsHeldOutAndTheSeedAloneSaysWhich) {
  write(1000);
  const Result<Dataset> first = load_dataset(path_, 7);
  const Result<Dataset> again = load_dataset(path_, 7);
  ASSERT_TRUE(first && again);
  EXPECT_EQ(first->held_out.size(), 200U);
  EXPECT_EQ(first->training.size(), 800U);
  for (std::size_t k = 0; k < 800; ++k) ASSERT_EQ(first->training[k].pixels, again->training[k].pixels);
}

TEST_F(DataFile, WrongLineIsNamed) {
  write(200, "1,2,3\n");
  const Result<Dataset> dataset = load_dataset(path_, 7);
  ASSERT_FALSE(dataset);
  EXPECT_NE(dataset.error().find("line 201"), std::string::npos) << dataset.error();
}

TEST(Sampler, EpochShowsEveryImageOnce) {
  Sampler sampler(7, 120, 40);
  std::set<std::size_t> seen;
  for (std::uint64_t step = 4; step <= 6; ++step) {
    for (std::size_t place = 0; place < 40; ++place) seen.insert(sampler.image_at(step, place));
  }
  EXPECT_EQ(seen.size(), 120U);
}

TEST(Sampler, AnswerDoesNotDependOnWhatWasAskedBefore) {
  Sampler walked(7, 101, 16);
  for (std::uint64_t step = 1; step < 50; ++step) walked.image_at(step, 3);
  Sampler fresh(7, 101, 16);
  for (std::size_t place = 0; place < 16; ++place) EXPECT_EQ(walked.image_at(50, place), fresh.image_at(50, place));
}

TEST(Sampler, EpochsAreOrderedDifferently) {
  Sampler sampler(7, 50, 50);
  int same = 0;
  for (std::size_t place = 0; place < 50; ++place) same += sampler.image_at(1, place) == sampler.image_at(2, place);
  EXPECT_LT(same, 10);
}

}  // namespace
}  // namespace digits
