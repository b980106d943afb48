// job.json, which says whose folder it is: an accepted owner is named as it was, and a folder with
// anything else in that file is not opened for another job.
#include "tests/fuzz/support/fuzzing.h"
#include "tests/support/memory_file_system.h"
#include "worker-sidecar/storage/checkpoint_root.h"
#include "worker-sidecar/storage/files.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace rekindle;
  MemoryFileSystem files;
  RK_ASSERT(files.mkdir("/checkpoints", 0770) == 0);
  RK_ASSERT(files.mkdir("/checkpoints/team-a.digits", 0770) == 0);
  RK_ASSERT(write_new_file(files, "/checkpoints/team-a.digits/job.json", text_of(data, bytes)).has_value());
  const Result<JobIdentity> owner = read_job_file(files, "/checkpoints/team-a.digits");
  const Result<JobFolder> opened =
      open_job_folder(files, {.root = "/checkpoints", .job = {"team-a", "digits", "5f1c"}, .nonce = "n0"});
  if (owner) {
    RK_ASSERT(owner->namespace_name.size() <= bytes && owner->name.size() <= bytes);
    RK_ASSERT(opened.has_value() == (owner->namespace_name == "team-a" && owner->name == "digits"));
  } else {
    expect_sentence(owner.error());
    RK_ASSERT(!opened.has_value());
  }
  return 0;
}
