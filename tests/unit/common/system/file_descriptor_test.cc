#include "common/system/file_descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace rekindle {
namespace {

bool is_open(int number) { return ::fcntl(number, F_GETFD) != -1; }

FileDescriptor opened() { return FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

TEST(FileDescriptor, EndsWithItsOwner) {
  int number = -1;
  {
    const FileDescriptor owner = opened();
    number = owner.get();
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(FileDescriptor, IsOwnedByOneAfterAMove) {
  std::vector<FileDescriptor> first;
  first.push_back(opened());
  const int number = first.front().get();
  const FileDescriptor second = std::move(first.front());
  first.clear();
  EXPECT_TRUE(is_open(number));
  EXPECT_EQ(second.get(), number);
}

TEST(FileDescriptor, ClosesWhatItHeldWhenItIsGivenAnother) {
  FileDescriptor owner = opened();
  const int number = owner.get();
  owner = FileDescriptor();
  EXPECT_FALSE(is_open(number));
  EXPECT_FALSE(owner);
}

TEST(FileDescriptor, LeavesToTheCallerWhatItReleased) {
  int number = -1;
  {
    FileDescriptor owner = opened();
    number = owner.release();
    EXPECT_FALSE(owner);
  }
  EXPECT_TRUE(is_open(number));
  const FileDescriptor closes_it(number);
}

}  // namespace
}  // namespace rekindle
