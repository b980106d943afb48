#include "worker-sidecar/cli/checkpoint_diff.h"

#include <map>
#include <ostream>
#include <utility>
#include <vector>

#include "common/base/format.h"
#include "common/base/json_fields.h"
#include "worker-sidecar/checkpoint/coverage.h"
#include "worker-sidecar/cli/opened_checkpoint.h"
#include "worker-sidecar/cli/table.h"

namespace rekindle::cli {
namespace {

struct Difference {
  std::string what;  // name of a tensor, or key of a state
  std::string how;
};

// Of two byte streams that come in portions of equal size.
class ByteComparison {
 public:
  void add(const std::vector<char>& left, const std::vector<char>& right) {
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (left[i] != right[i] && different_++ == 0) first_ = compared_ + i;
    }
    compared_ += left.size();
  }
  // Empty: the same.
  std::string result() const {
    if (different_ == 0) return "";
    return format("{} of {} bytes differ, from byte {} on", different_, compared_, first_);
  }

 private:
  std::uint64_t compared_ = 0;
  std::uint64_t different_ = 0;
  std::uint64_t first_ = 0;
};

class Comparison {
 public:
  Comparison(FileSystem& file_system, const OpenedCheckpoint& left, const OpenedCheckpoint& right, Progress& progress)
      : file_system_(file_system), left_(left), right_(right), progress_(progress) {}

  Result<std::vector<Difference>> run() {
    std::map<std::string, Pair<ManifestTensor>> tensors;
    for (const ManifestTensor& tensor : left_.manifest.tensors) tensors[tensor.name].left = &tensor;
    for (const ManifestTensor& tensor : right_.manifest.tensors) tensors[tensor.name].right = &tensor;
    if (Status status = each(tensors); !status) return std::unexpected(status.error());
    std::map<std::string, Pair<ManifestState>> states;
    for (const ManifestState& state : left_.manifest.states) states[state.key].left = &state;
    for (const ManifestState& state : right_.manifest.states) states[state.key].right = &state;
    if (Status status = each(states); !status) return std::unexpected(status.error());
    return std::move(differences_);
  }

 private:
  template <typename Thing>
  struct Pair {
    const Thing* left = nullptr;
    const Thing* right = nullptr;
  };

  static std::string compare_shapes(const ManifestTensor& left, const ManifestTensor& right) {
    if (left.dtype != right.dtype) return format("type {} against {}", to_string(left.dtype), to_string(right.dtype));
    if (left.global_shape != right.global_shape)
      return format("shape {} against {}", describe_shape(left.global_shape), describe_shape(right.global_shape));
    return "";
  }
  static std::string compare_shapes(const ManifestState& left, const ManifestState& right) {
    return left.bytes == right.bytes ? "" : format("{} bytes against {}", left.bytes, right.bytes);
  }
  Result<std::string> compare_bytes(const ManifestTensor& left, const ManifestTensor& right) {
    ByteComparison comparison;
    for (const TensorBox& block : blocks_of(left, whole_box(left))) {
      if (Status status = read_box(file_system_, left_, left, block, left_bytes_); !status)
        return std::unexpected(status.error());
      if (Status status = read_box(file_system_, right_, right, block, right_bytes_); !status)
        return std::unexpected(status.error());
      comparison.add(left_bytes_, right_bytes_);
      progress_.report(done_bytes_ += left_bytes_.size(), bytes_in_all_);
    }
    return comparison.result();
  }
  Result<std::string> compare_bytes(const ManifestState& left, const ManifestState& right) {
    ByteComparison comparison;
    if (Status status = read_state(file_system_, left_, left, left_bytes_); !status)
      return std::unexpected(status.error());
    if (Status status = read_state(file_system_, right_, right, right_bytes_); !status)
      return std::unexpected(status.error());
    comparison.add(left_bytes_, right_bytes_);
    return comparison.result();
  }

  template <typename Thing>
  Status each(const std::map<std::string, Pair<Thing>>& things) {
    for (const auto& [name, pair] : things) {
      std::string how;
      if (pair.left == nullptr || pair.right == nullptr) {
        how = "only in " + (pair.left != nullptr ? left_.name : right_.name);
      } else {
        how = compare_shapes(*pair.left, *pair.right);
        if (how.empty()) {
          Result<std::string> compared = compare_bytes(*pair.left, *pair.right);
          if (!compared) return std::unexpected(compared.error());
          how = std::move(*compared);
        }
      }
      if (!how.empty()) differences_.push_back({name, std::move(how)});
    }
    return {};
  }

  FileSystem& file_system_;
  const OpenedCheckpoint& left_;
  const OpenedCheckpoint& right_;
  Progress& progress_;
  const std::uint64_t bytes_in_all_ = data_bytes(left_.manifest);
  std::uint64_t done_bytes_ = 0;
  std::vector<char> left_bytes_;
  std::vector<char> right_bytes_;
  std::vector<Difference> differences_;
};

Json to_json(const OpenedCheckpoint& checkpoint) {
  return {
      {"checkpoint", checkpoint.name}, {"step", checkpoint.manifest.step}, {"attempt", checkpoint.manifest.attempt}};
}

}  // namespace

int diff_checkpoints(FileSystem& file_system, const std::string& left_directory, const std::string& right_directory,
                     CommandStreams streams) {
  const Result<OpenedCheckpoint> left = open_checkpoint(file_system, left_directory, streams.progress);
  if (!left) return report(streams, left.error());
  const Result<OpenedCheckpoint> right = open_checkpoint(file_system, right_directory, streams.progress);
  if (!right) return report(streams, right.error());
  streams.progress.begin(format("comparing {} with {}", left->name, right->name));
  const Result<std::vector<Difference>> differences = Comparison(file_system, *left, *right, streams.progress).run();
  if (!differences) return report(streams, differences.error());
  if (streams.json) {
    Json list = Json::array();
    for (const Difference& each : *differences) list.push_back({{"name", each.what}, {"difference", each.how}});
    streams.out << dump_json({{"left", to_json(*left)}, {"right", to_json(*right)}, {"differences", std::move(list)}})
                << '\n';
  } else {
    const std::size_t compared = left->manifest.tensors.size() + left->manifest.states.size();
    streams.out << printable(left->name) << " (step " << left->manifest.step << ") against " << printable(right->name)
                << " (step " << right->manifest.step << "): ";
    if (differences->empty()) {
      streams.out << "the same, " << compared << " tensors and states\n";
    } else {
      streams.out << differences->size() << " differ\n";
      Table table({{"NAME"}, {"DIFFERENCE"}});
      for (const Difference& each : *differences) table.add({printable(each.what), printable(each.how)});
      table.print(streams.out);
    }
  }
  return differences->empty() ? kExitOk : kExitProblemsFound;
}

}  // namespace rekindle::cli
