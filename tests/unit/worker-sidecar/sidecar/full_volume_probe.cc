// Makes a control block in the folder that it is given and prints why that did not work. Exit code
// 0 when it did not.
#include <cstdio>

#include "worker-sidecar/sidecar/control_file.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto file = rekindle::sidecar::ControlFile::create(
      argv[1], {.rank = 0, .world_size = 1, .incarnation = 1, .state_bytes_max = 65536});
  std::puts(file ? "there was room" : file.error().message.c_str());
  return file || file.error().code != rekindle::ErrorCode::exhausted ? 1 : 0;
}
