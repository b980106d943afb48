#include "worker-sidecar/cli/new_file.h"

#include <gtest/gtest.h>

#include "tests/support/temporary_folder.h"
#include "tests/unit/worker-sidecar/cli/saved_job.h"

namespace rekindle::cli {
namespace {

class NewFiles : public testing::Test {
 protected:
  Result<NewFile> create(const std::string& name) {
    return NewFile::create(real_file_system(), root_.path(), name, 4, "n1");
  }

  TemporaryFolder root_;
};

TEST_F(NewFiles, AppearWholeUnderTheirName) {
  {
    Result<NewFile> file = create("a");
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE(file->append("abcd", 4));
    const Result<std::string> temporary = file->sync();
    ASSERT_TRUE(temporary) << temporary.error().message;
    EXPECT_EQ(read_bytes(*temporary), "abcd");
    EXPECT_EQ(names_in(root_.path()), (std::vector<std::string>{".n1"}));
    ASSERT_TRUE(file->publish());
  }
  EXPECT_EQ(names_in(root_.path()), (std::vector<std::string>{"a"}));
  EXPECT_EQ(read_bytes(root_.at("a")), "abcd");
}

TEST_F(NewFiles, LeaveNothingWhenTheyAreNotPublished) {
  {
    Result<NewFile> file = create("a");
    ASSERT_TRUE(file && file->append("ab", 2));
  }
  EXPECT_EQ(names_in(root_.path()), std::vector<std::string>{});
}

TEST_F(NewFiles, ReplaceNothing) {
  write_bytes(root_.at("a"), "mine");
  EXPECT_EQ(create("a").error().code, ErrorCode::already_exists);
  {
    Result<NewFile> late = create("b");
    ASSERT_TRUE(late && late->append("abcd", 4) && late->sync());
    write_bytes(root_.at("b"), "mine");
    EXPECT_EQ(late->publish().error().code, ErrorCode::already_exists);
  }
  EXPECT_EQ(read_bytes(root_.at("a")), "mine");
  EXPECT_EQ(read_bytes(root_.at("b")), "mine");
  EXPECT_EQ(names_in(root_.path()), (std::vector<std::string>{"a", "b"}));
}

TEST_F(NewFiles, StayInTheirFolder) { EXPECT_EQ(create("../a").error().code, ErrorCode::invalid_input); }

}  // namespace
}  // namespace rekindle::cli
