// The functions of rekindle.h. The only place of the library that catches: nothing that is thrown
// inside crosses the ABI.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <utility>

#include "common/base/format.h"
#include "worker-sidecar/runtime/include/rekindle.h"
#include "worker-sidecar/runtime/src/c_struct.h"
#include "worker-sidecar/runtime/src/cuda_memory.h"
#include "worker-sidecar/runtime/src/last_error.h"
#include "worker-sidecar/runtime/src/open_options.h"
#include "worker-sidecar/runtime/src/session.h"
#include "worker-sidecar/runtime/src/version.h"

struct rk_session {
  std::unique_ptr<rekindle::runtime::Session> session;
};

namespace rekindle::runtime {
namespace {

// The one session of this process. Also what a handle is compared with, so that a closed or
// invented one is refused instead of used.
std::atomic<rk_session*> the_session = nullptr;

template <typename Call>
rk_status guarded(Call&& call) noexcept {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return remember_error(RK_ERROR_MEMORY, "out of memory; raise the memory limit of the container");
  } catch (const std::exception& error) {
    return remember_error(RK_ERROR_INTERNAL, error.what());
  } catch (...) {
    return remember_error(RK_ERROR_INTERNAL, "an error of an unknown kind; please report it");
  }
}

rk_status refuse_handle(rk_session* handle) {
  if (handle == nullptr) return remember_error(RK_ERROR_ARGUMENT, "the session is NULL; rk_open gives one");
  return remember_error(RK_ERROR_ARGUMENT, "this session is not open: it was closed, or never came from rk_open");
}

rk_status refuse_child() {
  return remember_error(RK_ERROR_STATE,
                        "this process was forked from the one that opened the session, which alone may use it");
}

// Calls with the session of a valid handle, in the process that opened it.
template <typename Call>
rk_status with_session(rk_session* handle, Call&& call) noexcept {
  return guarded([&]() -> rk_status {
    if (handle == nullptr || handle != the_session.load(std::memory_order_relaxed)) [[unlikely]]
      return refuse_handle(handle);
    if (handle->session->in_forked_child()) [[unlikely]]
      return refuse_child();
    return call(*handle->session);
  });
}

}  // namespace
}  // namespace rekindle::runtime

using rekindle::runtime::guarded;
using rekindle::runtime::remember_error;
using rekindle::runtime::Session;
using rekindle::runtime::the_session;
using rekindle::runtime::with_session;

extern "C" {

uint32_t rk_abi_version(void) { return RK_ABI_VERSION; }

const char* rk_version(void) { return rekindle::runtime::library_version(); }

const char* rk_status_name(rk_status status) { return rekindle::runtime::name_of(status); }

const char* rk_last_error(void) { return rekindle::runtime::last_error(); }

rk_status rk_open(const rk_options* options, rk_session** session) {
  return guarded([&]() -> rk_status {
    if (session == nullptr)
      return remember_error(RK_ERROR_ARGUMENT, "rk_open: session is NULL; give the address of a pointer");
    if (rk_session* const open = the_session.load()) {
      if (open->session->in_forked_child()) return rekindle::runtime::refuse_child();
      return remember_error(RK_ERROR_STATE, "a session is open already, and a process has one; close it first");
    }
    const rekindle::runtime::Outcome<rekindle::runtime::OpenOptions> read =
        rekindle::runtime::read_open_options(options, [](const char* name) { return std::getenv(name); });
    if (!read) return remember_error(read.error());
    rekindle::runtime::Outcome<std::unique_ptr<Session>> opened = Session::open(*read);
    if (!opened) return remember_error(opened.error());
    auto handle = std::make_unique<rk_session>(rk_session{.session = *std::move(opened)});
    the_session = *session = handle.release();
    return RK_OK;
  });
}

rk_status rk_register(rk_session* session, const rk_tensor* tensor) {
  return with_session(session, [&](Session& open) {
    if (tensor == nullptr) return remember_error(RK_ERROR_ARGUMENT, "rk_register: tensor is NULL");
    return open.add_tensor(*tensor);
  });
}

rk_status rk_move(rk_session* session, const char* name, void* data) {
  return with_session(session, [&](Session& open) { return open.move_tensor(name, data); });
}

rk_status rk_unregister(rk_session* session, const char* name) {
  return with_session(session, [&](Session& open) { return open.remove_tensor(name); });
}

rk_status rk_register_state(rk_session* session, const char* name, void* data, size_t bytes) {
  return with_session(session, [&](Session& open) { return open.add_state(name, data, bytes); });
}

rk_status rk_register_state_callback(rk_session* session, const char* name, size_t bytes_max,
                                     int64_t (*save)(void* context, void* to, size_t room),
                                     int (*load)(void* context, const void* from, size_t bytes), void* context) {
  return with_session(session, [&](Session& open) {
    return open.add_state(name, bytes_max, {.function = save, .context = context},
                          {.function = load, .context = context});
  });
}

rk_status rk_register_cursor(rk_session* session, rk_cursor* cursor) {
  return with_session(session, [&](Session& open) {
    if (cursor == nullptr) return remember_error(RK_ERROR_ARGUMENT, "rk_register_cursor: cursor is NULL");
    return open.add_cursor(cursor);
  });
}

rk_status rk_cuda_memory(int32_t device, rk_memory* memory) {
  return guarded([&]() -> rk_status {
    if (memory == nullptr) return remember_error(RK_ERROR_ARGUMENT, "rk_cuda_memory: memory is NULL");
    const rekindle::runtime::Outcome<rk_memory> checked = rekindle::runtime::read_struct(memory, "rk_memory");
    if (!checked) return remember_error(checked.error());
    rekindle::runtime::Outcome<rk_memory> found = rekindle::runtime::cuda_memory(device);
    if (!found) return remember_error(found.error());
    found->struct_size = checked->struct_size;
    std::memcpy(memory, &*found, std::min(checked->struct_size, sizeof(rk_memory)));
    return RK_OK;
  });
}

rk_status rk_restore(rk_session* session, rk_position* position) {
  return with_session(session, [&](Session& open) {
    if (position == nullptr) return remember_error(RK_ERROR_ARGUMENT, "rk_restore: position is NULL");
    return open.restore(*position);
  });
}

rk_status rk_rebuild(rk_session* session, rk_position* position) {
  return with_session(session, [&](Session& open) {
    if (position == nullptr) return remember_error(RK_ERROR_ARGUMENT, "rk_rebuild: position is NULL");
    return open.rebuild(*position);
  });
}

rk_status rk_step_begin(rk_session* session, uint64_t step) {
  return with_session(session, [&](Session& open) { return open.step_begin(step); });
}

rk_status rk_update_begin(rk_session* session) {
  return with_session(session, [](Session& open) { return open.update_begin(); });
}

rk_status rk_update_end(rk_session* session) {
  return with_session(session, [](Session& open) { return open.update_end(); });
}

rk_status rk_update_skip(rk_session* session) {
  return with_session(session, [](Session& open) { return open.update_skip(); });
}

rk_status rk_step_end(rk_session* session) {
  return with_session(session, [](Session& open) { return open.step_end(); });
}

rk_status rk_collective_failed(rk_session* session, const char* why) {
  return with_session(session, [&](Session& open) { return open.collective_failed(why); });
}

rk_status rk_checkpoint(rk_session* session) {
  return with_session(session, [](Session& open) { return open.checkpoint(); });
}

rk_status rk_set_phase(rk_session* session, rk_phase phase) {
  return with_session(session, [&](Session& open) { return open.set_phase(phase); });
}

int rk_close(rk_session* session) {
  if (session == nullptr) return 0;
  int exit_code = 0;
  const rk_status status = with_session(session, [&](Session& open) {
    exit_code = open.close();
    return RK_OK;
  });
  // In a forked child nothing is touched: the session is the parent's.
  if (status != RK_OK) return status;
  the_session = nullptr;
  delete session;
  return exit_code;
}

}  // extern "C"
