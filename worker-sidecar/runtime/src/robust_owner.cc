#include "worker-sidecar/runtime/src/robust_owner.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "worker-sidecar/protocol/control_block.h"
#include "worker-sidecar/runtime/src/futex.h"

namespace rekindle::runtime {

Status RobustOwner::hold(std::atomic<std::uint32_t>& owner, std::atomic<std::uint32_t>& ready) {
  head_.list.next = &head_.list;
  // The kernel finds the futex at node + offset; the node lies in our own memory, the futex in the
  // shared one.
  head_.futex_offset = reinterpret_cast<char*>(&owner) - reinterpret_cast<char*>(&node_);
  head_.list_op_pending = nullptr;
  if (::syscall(SYS_set_robust_list, &head_, sizeof head_) != 0) {
    return fail_errno(errno, "the kernel does not take a robust list, so the end of this process is noticed later");
  }
  const auto thread_id = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  // A process that is killed between the two stores is found through the pending entry.
  head_.list_op_pending = &node_;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  owner.store(thread_id, std::memory_order_seq_cst);
  node_.next = &head_.list;
  head_.list.next = &node_;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  head_.list_op_pending = nullptr;
  owner_ = &owner;
  ready_ = &ready;
  ready.store(1, std::memory_order_release);
  return {};
}

void RobustOwner::release() {
  if (owner_ == nullptr) return;
  ready_->store(0, std::memory_order_release);
  head_.list.next = &head_.list;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if ((owner_->exchange(0, std::memory_order_seq_cst) & kFutexWaiters) != 0) wake_shared_word(*owner_);
  owner_ = nullptr;
  ready_ = nullptr;
}

}  // namespace rekindle::runtime
