// A checkpoint that any layout wrote is read by any other: one model, every way to spread it over
// ranks, every number of ranks, each to each. Through real data files and manifests, every byte
// compared with the model.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/format.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/counted_array.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thoroughness.h"
#include "worker-sidecar/checkpoint/coverage.h"

namespace rekindle {
namespace {

struct Box {
  Extents offset;
  Extents shape;

  auto operator<=>(const Box&) const = default;
};

// The model: sizes that divide by nothing, a scalar, empty tensors, each data type. Of elements
// narrower than a byte whole bytes divide by nothing.
const std::vector<TensorDescription>& model() {
  static const std::vector<TensorDescription> tensors = [] {
    std::vector<TensorDescription> made{
        whole_tensor("embed", Dtype::f32, {13, 6}),         whole_tensor("mlp.up", Dtype::bf16, {8, 12}),
        whole_tensor("mlp.down", Dtype::f16, {12, 8}),      whole_tensor("norm", Dtype::f64, {7}),
        whole_tensor("experts", Dtype::f8_e4m3, {6, 4, 5}), whole_tensor("flat.moments", Dtype::f32, {101}),
        whole_tensor("flat.scales", Dtype::f8_e5m2, {17}),  whole_tensor("scale", Dtype::f64, {}),
        whole_tensor("empty.rows", Dtype::i32, {0, 4}),     whole_tensor("empty.columns", Dtype::i16, {5, 0}),
        whole_tensor("flat.nibbles", Dtype::f4, {74}),      whole_tensor("flat.sixes", Dtype::f6_e2m3, {92}),
        whole_tensor("experts.f4", Dtype::f4, {6, 5, 14}),  whole_tensor("mlp.up.f6", Dtype::f6_e3m2, {7, 20}),
        whole_tensor("mlp.down.c64", Dtype::c64, {7, 5})};
    for (int stage = 0; stage < 6; ++stage) made.push_back(whole_tensor(format("stage.{}", stage), Dtype::f32, {5, 3}));
    for (int number = 1; const std::optional<Dtype> dtype = dtype_from_number(number); ++number) {
      made.push_back(whole_tensor("kind." + std::string(to_string(*dtype)), *dtype, {9, 2 * packed_elements(*dtype)}));
    }
    return made;
  }();
  return tensors;
}

const std::string& bytes_of(std::size_t tensor) {
  static const std::vector<std::string> bytes = [] {
    std::vector<std::string> made;
    for (std::size_t i = 0; i < model().size(); ++i) made.push_back(make_bytes(tensor_bytes(model()[i]), 77 + i));
    return made;
  }();
  return bytes[tensor];
}

// The bytes of a box, element by element (those of a byte or three together): slow and plain, so
// that it shares nothing with what is tested.
std::string bytes_of(std::size_t tensor, const Box& box) {
  const TensorDescription& whole = model()[tensor];
  const std::size_t packed = packed_elements(whole.dtype);
  const std::size_t taken = packed * element_bits(whole.dtype) / 8;
  std::string bytes;
  for (std::uint64_t i = 0; i < volume_of(box.shape); i += packed) {
    std::uint64_t rest = i;
    std::uint64_t place = 0;
    std::uint64_t scale = 1;
    for (std::size_t d = box.shape.size(); d-- > 0;) {
      place += (rest % box.shape[d] + box.offset[d]) * scale;
      rest /= box.shape[d];
      scale *= whole.shape[d];
    }
    bytes += bytes_of(tensor).substr(place / packed * taken, taken);
  }
  return bytes;
}

// ---- ways to spread a tensor over ranks; nothing: the rank does not register it ----

using Spread = std::optional<Box> (*)(const TensorDescription& tensor, std::uint64_t rank, std::uint64_t ranks);

Box whole(const TensorDescription& tensor) {
  return {.offset = Extents(tensor.shape.size(), 0), .shape = tensor.shape};
}

// Where a dimension can be cut.
std::uint64_t step_of(const TensorDescription& tensor, std::size_t dimension) {
  return dimension + 1 == tensor.shape.size() ? packed_elements(tensor.dtype) : 1;
}

Box part(const TensorDescription& tensor, std::size_t dimension, std::uint64_t index, std::uint64_t parts) {
  Box box = whole(tensor);
  if (dimension >= tensor.shape.size()) return box;
  const std::uint64_t step = step_of(tensor, dimension);
  const std::uint64_t steps = tensor.shape[dimension] / step;
  box.offset[dimension] = steps * index / parts * step;
  box.shape[dimension] = steps * (index + 1) / parts * step - box.offset[dimension];
  return box;
}

std::optional<Box> by_data(const TensorDescription& tensor, std::uint64_t, std::uint64_t) { return whole(tensor); }
std::optional<Box> by_rows(const TensorDescription& tensor, std::uint64_t rank, std::uint64_t ranks) {
  return part(tensor, 0, rank, ranks);
}
std::optional<Box> by_columns(const TensorDescription& tensor, std::uint64_t rank, std::uint64_t ranks) {
  return part(tensor, 1, rank, ranks);
}

std::optional<Box> by_both(const TensorDescription& tensor, std::uint64_t rank, std::uint64_t ranks) {
  if (tensor.shape.size() < 2) return whole(tensor);
  const std::uint64_t down = ranks % 2 == 0 ? 2 : 1;
  const std::uint64_t across = ranks / down;
  Box box = part(tensor, 0, rank / across, down);
  const Box columns = part(tensor, 1, rank % across, across);
  box.offset[1] = columns.offset[1];
  box.shape[1] = columns.shape[1];
  return box;
}

// The first rank has half of the rows, the next half of the rest, and so on; the last may have
// none.
std::optional<Box> unevenly(const TensorDescription& tensor, std::uint64_t rank, std::uint64_t ranks) {
  Box box = whole(tensor);
  if (tensor.shape.empty()) return box;
  for (std::uint64_t i = 0; i <= rank; ++i) {
    box.offset[0] += i == 0 ? 0 : box.shape[0];
    const std::uint64_t rest = tensor.shape[0] - box.offset[0];
    const std::uint64_t step = step_of(tensor, 0);
    box.shape[0] = i + 1 == ranks ? rest : (rest / step + 1) / 2 * step;
  }
  return box;
}

bool begins(const TensorDescription& tensor, std::string_view name) {
  return std::string_view(tensor.name).starts_with(name);
}

// Stages are private to their ranks, as are what comes before the first and after the last.
std::optional<Box> by_stages(const TensorDescription& tensor, std::uint64_t rank, std::uint64_t ranks) {
  if (begins(tensor, "embed") && rank != 0) return std::nullopt;
  if (begins(tensor, "norm") && rank + 1 != ranks) return std::nullopt;
  if (begins(tensor, "stage.") && static_cast<std::uint64_t>(tensor.name.back() - '0') % ranks != rank)
    return std::nullopt;
  return whole(tensor);
}

std::optional<Box> by_optimizer(const TensorDescription& tensor, std::uint64_t rank, std::uint64_t ranks) {
  return begins(tensor, "flat.") ? part(tensor, 0, rank, ranks) : whole(tensor);
}

std::optional<Box> by_experts(const TensorDescription& tensor, std::uint64_t rank, std::uint64_t ranks) {
  return begins(tensor, "experts") ? part(tensor, 0, rank, ranks) : whole(tensor);
}

std::optional<Box> by_everything(const TensorDescription& tensor, std::uint64_t rank, std::uint64_t ranks) {
  if (begins(tensor, "mlp.up")) return part(tensor, 1, rank, ranks);
  if (begins(tensor, "mlp.down")) return part(tensor, 0, rank, ranks);
  if (begins(tensor, "flat.")) return by_optimizer(tensor, rank, ranks);
  if (begins(tensor, "experts")) return by_experts(tensor, rank, ranks);
  return by_stages(tensor, rank, ranks);
}

struct Way {
  const char* name;
  Spread spread;
};
constexpr Way kWays[] = {
    {"data parallel", by_data},    {"rows", by_rows},         {"columns", by_columns},
    {"rows and columns", by_both}, {"uneven rows", unevenly}, {"stages", by_stages},
    {"optimizer", by_optimizer},   {"experts", by_experts},   {"everything at once", by_everything}};
constexpr std::uint32_t kRankCounts[] = {1, 2, 3, 4, 6};

// ---- one way with one number of ranks ----

struct Job {
  std::string name;
  std::vector<Layout> layouts;  // by rank
  // by rank: which of the model each of the layout is
  std::vector<std::vector<std::size_t>> tensors;
  std::vector<std::vector<std::string>> bytes_held;  // by rank
};

Job make_job_of(const Way& way, std::uint32_t ranks) {
  Job job{.name = format("{} on {}", way.name, ranks), .layouts = {}, .tensors = {}, .bytes_held = {}};
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    Layout layout;
    std::vector<std::size_t> tensors;
    std::vector<std::string> bytes;
    for (std::size_t i = 0; i < model().size(); ++i) {
      const TensorDescription& tensor = model()[i];
      const std::optional<Box> box = way.spread(tensor, rank, ranks);
      if (!box) continue;
      layout.tensors.push_back({tensor.name, tensor.dtype, box->shape, tensor.shape, box->offset});
      tensors.push_back(i);
      bytes.push_back(bytes_of(i, *box));
    }
    EXPECT_TRUE(check_layout(layout));
    job.layouts.push_back(std::move(layout));
    job.tensors.push_back(std::move(tensors));
    job.bytes_held.push_back(std::move(bytes));
  }
  return job;
}

std::vector<const Layout*> layouts_of(const Job& job) {
  std::vector<const Layout*> layouts;
  for (const Layout& layout : job.layouts) layouts.push_back(&layout);
  return layouts;
}

// Each box is written by the lowest rank that has it; boxes without elements only where the whole
// tensor has none.
class Writing {
 public:
  explicit Writing(const Job& job) : job_(job) {}

  Manifest write_to(const std::string& folder) {
    Manifest manifest{.job = make_job(),
                      .attempt = 1,
                      .step = 1,
                      .term = 1,
                      .world_size = static_cast<std::uint32_t>(job_.layouts.size()),
                      .live_ranks = static_cast<std::uint32_t>(job_.layouts.size())};
    std::vector<WrittenStripe> stripes;
    for (std::uint32_t rank = 0; rank < job_.layouts.size(); ++rank) {
      std::optional<WrittenFile> file = write_share(folder, rank);
      if (file) stripes.push_back({.layout = &job_.layouts[rank], .written = std::move(*file)});
    }
    const Status added = add_tensors(manifest, stripes);
    EXPECT_TRUE(added) << (added ? "" : added.error().message);
    const Status checked = check_manifest(manifest);
    EXPECT_TRUE(checked) << (checked ? "" : checked.error().message);
    return manifest;
  }

 private:
  std::optional<WrittenFile> write_share(const std::string& folder, std::uint32_t rank) {
    std::vector<MemoryPiece> pieces;
    std::vector<const TensorDescription*> of;
    const Layout& layout = job_.layouts[rank];
    for (std::size_t i = 0; i < layout.tensors.size(); ++i) {
      const TensorDescription& tensor = layout.tensors[i];
      if (volume_of(tensor.shape) == 0 && volume_of(tensor.global_shape) != 0) continue;
      const Box box = volume_of(tensor.shape) == 0 ? Box{} : Box{tensor.offset, tensor.shape};
      if (!taken_[tensor.name].insert(box).second) continue;
      pieces.push_back(
          {.entry = entry_of_piece(tensor, 0, row_count(tensor)), .data = job_.bytes_held[rank][i].data()});
      of.push_back(&tensor);
    }
    if (pieces.empty()) return std::nullopt;
    const std::string name = rank_file_name(rank);
    const Result<WrittenDataFile> written =
        write_data_file(real_file_system(), folder, name, pieces, {.block_bytes = 4096, .way_max = WriteWay::plain});
    EXPECT_TRUE(written) << (written ? "" : written.error().message);
    WrittenFile report{
        .file = name, .bytes = written->bytes, .hash = written->hash, .chunks = written->chunks, .entries = {}};
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      report.entries.push_back({.key = written->entries[i].key,
                                .tensor = of[i]->name,
                                .begin_row = 0,
                                .end_row = row_count(*of[i]),
                                .begin_byte = written->entries[i].begin_byte,
                                .end_byte = written->entries[i].end_byte});
    }
    return report;
  }

  const Job& job_;
  std::map<std::string, std::set<Box>> taken_;
};

struct Saved {
  std::string folder;
  Manifest manifest;
};

void expect_restored(const Saved& saved, const Job& job) {
  EXPECT_EQ(list_job_differences(saved.manifest, layouts_of(job)), std::vector<std::string>{});
  for (std::uint32_t rank = 0; rank < job.layouts.size(); ++rank) {
    const RestoreTarget target{.rank = rank,
                               .world_size = static_cast<std::uint32_t>(job.layouts.size()),
                               .layout = job.layouts[rank],
                               .states = {},
                               .job_checked = true};
    const Result<RestorePlan> plan = plan_restore(saved.manifest, target);
    ASSERT_TRUE(plan) << plan.error().message;
    // Every other rank has its tensors where they are reached by calls.
    const bool on_device = rank % 2 == 1;
    std::deque<CountedArray> memory;
    std::vector<Destination> destinations;
    for (const std::string& bytes : job.bytes_held[rank]) {
      CountedArray& array = memory.emplace_back(bytes.size());
      destinations.push_back(
          {.data = array.bytes.data(), .bytes = bytes.size(), .array = on_device ? &array : nullptr});
    }
    const Status read =
        read_plan(real_file_system(), saved.folder, saved.manifest, *plan, {.tensors = destinations, .states = {}});
    ASSERT_TRUE(read) << read.error().message;
    for (std::size_t i = 0; i < memory.size(); ++i) {
      ASSERT_TRUE(memory[i].bytes == job.bytes_held[rank][i])
          << "rank " << rank << ", tensor " << job.layouts[rank].tensors[i].name;
    }
  }
}

// The jobs of all ways and numbers of ranks.
const std::vector<Job>& all_jobs() {
  static const std::vector<Job> jobs = [] {
    std::vector<Job> made;
    for (const Way& way : kWays) {
      for (const std::uint32_t ranks : kRankCounts) made.push_back(make_job_of(way, ranks));
    }
    return made;
  }();
  return jobs;
}

// A test for each way of writing; what it wrote on each number of ranks is read in every way on
// every number of ranks.
class Resharding : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Resharding, WhatItWroteIsReadByEveryOther) {
  const TemporaryFolder root;
  Sample which(20);
  std::size_t restored = 0;
  for (std::size_t counted = 0; counted < std::size(kRankCounts); ++counted) {
    const Job& writers = all_jobs()[GetParam() * std::size(kRankCounts) + counted];
    const std::string folder = root.at(std::to_string(counted));
    std::filesystem::create_directory(folder);
    const Saved saved{.folder = folder, .manifest = Writing(writers).write_to(folder)};
    for (const Job& readers : all_jobs()) {
      if (!which.takes()) continue;
      SCOPED_TRACE(format("{}, read by {}", writers.name, readers.name));
      expect_restored(saved, readers);
      if (HasFatalFailure()) return;
      ++restored;
    }
  }
  if (exhaustive()) {
    EXPECT_EQ(restored, std::size(kRankCounts) * all_jobs().size());
  }
  EXPECT_GT(restored, 0u);
}

INSTANTIATE_TEST_SUITE_P(EveryWay, Resharding, ::testing::Range(std::size_t{0}, std::size(kWays)), [](const auto& way) {
  std::string name = kWays[way.param].name;
  std::ranges::replace(name, ' ', '_');
  return name;
});

TEST(ReshardingOfStages, ARankDoesNotMissWhatOtherRanksHoldOnceTheJobWasChecked) {
  const Job job = make_job_of({"stages", by_stages}, 3);
  const TemporaryFolder root;
  const Manifest manifest = Writing(job).write_to(root.path());
  RestoreTarget target{.rank = 1, .world_size = 3, .layout = job.layouts[1], .states = {}};
  EXPECT_FALSE(plan_restore(manifest, target))
      << "nobody has compared the whole job, so the tensors of the others look gone";
  target.job_checked = true;
  EXPECT_TRUE(plan_restore(manifest, target));
  // A stage that left the model is found by the whole job.
  Job changed = job;
  std::erase_if(changed.layouts[1].tensors, [](const TensorDescription& tensor) { return tensor.name == "stage.4"; });
  EXPECT_EQ(list_job_differences(manifest, layouts_of(changed)),
            std::vector<std::string>{"tensor \"stage.4\" is in the checkpoint and not registered"});
}

}  // namespace
}  // namespace rekindle
