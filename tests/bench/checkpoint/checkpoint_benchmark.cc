// checkpoint_benchmark FOLDER MEBIBYTES: a stand-alone session with that much registered memory.
// Prints in how many milliseconds rk_restore has filled it and from which step; then, for each line
// on standard input, makes one step and one checkpoint, and prints after how many milliseconds it
// was durable (the manifest's name was synced, which its change time tells) and after how many
// rk_checkpoint had returned, which removes old checkpoints as well. Each line ends with the most
// memory that the process has held so far beyond the tensors, in MiB (the program itself included).
#include <sys/stat.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "worker-sidecar/runtime/include/rekindle.h"

namespace {

constexpr std::size_t kTensorBytes = 64u << 20;

int fail(const char* what) {
  std::fprintf(stderr, "checkpoint_benchmark: %s: %s\n", what, rk_last_error());
  return 1;
}

double milliseconds(const timespec& time) {
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

// Of the clock that files are stamped by.
double now_milliseconds() {
  timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return milliseconds(time);
}

// When the checkpoint of this step was published: its manifest's temporary name goes right after
// the sync of its folder.
double published_milliseconds(const char* root, std::uint64_t step) {
  const std::string wanted = "-s" + std::to_string(step) + "-";
  for (const auto& entry : std::filesystem::directory_iterator(std::string(root) + "/local.bench")) {
    struct stat status;
    if (entry.path().filename().string().find(wanted) == std::string::npos) continue;
    if (stat((entry.path() / "manifest.json").c_str(), &status) == 0) return milliseconds(status.st_ctim);
  }
  return 0;
}

double mebibytes_beyond(std::size_t tensor_bytes) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    unsigned long long kibibytes = 0;
    if (std::sscanf(line.c_str(), "VmHWM: %llu kB", &kibibytes) == 1)
      return (static_cast<double>(kibibytes) * 1024 - static_cast<double>(tensor_bytes)) / (1 << 20);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: checkpoint_benchmark FOLDER MEBIBYTES\n");
    return 2;
  }
  const std::size_t bytes = std::strtoull(argv[2], nullptr, 10) << 20;
  rk_session* run = nullptr;
  const rk_options options{.struct_size = sizeof(rk_options),
                           .socket_path = "",
                           .checkpoint_dir = argv[1],
                           .job = "bench",
                           .rank = 0,
                           .world_size = 1};
  if (rk_open(&options, &run) != RK_OK) return fail("rk_open");
  std::vector<std::vector<std::uint64_t>> tensors;
  std::uint64_t value = 0x9e3779b97f4a7c15u;
  for (std::size_t begin = 0; begin < bytes; begin += kTensorBytes) {
    std::vector<std::uint64_t>& tensor =
        tensors.emplace_back(std::min(kTensorBytes, bytes - begin) / sizeof(std::uint64_t));
    for (std::uint64_t& element : tensor) element = value = value * 6364136223846793005u + 1442695040888963407u;
    const std::string name = "tensor." + std::to_string(tensors.size());
    const rk_tensor description{.struct_size = sizeof(rk_tensor),
                                .name = name.c_str(),
                                .data = tensor.data(),
                                .dtype = RK_U64,
                                .rank = 1,
                                .shape = {static_cast<std::int64_t>(tensor.size())}};
    if (rk_register(run, &description) != RK_OK) return fail("rk_register");
  }
  rk_position at{.struct_size = sizeof(rk_position)};
  const auto restore_begin = std::chrono::steady_clock::now();
  if (rk_restore(run, &at) != RK_OK) return fail("rk_restore");
  std::printf("%.3f %llu %.1f\n",
              std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - restore_begin).count(),
              static_cast<unsigned long long>(at.step), mebibytes_beyond(bytes));
  std::uint64_t step = at.step;
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    ++step;
    if (rk_step_begin(run, step) != RK_OK || rk_update_begin(run) != RK_OK) return fail("a step");
    for (auto& tensor : tensors) tensor.front() = step;
    if (rk_update_end(run) != RK_OK || rk_step_end(run) != RK_OK) return fail("a step");
    const double begin = now_milliseconds();
    if (rk_checkpoint(run) != RK_OK) return fail("rk_checkpoint");
    const double returned = now_milliseconds();
    std::printf("%.3f %.3f %.1f\n", published_milliseconds(argv[1], step) - begin, returned - begin,
                mebibytes_beyond(bytes));
    std::fflush(stdout);
  }
  return rk_close(run);
}
