// Text for a descriptor whose reader may stand still: a pipe to a pager, a halted terminal, a disk
// that hangs. write() never waits; a thread of its own does. So what is said can be lost, and who
// says it goes on.
//
// Promises: texts come out whole and in order, or not at all; where some are missing a notice tells
// how many. A reader that has gone costs the text and nothing else. Memory: `bytes_max` and one
// text. Threads: any; the thread takes no signals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "common/base/instant.h"
#include "common/system/file_descriptor.h"

namespace rekindle {

class OutputQueue {
 public:
  // The text that stands where others were dropped.
  using Notice = std::string (*)(std::uint64_t dropped);

  // What a process that ends gives a reader to take what is left.
  static constexpr Duration kPatienceAtEnd = std::chrono::seconds(1);

  OutputQueue(FileDescriptor file, std::size_t bytes_max, Notice notice);
  // Flushes for kPatienceAtEnd at most; a write that hangs is left to itself, with the descriptor.
  ~OutputQueue();
  OutputQueue(const OutputQueue&) = delete;
  OutputQueue& operator=(const OutputQueue&) = delete;

  // Drops the text when the queue is full.
  void write(std::string text);

  // For who can wait with what it has (the output of a process stays in its pipe): false while a
  // slow reader has much before it. True again once the reader has taken nothing for a second, so
  // that nobody waits for one that stands still.
  bool has_room() const;

  // Waits until all is written; false when it was not within `limit`.
  bool flush(Duration limit) const;

 private:
  struct State;
  // Shared with the thread, which may outlive this.
  std::shared_ptr<State> state_;
};

}  // namespace rekindle
