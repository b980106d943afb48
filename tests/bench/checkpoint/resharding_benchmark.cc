// resharding_benchmark FOLDER TENSORS ROUNDS: that many tensors of 16,384 x 4,096 bf16 and an
// embedding of 1,000,000 x 16, cut by columns over two ranks and over four. Rank 0 of two restores
// what two wrote (equal), what four wrote (joined), and rank 0 of four what two wrote (divided),
// all cold and each in a process of its own. Prints a line for each: its name, ranges of the plan,
// milliseconds to plan, milliseconds to read, MiB filled, MiB read, most MiB of memory beyond the
// registered tensors (the program itself included).
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/checkpoint/written.h"
#include "worker-sidecar/storage/file_writer.h"
#include "worker-sidecar/storage/files.h"
#include "worker-sidecar/storage/piece_reader.h"

namespace rekindle {
namespace {

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "resharding_benchmark: %s\n", why.c_str());
  std::exit(1);
}

template <typename T>
T must(Result<T> result) {
  if (!result) give_up(result.error().message);
  return *std::move(result);
}

void must(const Status& status) {
  if (!status) give_up(status.error().message);
}

// What a rank of `ranks` holds.
Layout columns_of(std::uint64_t tensors, std::uint32_t rank, std::uint32_t ranks) {
  Layout layout;
  const auto add = [&](const std::string& name, std::uint64_t rows, std::uint64_t columns) {
    layout.tensors.push_back(
        {name, Dtype::bf16, {rows, columns / ranks}, {rows, columns}, {0, columns / ranks * rank}});
  };
  for (std::uint64_t i = 0; i < tensors; ++i) add("layer." + std::to_string(i), 16'384, 4'096);
  add("embedding", 1'000'000, 16);
  return layout;
}

// Every tensor holds the same bytes: what is measured does not look at them.
Manifest save(const std::string& folder, std::uint64_t tensors, std::uint32_t ranks) {
  std::filesystem::create_directories(folder);
  Manifest manifest{
      .job = {"bench", "bench", ""}, .attempt = 1, .step = 1, .term = 1, .world_size = ranks, .live_ranks = ranks};
  std::vector<Layout> layouts;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) layouts.push_back(columns_of(tensors, rank, ranks));
  std::vector<WrittenStripe> stripes;
  std::vector<std::uint64_t> memory((64u << 20) / sizeof(std::uint64_t));
  std::uint64_t value = 0x9e3779b97f4a7c15u;
  for (std::uint64_t& element : memory) element = value = value * 6364136223846793005u + 1442695040888963407u;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    std::vector<MemoryPiece> pieces;
    for (const TensorDescription& tensor : layouts[rank].tensors) {
      if (tensor_bytes(tensor) > memory.size() * sizeof(std::uint64_t)) give_up("the source memory is too small");
      pieces.push_back({.entry = entry_of_piece(tensor, 0, row_count(tensor)), .data = memory.data()});
    }
    const std::string name = rank_file_name(rank);
    WrittenDataFile written = must(write_data_file(real_file_system(), folder, name, pieces));
    WrittenFile report{
        .file = name, .bytes = written.bytes, .hash = written.hash, .chunks = written.chunks, .entries = {}};
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const TensorDescription& tensor = layouts[rank].tensors[i];
      report.entries.push_back({.key = written.entries[i].key,
                                .tensor = tensor.name,
                                .begin_row = 0,
                                .end_row = row_count(tensor),
                                .begin_byte = written.entries[i].begin_byte,
                                .end_byte = written.entries[i].end_byte});
    }
    stripes.push_back({.layout = &layouts[rank], .written = std::move(report)});
  }
  must(add_tensors(manifest, stripes));
  must(check_manifest(manifest));
  return manifest;
}

void forget(const std::string& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const int descriptor = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) continue;
    ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    ::close(descriptor);
  }
}

double mebibytes_held(const char* what) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    unsigned long long kibibytes = 0;
    if (line.starts_with(what) && std::sscanf(line.c_str() + std::strlen(what), ": %llu kB", &kibibytes) == 1)
      return static_cast<double>(kibibytes) / 1024;
  }
  return 0;
}

double milliseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

void restore(const char* name, const std::string& folder, const Manifest& manifest, std::uint64_t tensors,
             std::uint32_t ranks) {
  const RestoreTarget target{.rank = 0, .world_size = ranks, .layout = columns_of(tensors, 0, ranks), .states = {}};
  std::vector<std::unique_ptr<char[]>> memory;
  std::vector<Destination> destinations;
  std::uint64_t bytes = 0;
  for (const TensorDescription& tensor : target.layout.tensors) {
    memory.push_back(std::make_unique<char[]>(tensor_bytes(tensor)));
    std::memset(memory.back().get(), 1, tensor_bytes(tensor));
    destinations.push_back({.data = memory.back().get(), .bytes = tensor_bytes(tensor)});
    bytes += tensor_bytes(tensor);
  }
  forget(folder);
  const auto planned = std::chrono::steady_clock::now();
  const RestorePlan plan = must(plan_restore(manifest, target));
  const double plan_milliseconds = milliseconds_since(planned);
  std::size_t ranges = 0;
  for (const FileReads& reads : plan.files) ranges += reads.ranges.size();
  ReadReport report;
  const auto begin = std::chrono::steady_clock::now();
  must(read_plan(real_file_system(), folder, manifest, plan, {.tensors = destinations, .states = {}}, {},
                 {.report = &report}));
  const double read_milliseconds = milliseconds_since(begin);
  constexpr double kMebibyte = 1 << 20;
  std::printf("%s %zu %.3f %.3f %.0f %.0f %.1f\n", name, ranges, plan_milliseconds, read_milliseconds,
              static_cast<double>(bytes) / kMebibyte, static_cast<double>(report.bytes) / kMebibyte,
              mebibytes_held("VmHWM") - static_cast<double>(bytes) / kMebibyte);
  std::fflush(stdout);
}

void in_a_process(const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    std::_Exit(0);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0) give_up("a restore failed");
}

int run(const std::string& folder, std::uint64_t tensors, std::uint64_t rounds) {
  std::map<std::uint32_t, Manifest> manifests;
  const auto place = [&](std::uint32_t ranks) { return folder + "/cut-" + std::to_string(ranks); };
  for (const std::uint32_t ranks : {2u, 4u}) manifests[ranks] = save(place(ranks), tensors, ranks);
  std::vector<std::function<void()>> restores = {
      [&] { restore("equal", place(2), manifests[2], tensors, 2); },
      [&] { restore("joined", place(4), manifests[4], tensors, 2); },
      [&] { restore("divided", place(2), manifests[2], tensors, 4); },
  };
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (const auto& work : restores) in_a_process(work);
    // One way round and the other: none always finds the disk as the same one left it.
    std::ranges::reverse(restores);
  }
  for (const std::uint32_t ranks : {2u, 4u}) std::filesystem::remove_all(place(ranks));
  return 0;
}

}  // namespace
}  // namespace rekindle

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: resharding_benchmark FOLDER TENSORS ROUNDS\n");
    return 2;
  }
  return rekindle::run(argv[1], std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10));
}
