#include <atomic>

#include "tests/fuzz/support/cost.h"

// Of the sanitizers' runtime.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*, std::size_t),
                                                         void (*on_free)(const volatile void*));
extern "C" std::size_t __sanitizer_get_allocated_size(const volatile void* place);

namespace rekindle {
namespace {

// A watch at a time. Threads of the fuzzer itself may allocate beside it.
std::atomic<bool> watching{false};
std::atomic<std::int64_t> held{0};
std::atomic<std::int64_t> peak{0};

void on_malloc(const volatile void*, std::size_t bytes) {
  if (!watching) return;
  const std::int64_t now = held += static_cast<std::int64_t>(bytes);
  if (now > peak) peak = now;
}

void on_free(const volatile void* place) {
  if (watching && place != nullptr) held -= static_cast<std::int64_t>(__sanitizer_get_allocated_size(place));
}

}  // namespace

HeapWatch::HeapWatch() {
  static const int installed = __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
  RK_ASSERT(installed != 0);
  held = 0;
  peak = 0;
  watching = true;
}

HeapWatch::~HeapWatch() { watching = false; }

std::size_t HeapWatch::peak_bytes() const { return static_cast<std::size_t>(peak.load()); }

}  // namespace rekindle
