#include "worker-sidecar/runtime/src/strided_memory.h"

#include <algorithm>
#include <array>

#include "common/base/format.h"
#include "worker-sidecar/storage/run_copy.h"

namespace rekindle::runtime {
namespace {

// In units: elements, or where these are narrower than a byte the packed_elements that are whole
// bytes.
struct Stride {
  std::uint64_t extent = 0;
  std::uint64_t units = 0;
};

std::uint64_t unit_bytes(Dtype dtype) { return bytes_of_elements(dtype, packed_elements(dtype)); }

// Of dimensions that are stepped over. Units stay whole as long as the last dimension has no gaps
// and every other one steps over whole units.
Outcome<std::vector<Stride>> strides_in_units(const TensorDescription& tensor, const std::int64_t* strides) {
  const std::uint64_t packed = packed_elements(tensor.dtype);
  std::vector<Stride> used;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    Stride stride{tensor.shape[i], static_cast<std::uint64_t>(strides[i])};
    if (stride.extent == 1) continue;
    const bool last = i + 1 == tensor.shape.size();
    if (packed > 1 && (last ? stride.units != 1 : stride.units % packed != 0)) {
      return refuse(RK_ERROR_ARGUMENT, format("tensor '{}' is {}, of which only {} elements together are whole "
                                              "bytes: stride[{}] is {} and has to be {}{}; register "
                                              "the array that it is a view of",
                                              tensor.name, to_string(tensor.dtype), packed, i, strides[i],
                                              last ? "" : "a multiple of ", last ? 1 : packed));
    }
    (last ? stride.extent : stride.units) /= packed;
    if (stride.extent > 1) used.push_back(stride);
  }
  return used;
}

// No two elements share memory if, from the smallest stride on, each steps over everything that the
// smaller ones reach. Views of usual frameworks (transposed, sliced, padded) are like that; strides
// that interleave without touching are refused as well.
Done check_strides(const TensorDescription& tensor, std::vector<Stride> strides) {
  std::ranges::sort(strides, {}, &Stride::units);
  std::uint64_t reach = 0;  // units from the first to the last one that the strides so far lead to
  for (const Stride& stride : strides) {
    if (stride.units == 0) {
      return refuse(RK_ERROR_ARGUMENT, format("tensor '{}' has stride 0 over {} elements, so all of them are one (a "
                                              "broadcast); register the array that was broadcast",
                                              tensor.name, stride.extent));
    }
    if (stride.units <= reach) {
      return refuse(
          RK_ERROR_ARGUMENT,
          format(
              "tensor '{}' has strides with which elements may share memory; register the array that it is a view of",
              tensor.name));
    }
    std::uint64_t more = 0;
    if (__builtin_mul_overflow(stride.extent - 1, stride.units, &more) || __builtin_add_overflow(reach, more, &reach) ||
        reach > kTensorBytesMax / unit_bytes(tensor.dtype)) {
      return refuse(RK_ERROR_ARGUMENT, format("tensor '{}' has strides that reach over more than {} TiB", tensor.name,
                                              kTensorBytesMax >> 40));
    }
  }
  return {};
}

}  // namespace

Outcome<std::unique_ptr<StridedMemory>> StridedMemory::make(const TensorDescription& tensor,
                                                            const std::int64_t* strides, void* data) {
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    if (strides[i] < 0) {
      return refuse(RK_ERROR_ARGUMENT, format("tensor '{}': stride[{}] is {}; negative strides cannot be registered, "
                                              "register the array that was reversed",
                                              tensor.name, i, strides[i]));
    }
  }
  if (tensor_bytes(tensor) == 0) return nullptr;
  const Outcome<std::vector<Stride>> used = strides_in_units(tensor, strides);
  if (!used) return std::unexpected(used.error());
  if (Done done = check_strides(tensor, *used); !done) return std::unexpected(done.error());

  auto memory = std::unique_ptr<StridedMemory>(new StridedMemory);
  memory->data_ = static_cast<std::byte*>(data);
  const std::uint64_t unit = unit_bytes(tensor.dtype);
  memory->run_bytes_ = unit;
  // From the fastest dimension outward: one that continues where the run ends makes the run longer,
  // one that continues the dimension inside it makes that one longer.
  std::vector<Dimension> outward;
  for (auto stride = used->rbegin(); stride != used->rend(); ++stride) {
    const std::uint64_t step = stride->units * unit;
    if (outward.empty() && step == memory->run_bytes_) {
      memory->run_bytes_ *= stride->extent;
    } else if (!outward.empty() && step == outward.back().extent * outward.back().step_bytes) {
      outward.back().extent *= stride->extent;
    } else {
      outward.push_back({stride->extent, step});
    }
  }
  if (outward.empty()) return nullptr;
  memory->dimensions_.assign(outward.rbegin(), outward.rend());
  return memory;
}

// Calls copy(place in memory, bytes of a run, runs) for the dense bytes requested, in order; runs
// follow each other in the step of the last dimension.
template <typename Copy>
void StridedMemory::walk(std::uint64_t begin_byte, std::size_t bytes, Copy&& copy) const {
  std::uint64_t rest = begin_byte / run_bytes_;
  std::uint64_t inside = begin_byte % run_bytes_;
  std::array<std::uint64_t, kDimensionsMax> index{};
  std::byte* place = data_;
  for (std::size_t i = dimensions_.size(); i-- > 0;) {
    index[i] = rest % dimensions_[i].extent;
    rest /= dimensions_[i].extent;
    place += index[i] * dimensions_[i].step_bytes;
  }
  while (bytes > 0) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(run_bytes_ - inside, bytes));
    // Whole runs go together; only the first and the last are cut.
    std::uint64_t runs =
        part == run_bytes_
            ? std::min<std::uint64_t>(dimensions_.back().extent - index[dimensions_.size() - 1], bytes / run_bytes_)
            : 1;
    copy(place + inside, part, runs);
    bytes -= part * runs;
    inside = 0;
    for (std::size_t i = dimensions_.size(); i-- > 0; runs = 1) {
      place += runs * dimensions_[i].step_bytes;
      index[i] += runs;
      if (index[i] < dimensions_[i].extent) break;
      place -= dimensions_[i].extent * dimensions_[i].step_bytes;
      index[i] = 0;
    }
  }
}

Status StridedMemory::copy_out(void* to, std::uint64_t begin_byte, std::size_t bytes) const {
  auto* out = static_cast<std::byte*>(to);
  walk(begin_byte, bytes, [&](const std::byte* place, std::size_t part, std::uint64_t runs) {
    copy_runs(out, part, place, dimensions_.back().step_bytes, part, runs);
    out += part * runs;
  });
  return {};
}

Status StridedMemory::copy_in(std::uint64_t begin_byte, const void* from, std::size_t bytes) const {
  const auto* in = static_cast<const std::byte*>(from);
  walk(begin_byte, bytes, [&](std::byte* place, std::size_t part, std::uint64_t runs) {
    copy_runs(place, dimensions_.back().step_bytes, in, part, part, runs);
    in += part * runs;
  });
  return {};
}

}  // namespace rekindle::runtime
