// Reads a restore plan into memory, every file verified on the way.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/restore_plan.h"
#include "worker-sidecar/storage/file_system.h"
#include "worker-sidecar/storage/source_file.h"
#include "worker-sidecar/storage/wanted_parts.h"

namespace rekindle {

// What came of it, for people and benchmarks.
struct ReadReport {
  ReadWay way = ReadWay::plain;  // of the largest file
  std::uint64_t bytes = 0;       // read from data files
};

struct ReadOptions {
  // None: past the page cache when this process is alone on its node, and through it when
  // `ranks_here` processes want parts of the same files.
  std::optional<ReadWay> way_max;
  std::uint32_t ranks_here = 1;
  // Of a large file whose chunks have hashes; at least 1. They end before the call does. Where an
  // array is among the destinations only the calling thread works: copy functions of the program's
  // own are called one at a time.
  unsigned threads_max = 4;
  ReadReport* report = nullptr;
};

// Reads what the plan needs of each file that it names, verifies it, and copies what the plan needs
// for. Where the manifest has hashes of chunks, only the chunks with something needed (and the
// file's header) are read, by several threads when they are many; otherwise the whole file, once,
// in order. Success means that everything that was read is as it was written. After a failure the
// memory may be partly overwritten. Errors: corrupt (with the file's name), not_found, io.
// `may_go_on` as in file_writer.h, on the calling thread. Memory: 32 MiB beside the destinations,
// and 4 MiB more where there are arrays.
Status read_plan(FileSystem& file_system, const std::string& checkpoint_folder, const Manifest& manifest,
                 const RestorePlan& plan, const RestoreMemory& memory, const std::function<Status()>& may_go_on = {},
                 const ReadOptions& options = {});

// Only the ranges, without hashes: for a checkpoint that has just been verified.
Status read_plan_unverified(FileSystem& file_system, const std::string& checkpoint_folder, const RestorePlan& plan,
                            const RestoreMemory& memory);

}  // namespace rekindle
