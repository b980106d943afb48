// One new file that appears whole or not at all, and never in the place of another: written under a
// temporary name, synced, linked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "common/base/error.h"
#include "worker-sidecar/storage/file_system.h"

namespace rekindle::cli {

class NewFile {
 public:
  // `bytes`: its size, exactly. Error already_exists when there is one under the name.
  static Result<NewFile> create(FileSystem& file_system, const std::string& folder, const std::string& name,
                                std::uint64_t bytes, const std::string& nonce);
  // nothing is left of it unless it was published
  ~NewFile();
  NewFile(NewFile&&) noexcept;

  Status append(const void* data, std::size_t bytes);

  // Everything has been appended: durable under the temporary name, which is returned, so that it
  // can be read back.
  Result<std::string> sync();
  // After sync.
  Status publish();

 private:
  struct State;
  explicit NewFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rekindle::cli
