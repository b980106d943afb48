#include "worker-sidecar/storage/helpers.h"

#include <system_error>
#include <thread>
#include <vector>

#include "common/system/signals.h"

namespace rekindle {

void run_with_helpers(unsigned count, const std::function<void(unsigned)>& work) {
  std::vector<std::jthread> helpers;
  if (count > 1) {
    const AllSignalsBlocked blocked;
    try {
      for (unsigned index = 1; index < count; ++index) helpers.emplace_back([&work, index] { work(index); });
    } catch (const std::system_error&) {
      // No more threads: those that are there do it.
    }
  }
  work(0);
}

}  // namespace rekindle
