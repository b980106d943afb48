#include "worker-sidecar/runtime/src/cuda_memory.h"

#include <dlfcn.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "common/base/format.h"

namespace rekindle::runtime {
namespace {

constexpr const char* kDriver = "libcuda.so.1";

// The part of the driver API that is used, as its header declares it.
using CudaAnswer = int;  // CUresult; 0 is success
using CudaAddress = std::uint64_t;
using CudaContext = void*;
using CudaStream = void*;
constexpr unsigned kStreamOfItsOwn = 1;  // CU_STREAM_NON_BLOCKING: waits for no other stream

struct CudaDriver {
  CudaAnswer (*init)(unsigned flags) = nullptr;
  CudaAnswer (*device_count)(int* count) = nullptr;
  CudaAnswer (*device_get)(int* device, int ordinal) = nullptr;
  CudaAnswer (*retain_primary_context)(CudaContext* context, int device) = nullptr;
  CudaAnswer (*current_context)(CudaContext* context) = nullptr;
  CudaAnswer (*set_current_context)(CudaContext context) = nullptr;
  CudaAnswer (*create_stream)(CudaStream* stream, unsigned flags) = nullptr;
  CudaAnswer (*copy_to_host)(void* to, CudaAddress from, std::size_t bytes, CudaStream stream) = nullptr;
  CudaAnswer (*copy_to_device)(CudaAddress to, const void* from, std::size_t bytes, CudaStream stream) = nullptr;
  CudaAnswer (*wait_for_stream)(CudaStream stream) = nullptr;
  CudaAnswer (*wait_for_context)() = nullptr;
  CudaAnswer (*error_name)(CudaAnswer answer, const char** name) = nullptr;

  std::string describe(CudaAnswer answer) const {
    const char* name = nullptr;
    if (error_name(answer, &name) != 0 || name == nullptr) return format("error {}", answer);
    return format("{} ({})", name, answer);
  }
};

Outcome<CudaDriver> load_driver() {
  void* const library = ::dlopen(kDriver, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    return refuse(RK_ERROR_UNAVAILABLE, format("the CUDA driver cannot be loaded: {}; run on a machine with an "
                                               "NVIDIA driver, or give copy functions of your own in "
                                               "rk_memory",
                                               why != nullptr ? why : kDriver));
  }
  CudaDriver driver;
  const char* missing = nullptr;
  const auto find = [&](auto& function, const char* name) {
    void* const symbol = ::dlsym(library, name);
    if (symbol == nullptr) missing = name;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
  find(driver.init, "cuInit");
  find(driver.device_count, "cuDeviceGetCount");
  find(driver.device_get, "cuDeviceGet");
  find(driver.retain_primary_context, "cuDevicePrimaryCtxRetain");
  find(driver.current_context, "cuCtxGetCurrent");
  find(driver.set_current_context, "cuCtxSetCurrent");
  find(driver.create_stream, "cuStreamCreate");
  find(driver.copy_to_host, "cuMemcpyDtoHAsync_v2");
  find(driver.copy_to_device, "cuMemcpyHtoDAsync_v2");
  find(driver.wait_for_stream, "cuStreamSynchronize");
  find(driver.wait_for_context, "cuCtxSynchronize");
  find(driver.error_name, "cuGetErrorName");
  if (missing != nullptr)
    return refuse(RK_ERROR_UNAVAILABLE, format("{} has no function {}; use a newer driver", kDriver, missing));
  if (const CudaAnswer answer = driver.init(0); answer != 0) {
    return refuse(RK_ERROR_UNAVAILABLE,
                  format("the CUDA driver does not start: {}; check that nvidia-smi works in this container",
                         driver.describe(answer)));
  }
  return driver;
}

struct CudaDevice {
  CudaDriver driver;
  CudaContext context = nullptr;
  CudaStream stream = nullptr;

  // Calls `work` with the device's context current on this thread, and puts back what was current.
  template <typename Work>
  CudaAnswer with_context(Work&& work) const {
    CudaContext before = nullptr;
    if (const CudaAnswer answer = driver.current_context(&before); answer != 0) return answer;
    if (before != context) {
      if (const CudaAnswer answer = driver.set_current_context(context); answer != 0) return answer;
    }
    const CudaAnswer answer = work();
    if (before != context) driver.set_current_context(before);
    return answer;
  }
};

CudaAddress address_of(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

// On a stream of our own: on the others a collective may hang whose other end has died, and that is
// when state is to be saved.
int copy_out(void* context, void* to_host, const void* from, std::size_t bytes) {
  const auto& device = *static_cast<const CudaDevice*>(context);
  return device.with_context([&] {
    const CudaAnswer answer = device.driver.copy_to_host(to_host, address_of(from), bytes, device.stream);
    return answer != 0 ? answer : device.driver.wait_for_stream(device.stream);
  });
}

// What the program has enqueued before (filling with zeros, for example) must not come after the
// copy.
int copy_in(void* context, void* to, const void* from_host, std::size_t bytes) {
  const auto& device = *static_cast<const CudaDevice*>(context);
  return device.with_context([&] {
    if (const CudaAnswer answer = device.driver.wait_for_context(); answer != 0) return answer;
    const CudaAnswer answer = device.driver.copy_to_device(address_of(to), from_host, bytes, device.stream);
    return answer != 0 ? answer : device.driver.wait_for_stream(device.stream);
  });
}

int wait(void* context) {
  const auto& device = *static_cast<const CudaDevice*>(context);
  return device.with_context([&] { return device.driver.wait_for_context(); });
}

Outcome<std::unique_ptr<CudaDevice>> open_device(std::int32_t ordinal) {
  Outcome<CudaDriver> driver = load_driver();
  if (!driver) return std::unexpected(driver.error());
  int count = 0;
  if (const CudaAnswer answer = driver->device_count(&count); answer != 0) {
    return refuse(RK_ERROR_UNAVAILABLE,
                  format("the CUDA driver does not say how many devices there are: {}", driver->describe(answer)));
  }
  if (ordinal < 0 || ordinal >= count) {
    return refuse(RK_ERROR_ARGUMENT,
                  format("there is no CUDA device {}; this process sees {} of them, counted from 0", ordinal, count));
  }
  auto device = std::make_unique<CudaDevice>(CudaDevice{.driver = *driver});
  int handle = 0;
  CudaAnswer answer = driver->device_get(&handle, ordinal);
  if (answer == 0) answer = driver->retain_primary_context(&device->context, handle);
  if (answer == 0)
    answer = device->with_context([&] { return driver->create_stream(&device->stream, kStreamOfItsOwn); });
  if (answer != 0)
    return refuse(RK_ERROR_UNAVAILABLE, format("CUDA device {} cannot be used: {}", ordinal, driver->describe(answer)));
  return device;
}

}  // namespace

Outcome<rk_memory> cuda_memory(std::int32_t device) {
  // Opened once, kept for good: tensors may lie there until the process ends, also after the
  // session.
  static std::mutex mutex;
  static auto& devices = *new std::map<std::int32_t, std::unique_ptr<CudaDevice>>;
  const std::lock_guard held(mutex);
  auto known = devices.find(device);
  if (known == devices.end()) {
    Outcome<std::unique_ptr<CudaDevice>> opened = open_device(device);
    if (!opened) return std::unexpected(opened.error());
    known = devices.emplace(device, *std::move(opened)).first;
  }
  return rk_memory{.struct_size = sizeof(rk_memory),
                   .context = known->second.get(),
                   .copy_out = copy_out,
                   .copy_in = copy_in,
                   .wait = wait,
                   .reserved = {}};
}

}  // namespace rekindle::runtime
