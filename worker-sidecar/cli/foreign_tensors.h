// Tensors in files that others wrote (safetensors, MindSpore): what there is and where its bytes
// lie, read without holding a tensor.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/layout.h"
#include "worker-sidecar/cli/progress.h"
#include "worker-sidecar/mindspore/checkpoint_file.h"
#include "worker-sidecar/storage/file_system.h"

namespace rekindle::cli {

struct ForeignTensor {
  std::string name;
  Dtype dtype = Dtype::f32;
  Extents shape;
  std::string path;
  std::vector<ContentRange> content;  // end to end
};

struct ForeignTensors {
  // by name; names and sizes have been checked
  std::vector<ForeignTensor> tensors;
  // step_num of MindSpore's files, which agree
  std::optional<std::uint64_t> step;
  // names of what is no tensor of the model: texts, epoch_num, step_num
  std::vector<std::string> left_out;
};

// `paths`: .safetensors files, their .safetensors.index.json, or MindSpore's .ckpt files, in any
// number. Errors name the file: it cannot be read, is no such file, has a type that we do not know;
// one name in two files; files of different steps.
Result<ForeignTensors> index_foreign_files(FileSystem& file_system, const std::vector<std::string>& paths,
                                           Progress& progress);

std::uint64_t content_bytes(const ForeignTensor& tensor);

// One MindSpore file, indexed, its checksum (where it has one) compared with its bytes.
Result<MindSporeFile> index_mindspore_path(FileSystem& file_system, const std::string& path, Progress& progress);

// The number under this name: a scalar Int64 or Int32 that is not negative.
Result<std::optional<std::uint64_t>> find_number(FileSystem& file_system, const std::string& path,
                                                 const MindSporeFile& file, std::string_view name);

// Ranges of a file in portions of some megabytes.
Status stream_ranges(FileSystem& file_system, const std::string& path, const std::vector<ContentRange>& ranges,
                     const std::function<Status(const char*, std::size_t)>& take);

}  // namespace rekindle::cli
