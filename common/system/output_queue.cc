#include "common/system/output_queue.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "common/system/clock.h"
#include "common/system/signals.h"

namespace rekindle {
namespace {

// As much as a pipe takes by itself: who reads half of that in a second gets all of it at the end.
constexpr std::size_t kReadAheadBytes = 1u << 16;
constexpr Duration kStandsStill = std::chrono::seconds(1);

void write_all(int descriptor, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = ::write(descriptor, text.data() + done, text.size() - done);
    if (written > 0) {
      done += static_cast<std::size_t>(written);
    } else if (written < 0 && errno == EAGAIN) {  // others share it and made it so
      pollfd room{.fd = descriptor, .events = POLLOUT, .revents = 0};
      ::poll(&room, 1, -1);
    } else if (written == 0 || errno != EINTR) {
      return;  // nobody reads it
    }
  }
}

std::size_t cost_of(const std::string& text) { return text.size() + sizeof(std::string); }

}  // namespace

struct OutputQueue::State {
  // Constant after construction.
  FileDescriptor file;
  std::size_t bytes_max;
  Notice notice;
  bool threaded = true;

  std::mutex mutex;
  std::condition_variable changed;
  // All guarded by mutex.
  std::deque<std::string> waiting;
  std::size_t bytes = 0;
  std::uint64_t dropped = 0;
  std::optional<Instant> writing_since;
  bool over = false;

  bool idle() const { return waiting.empty() && dropped == 0 && !writing_since; }

  void push(std::string text) {
    bytes += cost_of(text);
    waiting.push_back(std::move(text));
  }

  void run() {
    std::unique_lock held(mutex);
    while (true) {
      changed.wait(held, [&] { return over || !waiting.empty() || dropped != 0; });
      if (waiting.empty() && dropped != 0) push(notice(std::exchange(dropped, 0)));
      if (waiting.empty()) return;
      const std::string text = std::move(waiting.front());
      waiting.pop_front();
      bytes -= cost_of(text);
      writing_since = monotonic_now();
      held.unlock();
      write_all(file.get(), text);
      held.lock();
      writing_since.reset();
      if (idle()) changed.notify_all();
    }
  }
};

OutputQueue::OutputQueue(FileDescriptor file, std::size_t bytes_max, Notice notice)
    : state_(std::make_shared<State>()) {
  state_->file = std::move(file);
  state_->bytes_max = bytes_max;
  state_->notice = notice;
  const AllSignalsBlocked blocked;
  try {
    std::thread([state = state_] { state->run(); }).detach();
  } catch (const std::system_error&) {
    state_->threaded = false;  // no thread to be had: what is said is written where it is said
  }
}

OutputQueue::~OutputQueue() {
  flush(kPatienceAtEnd);
  const std::lock_guard lock(state_->mutex);
  state_->over = true;
  state_->changed.notify_all();
}

void OutputQueue::write(std::string text) {
  if (!state_->threaded) return write_all(state_->file.get(), text);
  const std::lock_guard lock(state_->mutex);
  // Once full it stays so until half is written: one notice for many texts.
  const std::size_t limit = state_->dropped == 0 ? state_->bytes_max : state_->bytes_max / 2;
  if (state_->bytes + cost_of(text) > limit) {
    ++state_->dropped;
    return;
  }
  if (state_->dropped != 0) state_->push(state_->notice(std::exchange(state_->dropped, 0)));
  state_->push(std::move(text));
  state_->changed.notify_all();
}

bool OutputQueue::has_room() const {
  const std::lock_guard lock(state_->mutex);
  if (state_->bytes <= kReadAheadBytes) return true;
  return state_->writing_since && monotonic_now() - *state_->writing_since >= kStandsStill;
}

bool OutputQueue::flush(Duration limit) const {
  std::unique_lock held(state_->mutex);
  return state_->changed.wait_for(held, limit, [&] { return state_->idle(); });
}

}  // namespace rekindle
