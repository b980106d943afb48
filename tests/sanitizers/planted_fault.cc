// Each test does one thing that the stage has to notice. That it is noticed shows that the clean
// runs of the stage could have failed.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <thread>

namespace {

// Kept from the optimizer.
volatile int one = 1;
int shared = 0;

int use_after_free() {
  int* const value = new int(one);
  delete value;
  return *static_cast<volatile int*>(value);
}

TEST(Planted, UseAfterFree) { use_after_free(); }

// The test passes: only what the sanitizer prints tells.
TEST(Planted, UseAfterFreeInAChild) {
  const pid_t child = fork();
  if (child == 0) _exit(use_after_free());
  waitpid(child, nullptr, 0);
}

TEST(Planted, Overflow) { EXPECT_LT(INT_MAX - 1 + one + one, 0); }

// The test passes: what is lost is told at the end of the program.
TEST(Planted, Leak) {
  char* volatile lost = new char[100];
  lost[0] = 'x';
  lost = nullptr;
}

TEST(Planted, Race) {
  std::thread other([] { shared += one; });
  shared += one;
  other.join();
}

TEST(Planted, FailedExpectation) { EXPECT_EQ(one, 2); }

}  // namespace
