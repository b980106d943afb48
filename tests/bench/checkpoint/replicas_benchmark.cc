// replicas_benchmark FOLDER MEBIBYTES WRITERS MEBIBYTES_PER_SECOND: that many replicas hold the
// same tensors, and each writes its share of them, with its bandwidth capped (0: not). Prints the
// milliseconds until all shares are durable, and then the bytes of the file that each has written.
// A thread stands for a replica.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "worker-sidecar/checkpoint/plan.h"
#include "worker-sidecar/storage/file_writer.h"

namespace rekindle {
namespace {

// The tensors of a transformer, in miniature: a few large ones, and for each layer some of very
// different sizes.
Layout model_layout(std::uint64_t bytes) {
  Layout layout;
  const auto add = [&](const std::string& name, Extents shape) {
    layout.tensors.push_back(whole_tensor(name, Dtype::f32, std::move(shape)));
  };
  constexpr std::uint64_t kWidth = 1024;
  constexpr std::uint64_t kLayerBytes = (4 * kWidth * kWidth + 8 * kWidth * kWidth + 2 * kWidth) * 4;
  const std::uint64_t embedding_rows = bytes / 8 / (kWidth * 4);
  add("embedding", {embedding_rows, kWidth});
  for (std::uint64_t layer = 0; layer < (bytes - embedding_rows * kWidth * 4) / kLayerBytes; ++layer) {
    const std::string name = "layer." + std::to_string(layer);
    for (const char* part : {".query", ".key", ".value", ".output"}) add(name + part, {kWidth, kWidth});
    add(name + ".up", {4 * kWidth, kWidth});
    add(name + ".down", {kWidth, 4 * kWidth});
    add(name + ".norm", {kWidth});
    add(name + ".bias", {kWidth});
  }
  return layout;
}

int run(const std::string& folder, std::uint64_t bytes, std::uint32_t writers, std::uint64_t bytes_per_second) {
  const Layout layout = model_layout(bytes);
  std::map<std::string, const TensorDescription*> tensors;
  std::map<std::string, std::vector<std::uint32_t>> memory;
  std::uint32_t value = 1;
  for (const TensorDescription& tensor : layout.tensors) {
    tensors.emplace(tensor.name, &tensor);
    std::vector<std::uint32_t>& data = memory[tensor.name];
    data.resize(tensor_bytes(tensor) / sizeof(std::uint32_t));
    for (std::uint32_t& element : data) element = value = value * 1664525u + 1013904223u;
  }
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < writers; ++rank) ranks.push_back(rank);
  const std::vector<WriterPlan> plans = split_for_writers(layout, ranks);

  std::vector<Status> results(plans.size());
  const auto begin = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      threads.emplace_back([&, i] {
        std::vector<MemoryPiece> pieces;
        for (const PiecePlan& piece : plans[i].pieces) {
          const TensorDescription& tensor = *tensors.at(piece.tensor);
          pieces.push_back({.entry = entry_of_piece(tensor, piece.begin_row, piece.end_row),
                            .data = reinterpret_cast<const char*>(memory.at(piece.tensor).data()) +
                                    rows_bytes(tensor, piece.begin_row)});
        }
        const Result<WrittenDataFile> written = write_data_file(real_file_system(), folder, plans[i].file, pieces,
                                                                {.bytes_per_second_max = bytes_per_second});
        if (!written) results[i] = std::unexpected(written.error());
      });
    }
  }
  const double milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  for (const Status& result : results) {
    if (result) continue;
    std::fprintf(stderr, "replicas_benchmark: %s\n", result.error().message.c_str());
    return 1;
  }
  std::printf("%.3f", milliseconds);
  for (const WriterPlan& plan : plans)
    std::printf(" %ju", std::filesystem::file_size(std::filesystem::path(folder) / plan.file));
  std::printf("\n");
  return 0;
}

}  // namespace
}  // namespace rekindle

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: replicas_benchmark FOLDER MEBIBYTES WRITERS MEBIBYTES_PER_SECOND\n");
    return 2;
  }
  const auto number = [&](int index) { return std::strtoull(argv[index], nullptr, 10); };
  return rekindle::run(argv[1], number(2) << 20, static_cast<std::uint32_t>(std::max<unsigned long long>(number(3), 1)),
                       number(4) << 20);
}
