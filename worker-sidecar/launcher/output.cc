#include "worker-sidecar/launcher/output.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "common/base/format.h"
#include "common/system/clock.h"

namespace rekindle::launcher {
namespace {

constexpr std::size_t kWaitingBytesMax = 4u << 20;

std::string notice_of(std::uint64_t dropped) {
  return format("rekindle: {} lines were dropped here, because nobody read this output\n", dropped);
}

bool lead_to_one_place() {
  struct stat out{};
  struct stat error{};
  return ::fstat(STDOUT_FILENO, &out) == 0 && ::fstat(STDERR_FILENO, &error) == 0 && out.st_dev == error.st_dev &&
         out.st_ino == error.st_ino;
}

// Never destroyed: the saver's threads may still say something while the process ends.
struct Queues {
  OutputQueue& error = *new OutputQueue(FileDescriptor(STDERR_FILENO), kWaitingBytesMax, notice_of);
  OutputQueue& out =
      lead_to_one_place() ? error : *new OutputQueue(FileDescriptor(STDOUT_FILENO), kWaitingBytesMax, notice_of);
};

const Queues& queues() {
  static const Queues& made = [] -> const Queues& {
    std::atexit(flush_output);
    return *new Queues;
  }();
  return made;
}

}  // namespace

OutputQueue& output_to(int descriptor) { return descriptor == STDOUT_FILENO ? queues().out : queues().error; }

void say(std::string_view sentence) { queues().error.write(format("rekindle: {}\n", sentence)); }

void flush_output() {
  const Instant until = monotonic_now() + OutputQueue::kPatienceAtEnd;
  queues().error.flush(until - monotonic_now());
  queues().out.flush(until - monotonic_now());
}

}  // namespace rekindle::launcher
