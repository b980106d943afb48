// rk_cuda_memory on the machine as it is: with a driver it moves real bytes, without one it says
// so. The stand-in's tests are cuda_stand_in_test.cc.
#include "worker-sidecar/runtime/src/cuda_memory.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/temporary_folder.h"

namespace rekindle::runtime {
namespace {

using ::testing::HasSubstr;

bool has_driver() { return ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) != nullptr; }

TEST(CudaMemory, WithoutADriverIsUnavailableAndSaysWhatToDo) {
  if (has_driver()) GTEST_SKIP() << "this machine has a CUDA driver";
  rk_memory memory{.struct_size = sizeof(rk_memory)};
  EXPECT_EQ(rk_cuda_memory(0, &memory), RK_ERROR_UNAVAILABLE);
  EXPECT_THAT(rk_last_error(), HasSubstr("libcuda.so.1"));
  EXPECT_THAT(rk_last_error(), HasSubstr("NVIDIA driver"));
  EXPECT_EQ(memory.copy_out, nullptr);
}

TEST(CudaMemory, OfARealDeviceSurvivesACheckpoint) {
  const Outcome<rk_memory> memory = cuda_memory(0);
  if (!memory) GTEST_SKIP() << "no CUDA device to try it on: " << memory.error().message;
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  const auto set_current = reinterpret_cast<int (*)(void*)>(::dlsym(driver, "cuCtxSetCurrent"));
  const auto retain = reinterpret_cast<int (*)(void**, int)>(::dlsym(driver, "cuDevicePrimaryCtxRetain"));
  const auto allocate = reinterpret_cast<int (*)(std::uint64_t*, std::size_t)>(::dlsym(driver, "cuMemAlloc_v2"));
  void* context = nullptr;
  ASSERT_EQ(retain(&context, 0), 0);
  ASSERT_EQ(set_current(context), 0);
  constexpr std::size_t kBytes = 9u << 20;  // more than one copy at a time
  std::uint64_t address = 0;
  ASSERT_EQ(allocate(&address, kBytes), 0);
  ASSERT_EQ(set_current(nullptr), 0);
  void* const device = reinterpret_cast<void*>(address);
  std::string pattern(kBytes, '\0');
  for (std::size_t i = 0; i < kBytes; ++i) pattern[i] = static_cast<char>(i * 2654435761u >> 13);

  const TemporaryFolder root;
  const rk_options options{.struct_size = sizeof(rk_options), .checkpoint_dir = root.path().c_str()};
  const auto open = [&](rk_position& position) {
    rk_session* session = nullptr;
    EXPECT_EQ(rk_open(&options, &session), RK_OK) << rk_last_error();
    const rk_tensor tensor{.struct_size = sizeof(rk_tensor),
                           .name = "w",
                           .data = device,
                           .memory = &*memory,
                           .dtype = RK_U8,
                           .rank = 1,
                           .shape = {kBytes}};
    EXPECT_EQ(rk_register(session, &tensor), RK_OK) << rk_last_error();
    EXPECT_EQ(rk_restore(session, &position), RK_OK) << rk_last_error();
    return session;
  };
  rk_position position{.struct_size = sizeof(rk_position)};
  rk_session* session = open(position);
  ASSERT_EQ(rk_step_begin(session, 1), RK_OK);
  ASSERT_EQ(rk_update_begin(session), RK_OK) << rk_last_error();
  ASSERT_EQ(memory->copy_in(memory->context, device, pattern.data(), kBytes), 0);
  ASSERT_EQ(rk_update_end(session), RK_OK);
  ASSERT_EQ(rk_checkpoint(session), RK_OK) << rk_last_error();
  EXPECT_EQ(rk_close(session), 0);
  const std::string zeros(kBytes, '\0');
  ASSERT_EQ(memory->copy_in(memory->context, device, zeros.data(), kBytes), 0);
  session = open(position);
  EXPECT_EQ(position.step, 1u);
  EXPECT_EQ(rk_close(session), 0);
  std::string found(kBytes, '\0');
  ASSERT_EQ(memory->copy_out(memory->context, found.data(), device, kBytes), 0);
  EXPECT_TRUE(found == pattern);
}

}  // namespace
}  // namespace rekindle::runtime
