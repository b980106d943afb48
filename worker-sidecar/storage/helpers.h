// Threads that help a call along and end before it does.
#pragma once

#include <functional>

namespace rekindle {

// Runs `work(0)` on the calling thread and `work(1)` to `work(count - 1)` on threads of their own;
// returns when all have. They take no signals, which are for the threads of the program. Where the
// system gives no more threads, fewer run: those that run take on the work of all.
void run_with_helpers(unsigned count, const std::function<void(unsigned)>& work);

}  // namespace rekindle
