#include "worker-sidecar/storage/helpers.h"

#include <pthread.h>
#include <signal.h>

#include <system_error>
#include <thread>
#include <vector>

namespace rekindle {

void run_with_helpers(unsigned count, const std::function<void(unsigned)>& work) {
  std::vector<std::jthread> helpers;
  if (count > 1) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      for (unsigned index = 1; index < count; ++index) helpers.emplace_back([&work, index] { work(index); });
    } catch (const std::system_error&) {
      // No more threads: those that are there do it.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  work(0);
}

}  // namespace rekindle
