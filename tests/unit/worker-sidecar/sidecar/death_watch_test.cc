#include "worker-sidecar/sidecar/death_watch.h"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <semaphore>

#include "worker-sidecar/protocol/control_block.h"

namespace rekindle::sidecar {
namespace {

using namespace std::chrono_literals;

// A control block that parent and child share.
class SharedBlock {
 public:
  SharedBlock()
      : block_(static_cast<ControlBlock*>(
            ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~SharedBlock() { ::munmap(block_, 4096); }
  ControlBlock* operator->() { return block_; }

 private:
  ControlBlock* block_;
};

// A process whose only thread has the futex on its robust list, as the library does.
pid_t start_owner(SharedBlock& block) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  struct Node {
    robust_list list;
  };
  static robust_list_head head;
  static Node node;
  node.list.next = &head.list;
  head.list.next = &node.list;
  head.futex_offset = reinterpret_cast<char*>(&block->owner) - reinterpret_cast<char*>(&node.list);
  head.list_op_pending = nullptr;
  ::syscall(SYS_set_robust_list, &head, sizeof head);
  block->owner = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  block->owner_ready = 1;
  for (;;) ::pause();
}

TEST(DeathWatch, SeesAProcessThatIsKilled) {
  SharedBlock block;
  const pid_t owner = start_owner(block);
  std::binary_semaphore died(0);
  const DeathWatch watch(block->owner, block->owner_ready, [&] { died.release(); });
  while (block->owner_ready == 0) ::usleep(100);
  ::kill(owner, SIGKILL);
  EXPECT_TRUE(died.try_acquire_for(20s));
  ::waitpid(owner, nullptr, 0);
}

TEST(DeathWatch, SeesAProcessThatDiedBeforeTheWatchBegan) {
  SharedBlock block;
  const pid_t owner = start_owner(block);
  while (block->owner_ready == 0) ::usleep(100);
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  std::binary_semaphore died(0);
  const DeathWatch watch(block->owner, block->owner_ready, [&] { died.release(); });
  EXPECT_TRUE(died.try_acquire_for(20s));
}

TEST(DeathWatch, AnEndThatWasAnnouncedIsNoDeath) {
  SharedBlock block;
  block->owner = 4711;
  block->owner_ready = 1;
  bool died = false;
  {
    const DeathWatch watch(block->owner, block->owner_ready, [&] { died = true; });
    while ((block->owner & kFutexWaiters) == 0) ::usleep(100);
    block->owner = 0;
  }
  EXPECT_FALSE(died);
}

TEST(DeathWatch, EndsAtOnceWhileNobodyHasComeYet) {
  SharedBlock block;
  bool died = false;
  {
    const DeathWatch watch(block->owner, block->owner_ready, [&] { died = true; });
  }
  EXPECT_FALSE(died);
}

}  // namespace
}  // namespace rekindle::sidecar
