// The two futex calls that a gate needs. They are the shared kind: the other side waits in another
// process.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/base/instant.h"

namespace rekindle::runtime {

// Returns when another thread woke the word, when it no longer has this value, after `time_max`, or
// for no reason at all: the caller checks again.
void wait_on_shared_word(std::atomic<std::uint32_t>& word, std::uint32_t value, Duration time_max) noexcept;

void wake_shared_word(std::atomic<std::uint32_t>& word) noexcept;

}  // namespace rekindle::runtime
