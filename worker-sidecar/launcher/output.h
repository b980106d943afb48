// What the launcher prints: its own lines and, with --tag-output, those of the ranks. A terminal
// that is halted or a pager that waits holds no save: everything goes through queues with threads
// of their own. Any thread.
#pragma once

#include <string_view>

#include "common/system/output_queue.h"

namespace rekindle::launcher {

// 1 or 2. One queue where both lead to the same place, so that lines stay in their order.
OutputQueue& output_to(int descriptor);

// The sentence as a line of its own on standard error: "rekindle: ...".
void say(std::string_view sentence);

// Before an end that runs no destructors; a reader that stands still gets a second.
void flush_output();

}  // namespace rekindle::launcher
