// rk_cuda_memory with a driver that the tests have built, which keeps "device" memory where the
// processor cannot reach it.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <string>

#include "common/base/format.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/temporary_folder.h"
#include "worker-sidecar/runtime/include/rekindle.h"

namespace rekindle::runtime {
namespace {

using ::testing::HasSubstr;

struct Counts {
  int retained, copies_out, copies_in, synchronized, fail_with;
};

// Loaded before the library looks for it under the same name, as any other library of the process
// would be.
class OnAStandInDriver : public ::testing::Test {
 protected:
  OnAStandInDriver() : driver(::dlopen(REKINDLE_CUDA_STAND_IN, RTLD_NOW | RTLD_LOCAL)) {
    if (driver == nullptr) throw std::runtime_error(::dlerror());
    counts = function<Counts*>("stand_in_counts");
    *counts = {};
    options.checkpoint_dir = root.path().c_str();
  }
  template <typename Pointer>
  Pointer function(const char* name) const {
    return reinterpret_cast<Pointer>(::dlsym(driver, name));
  }
  rk_memory memory_of(std::int32_t device) {
    rk_memory memory{.struct_size = sizeof(rk_memory)};
    EXPECT_EQ(rk_cuda_memory(device, &memory), RK_OK) << rk_last_error();
    return memory;
  }
  void* allocate(std::size_t bytes) const {
    std::uint64_t address = 0;
    EXPECT_EQ(function<int (*)(std::uint64_t*, std::size_t)>("cuMemAlloc_v2")(&address, bytes), 0);
    return reinterpret_cast<void*>(address);
  }
  void* current_context() const {
    void* context = nullptr;
    function<int (*)(void**)>("cuCtxGetCurrent")(&context);
    return context;
  }

  TemporaryFolder root;
  rk_options options{.struct_size = sizeof(rk_options)};
  void* driver;
  Counts* counts = nullptr;
};

TEST_F(OnAStandInDriver, ADeviceThatDoesNotExistIsNamed) {
  rk_memory memory{.struct_size = sizeof(rk_memory)};
  EXPECT_EQ(rk_cuda_memory(2, &memory), RK_ERROR_ARGUMENT);
  EXPECT_THAT(rk_last_error(), HasSubstr("no CUDA device 2; this process sees 2"));
  EXPECT_EQ(rk_cuda_memory(-1, &memory), RK_ERROR_ARGUMENT);
  EXPECT_EQ(rk_cuda_memory(0, nullptr), RK_ERROR_ARGUMENT);
  memory.struct_size = 0;
  EXPECT_EQ(rk_cuda_memory(0, &memory), RK_ERROR_ARGUMENT);
  EXPECT_EQ(memory.copy_out, nullptr) << "untouched on failure";
}

TEST_F(OnAStandInDriver, ADriverThatDoesNotStartIsSaidWithItsError) {
  counts->fail_with = 719;
  rk_memory memory{.struct_size = sizeof(rk_memory)};
  EXPECT_EQ(rk_cuda_memory(1, &memory), RK_ERROR_UNAVAILABLE);
  EXPECT_THAT(rk_last_error(), HasSubstr("CUDA_ERROR_LAUNCH_FAILED (719)"));
}

TEST_F(OnAStandInDriver, TheContextIsKeptOncePerDeviceAndIsNobodyElsesAfterwards) {
  const rk_memory first = memory_of(0);
  const rk_memory again = memory_of(0);
  EXPECT_EQ(first.context, again.context);
  EXPECT_LE(counts->retained, 1);
  char host[8] = {};
  void* const address = allocate(8);
  EXPECT_EQ(first.copy_in(first.context, address, "seven b", 8), 0);
  EXPECT_EQ(first.copy_out(first.context, host, address, 8), 0);
  EXPECT_STREQ(host, "seven b");
  EXPECT_EQ(current_context(), nullptr) << "the thread's context is put back";
  EXPECT_EQ(counts->synchronized, 1) << "only a copy to the device waits for the work of others";
}

TEST_F(OnAStandInDriver, TensorsOfTheDeviceAreSavedAndRestored) {
  const rk_memory memory = memory_of(0);
  void* const address = allocate(24);
  const auto run = [&](const std::string& fill) {
    rk_session* session = nullptr;
    EXPECT_EQ(rk_open(&options, &session), RK_OK) << rk_last_error();
    const rk_tensor tensor{.struct_size = sizeof(rk_tensor),
                           .name = "w",
                           .data = address,
                           .memory = &memory,
                           .dtype = RK_U8,
                           .rank = 1,
                           .shape = {24}};
    EXPECT_EQ(rk_register(session, &tensor), RK_OK) << rk_last_error();
    rk_position position{.struct_size = sizeof(rk_position)};
    EXPECT_EQ(rk_restore(session, &position), RK_OK) << rk_last_error();
    if (!fill.empty()) {
      EXPECT_EQ(rk_step_begin(session, 1), RK_OK);
      EXPECT_EQ(rk_update_begin(session), RK_OK);
      memory.copy_in(memory.context, address, fill.data(), fill.size());
      EXPECT_EQ(rk_update_end(session), RK_OK);
      EXPECT_EQ(rk_checkpoint(session), RK_OK) << rk_last_error();
    }
    rk_close(session);
    return position.step;
  };
  EXPECT_EQ(run("what the device computes"), 0u);
  const std::string zeros(24, '\0');
  memory.copy_in(memory.context, address, zeros.data(), zeros.size());
  EXPECT_EQ(run(""), 1u);
  std::string found(24, '\0');
  memory.copy_out(memory.context, found.data(), address, found.size());
  EXPECT_EQ(found, "what the device computes");
}

TEST_F(OnAStandInDriver, ColumnsOfSeveralRanksArePutTogetherInFewCopies) {
  // Four ranks had a column each: 1,000 rows of 4 bytes that lie 16 apart in the whole.
  constexpr std::uint64_t kRows = 1'000;
  const JobIdentity job{.namespace_name = "local", .name = "columns"};
  const Result<JobFolder> opened =
      open_job_folder(real_file_system(), {.root = root.path(), .job = job, .nonce = "n0"});
  ASSERT_TRUE(opened) << opened.error().message;
  const std::string folder =
      *create_checkpoint_folder(real_file_system(), opened->path, {.attempt = 1, .step = 7, .nonce = "abc"});
  Manifest manifest{.job = job, .attempt = 1, .step = 7, .term = 1, .world_size = 4, .live_ranks = 4};
  const std::string whole = make_bytes(kRows * 16, 5);
  std::deque<Layout> layouts;
  std::vector<WrittenStripe> stripes;
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    const TensorDescription& tensor =
        layouts.emplace_back(Layout{{{"w", Dtype::u16, {kRows, 2}, {kRows, 8}, {0, 2 * rank}}}}).tensors[0];
    std::string column;
    for (std::uint64_t row = 0; row < kRows; ++row) column += whole.substr(row * 16 + rank * 4, 4);
    const MemoryPiece piece{.entry = entry_of_piece(tensor, 0, kRows), .data = column.data()};
    const Result<WrittenDataFile> written =
        write_data_file(real_file_system(), format("{}/{}", opened->path, folder), rank_file_name(rank), {&piece, 1});
    ASSERT_TRUE(written) << written.error().message;
    const DataEntry& entry = written->entries[0];
    WrittenFile report{.file = rank_file_name(rank),
                       .bytes = written->bytes,
                       .hash = written->hash,
                       .chunks = written->chunks,
                       .entries = {}};
    report.entries.push_back({.key = entry.key,
                              .tensor = "w",
                              .begin_row = 0,
                              .end_row = kRows,
                              .begin_byte = entry.begin_byte,
                              .end_byte = entry.end_byte});
    stripes.push_back({&layouts.back(), std::move(report)});
  }
  ASSERT_TRUE(add_tensors(manifest, stripes));
  ASSERT_TRUE(publish_manifest(real_file_system(), opened->path, folder, manifest, "abc"));

  const rk_memory memory = memory_of(0);
  void* const address = allocate(whole.size());
  options.job = "columns";
  rk_session* session = nullptr;
  ASSERT_EQ(rk_open(&options, &session), RK_OK) << rk_last_error();
  const rk_tensor tensor{.struct_size = sizeof(rk_tensor),
                         .name = "w",
                         .data = address,
                         .memory = &memory,
                         .dtype = RK_U16,
                         .rank = 2,
                         .shape = {kRows, 8}};
  ASSERT_EQ(rk_register(session, &tensor), RK_OK) << rk_last_error();
  rk_position position{.struct_size = sizeof(rk_position)};
  ASSERT_EQ(rk_restore(session, &position), RK_OK) << rk_last_error();
  EXPECT_EQ(position.step, 7u);
  EXPECT_EQ(counts->copies_in, 4) << "one for each file, not for each row";
  EXPECT_EQ(counts->copies_out, 4) << "of what lies between the rows";
  std::string found(whole.size(), '\0');
  memory.copy_out(memory.context, found.data(), address, found.size());
  EXPECT_TRUE(found == whole);
  rk_close(session);
}

TEST_F(OnAStandInDriver, WorkThatFailedOnTheDeviceStopsTheUpdateWithItsNumber) {
  const rk_memory memory = memory_of(0);
  rk_session* session = nullptr;
  ASSERT_EQ(rk_open(&options, &session), RK_OK);
  const rk_tensor tensor{.struct_size = sizeof(rk_tensor),
                         .name = "w",
                         .data = allocate(8),
                         .memory = &memory,
                         .dtype = RK_U8,
                         .rank = 1,
                         .shape = {8}};
  ASSERT_EQ(rk_register(session, &tensor), RK_OK);
  rk_position position{.struct_size = sizeof(rk_position)};
  ASSERT_EQ(rk_restore(session, &position), RK_OK);
  ASSERT_EQ(rk_step_begin(session, 1), RK_OK);
  counts->fail_with = 719;
  EXPECT_EQ(rk_update_begin(session), RK_ERROR_STATE);
  EXPECT_THAT(rk_last_error(), HasSubstr("returned 719"));
  rk_close(session);
}

TEST_F(OnAStandInDriver, StateIsReadAlsoWhileOtherWorkOfTheDeviceDoesNotEnd) {
  const rk_memory memory = memory_of(0);
  void* const address = allocate(4);
  ASSERT_EQ(memory.copy_in(memory.context, address, "live", 4), 0);
  counts->fail_with = 719;  // who waits for the whole context does not come back with success
  std::string found(4, '\0');
  EXPECT_EQ(memory.copy_out(memory.context, found.data(), address, 4), 0);
  EXPECT_EQ(found, "live");
  EXPECT_EQ(memory.wait(memory.context), 719);
}

}  // namespace
}  // namespace rekindle::runtime
