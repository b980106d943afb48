#include "worker-sidecar/storage/ring_queue.h"

#include <liburing.h>

#include <cerrno>
#include <vector>

#include "common/base/assert.h"

namespace rekindle {
namespace {

// What both directions have in common.
class Ring {
 public:
  struct End {
    std::uint64_t tag = 0;
    std::int64_t result = 0;
  };

  explicit Ring(unsigned depth) : depth_(depth), result_(io_uring_queue_init(depth, &ring_, 0)) {}
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() {
    if (!works()) return;
    while (!under_way_.empty()) wait();
    io_uring_queue_exit(&ring_);
  }

  bool works() const { return result_ == 0; }

  // An entry to be filled and then submitted.
  io_uring_sqe* take_entry() {
    RK_ASSERT(under_way_.size() < depth_);
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    RK_ASSERT(entry != nullptr);
    return entry;
  }

  int submit(io_uring_sqe* entry, std::uint64_t tag) {
    io_uring_sqe_set_data64(entry, tag);
    int submitted;
    do {
      submitted = io_uring_submit(&ring_);
    } while (submitted == -EINTR || submitted == -EAGAIN);
    if (submitted < 0) return submitted;
    under_way_.push_back(tag);
    return 0;
  }

  End wait() {
    RK_ASSERT(!under_way_.empty());
    io_uring_cqe* entry = nullptr;
    int result;
    do {
      result = io_uring_wait_cqe(&ring_, &entry);
    } while (result == -EINTR || result == -EAGAIN);
    // The kernel will not say how any of them ended. The save or the restore fails then; the training process, in which this runs, does not.
    End end{.tag = under_way_.front(), .result = result < 0 ? result : -EIO};
    if (result == 0) {
      end = {.tag = io_uring_cqe_get_data64(entry), .result = entry->res};
      io_uring_cqe_seen(&ring_, entry);
    }
    std::erase(under_way_, end.tag);
    return end;
  }

 private:
  const unsigned depth_;
  std::vector<std::uint64_t> under_way_;  // their tags
  io_uring ring_{};
  const int result_;
};

class RingWriteQueue final : public WriteQueue {
 public:
  explicit RingWriteQueue(unsigned depth) : ring_(depth) {}
  bool works() const { return ring_.works(); }

  int begin(int descriptor, const void* data, std::size_t bytes, std::uint64_t offset, std::uint64_t tag) override {
    io_uring_sqe* const entry = ring_.take_entry();
    io_uring_prep_write(entry, descriptor, data, static_cast<unsigned>(bytes), offset);
    return ring_.submit(entry, tag);
  }
  WriteEnd wait() override {
    const Ring::End end = ring_.wait();
    return {.tag = end.tag, .result = end.result};
  }

 private:
  Ring ring_;
};

class RingReadQueue final : public ReadQueue {
 public:
  explicit RingReadQueue(unsigned depth) : ring_(depth) {}
  bool works() const { return ring_.works(); }

  int begin(int descriptor, void* data, std::size_t bytes, std::uint64_t offset, std::uint64_t tag) override {
    io_uring_sqe* const entry = ring_.take_entry();
    io_uring_prep_read(entry, descriptor, data, static_cast<unsigned>(bytes), offset);
    return ring_.submit(entry, tag);
  }
  ReadEnd wait() override {
    const Ring::End end = ring_.wait();
    return {.tag = end.tag, .result = end.result};
  }

 private:
  Ring ring_;
};

template <typename Queue>
std::unique_ptr<Queue> make_queue(unsigned depth) {
  auto queue = std::make_unique<Queue>(depth);
  if (!queue->works()) return nullptr;
  return queue;
}

}  // namespace

std::unique_ptr<WriteQueue> make_ring_write_queue(unsigned depth) { return make_queue<RingWriteQueue>(depth); }
std::unique_ptr<ReadQueue> make_ring_read_queue(unsigned depth) { return make_queue<RingReadQueue>(depth); }

}  // namespace rekindle
