// Does one thing that a sanitizer has to notice: `planted_fault KIND`. That it is noticed shows
// that the clean runs of this stage could have failed.
#include <climits>
#include <cstdio>
#include <cstring>
#include <string>
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

int overflow() { return INT_MAX - 1 + one + one > 0 ? 1 : 2; }

int leak() {
  char* volatile lost = new char[100];
  lost[0] = 'x';
  lost = nullptr;
  return 0;
}

int race() {
  std::thread other([] { shared += one; });
  shared += one;
  other.join();
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string kind = count == 2 ? arguments[1] : "";
  if (kind == "use_after_free") return use_after_free();
  if (kind == "overflow") return overflow();
  if (kind == "leak") return leak();
  if (kind == "race") return race();
  std::fputs("usage: planted_fault use_after_free|overflow|leak|race\n", stderr);
  return 2;
}
