// checkpoint_benchmark FOLDER MEBIBYTES: a stand-alone session with that much registered memory.
// Prints in how many milliseconds rk_restore has filled it and from which step; then, for each line
// on standard input, makes one step and one checkpoint, and prints after how many milliseconds it
// was durable (its folder's name was synced, the last thing before old checkpoints go) and after
// how many rk_checkpoint had returned, which removes those as well. Each line ends with the most
// memory that the process has held so far beyond the tensors, in MiB (the program itself included).
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
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

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

std::atomic<ino_t> job_folder{0};
// The end of its last sync.
std::atomic<Clock::time_point> published{};

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

// Stands before the C library's: the runtime's syncs come through here.
extern "C" int fsync(int descriptor) {
  const int result = static_cast<int>(syscall(SYS_fsync, descriptor));
  struct stat status;
  if (result == 0 && fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode) && status.st_ino == job_folder)
    published = Clock::now();
  return result;
}

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
  const auto restore_begin = Clock::now();
  if (rk_restore(run, &at) != RK_OK) return fail("rk_restore");
  std::printf("%.3f %llu %.1f\n", milliseconds(Clock::now() - restore_begin), static_cast<unsigned long long>(at.step),
              mebibytes_beyond(bytes));
  struct stat status;
  if (stat((std::string(argv[1]) + "/local.bench").c_str(), &status) != 0) return fail("the job's folder");
  job_folder = status.st_ino;
  std::uint64_t step = at.step;
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    ++step;
    if (rk_step_begin(run, step) != RK_OK || rk_update_begin(run) != RK_OK) return fail("a step");
    for (auto& tensor : tensors) tensor.front() = step;
    if (rk_update_end(run) != RK_OK || rk_step_end(run) != RK_OK) return fail("a step");
    const Clock::time_point begin = Clock::now();
    if (rk_checkpoint(run) != RK_OK) return fail("rk_checkpoint");
    const Clock::time_point returned = Clock::now();
    if (published.load() < begin) return fail("the checkpoint's folder was not synced");
    std::printf("%.3f %.3f %.1f\n", milliseconds(published.load() - begin), milliseconds(returned - begin),
                mebibytes_beyond(bytes));
    std::fflush(stdout);
  }
  return rk_close(run);
}
