#include "worker-sidecar/storage/helpers.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

namespace rekindle {
namespace {

TEST(Helpers, AllAreThereAndHaveEndedWhenTheCallEnds) {
  std::mutex mutex;
  std::set<unsigned> indices;
  std::set<std::thread::id> threads;
  run_with_helpers(4, [&](unsigned index) {
    const std::lock_guard held(mutex);
    indices.insert(index);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(indices, (std::set<unsigned>{0, 1, 2, 3}));
  EXPECT_EQ(threads.size(), 4u);
}

TEST(Helpers, OneNeedsNoThread) {
  std::thread::id worker;
  run_with_helpers(1, [&](unsigned) { worker = std::this_thread::get_id(); });
  EXPECT_EQ(worker, std::this_thread::get_id());
}

TEST(Helpers, TakeNoSignalsAndLeaveTheCallersAsTheyWere) {
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  std::atomic<int> takes_signals = 0;
  run_with_helpers(3, [&](unsigned index) {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    if (index > 0 && (sigismember(&mask, SIGTERM) == 0 || sigismember(&mask, SIGINT) == 0)) ++takes_signals;
  });
  EXPECT_EQ(takes_signals, 0);
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
}

}  // namespace
}  // namespace rekindle
