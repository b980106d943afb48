// The sidecar's side of a rank's shadow (docs/formats/shadow.md): makes the file, and reads slots
// out of it. Only the header is written here; the rank allocates the rest.
//
// Nothing that the rank wrote is believed: everything is read with pread, sizes are those of the
// plan that was made here, and a slot counts only if its step stands before and after it was read.
// Threads: any, at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/layout.h"
#include "worker-sidecar/protocol/local_message.h"
#include "worker-sidecar/protocol/shadow_plan.h"
#include "worker-sidecar/sidecar/control_file.h"
#include "worker-sidecar/storage/file_system.h"
#include "worker-sidecar/storage/file_writer.h"

namespace rekindle::sidecar {

class ShadowFile {
 public:
  // Makes `rank-<r>.shadow` in `folder`, replacing an earlier one: a process that has it open keeps
  // it.
  static Result<ShadowFile> create(const std::string& folder, ShadowPlan plan);
  // The file of a rank that lived when this sidecar was restarted. `not_found` when there is none
  // of this incarnation.
  static Result<ShadowFile> open(const std::string& folder, std::uint32_t rank, std::uint64_t incarnation);
  static void remove(const std::string& folder, std::uint32_t rank);

  ShadowFile(ShadowFile&& other) noexcept;
  ShadowFile& operator=(ShadowFile&& other) noexcept;
  ~ShadowFile();

  int descriptor() const { return descriptor_; }
  const ShadowPlan& plan() const { return plan_; }

  // Steps of the slots that are whole, lowest first.
  std::vector<std::uint64_t> whole_steps(std::uint64_t attempt) const;
  // The small state that was kept with this step. `not_found`, or `corrupt` as in
  // ControlFile::captured.
  Result<CapturedState> captured(std::uint64_t step, std::uint64_t attempt) const;
  // Bytes of a piece, from `begin_byte` of it. `conflict` when the rank has gone on to use the slot
  // for another step.
  Status read(std::uint64_t step, std::uint64_t attempt, const ShadowPiece& piece, std::uint64_t begin_byte,
              std::span<char> into) const;

 private:
  ShadowFile(int descriptor, ShadowPlan plan) : descriptor_(descriptor), plan_(std::move(plan)) {}
  std::optional<std::uint32_t> slot_of(std::uint64_t step, std::uint64_t attempt) const;

  int descriptor_ = -1;
  ShadowPlan plan_;
};

// Carries out a write order from the copy in the shadow. `layout` is what the rank had registered
// when the plan was made. Errors as of write_data_file, `conflict` when the copy was overwritten
// meanwhile, `not_found` when it does not have the step or a piece.
Result<WrittenFile> write_from_shadow(FileSystem& file_system, const std::string& job_folder, const WriteMessage& order,
                                      std::uint64_t attempt, const Layout& layout, const ShadowFile& shadow,
                                      const WriteOptions& options);

}  // namespace rekindle::sidecar
