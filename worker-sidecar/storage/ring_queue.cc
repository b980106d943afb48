#include "worker-sidecar/storage/ring_queue.h"

#include <liburing.h>

#include <cerrno>
#include <vector>

#include "common/base/assert.h"

namespace rekindle {
namespace {

void prepare(io_uring_sqe* entry, int descriptor, const void* data, unsigned bytes, std::uint64_t offset) {
  io_uring_prep_write(entry, descriptor, data, bytes, offset);
}
void prepare(io_uring_sqe* entry, int descriptor, void* data, unsigned bytes, std::uint64_t offset) {
  io_uring_prep_read(entry, descriptor, data, bytes, offset);
}

template <typename Memory>
class RingQueue final : public TransferQueue<Memory> {
 public:
  explicit RingQueue(unsigned depth) : depth_(depth), result_(io_uring_queue_init(depth, &ring_, 0)) {}
  RingQueue(const RingQueue&) = delete;
  RingQueue& operator=(const RingQueue&) = delete;
  ~RingQueue() override {
    if (!works()) return;
    while (!under_way_.empty()) wait();
    io_uring_queue_exit(&ring_);
  }

  bool works() const { return result_ == 0; }

  int begin(int descriptor, Memory* data, std::size_t bytes, std::uint64_t offset, std::uint64_t tag) override {
    RK_ASSERT(under_way_.size() < depth_);
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    RK_ASSERT(entry != nullptr);
    prepare(entry, descriptor, data, static_cast<unsigned>(bytes), offset);
    io_uring_sqe_set_data64(entry, tag);
    int submitted;
    do {
      submitted = io_uring_submit(&ring_);
    } while (submitted == -EINTR || submitted == -EAGAIN);
    if (submitted < 0) return submitted;
    under_way_.push_back(tag);
    return 0;
  }

  TransferEnd wait() override {
    RK_ASSERT(!under_way_.empty());
    io_uring_cqe* entry = nullptr;
    int result;
    do {
      result = io_uring_wait_cqe(&ring_, &entry);
    } while (result == -EINTR || result == -EAGAIN);
    // The kernel will not say how any of them ended. The save or the restore fails then; the
    // training process, in which this runs, does not.
    TransferEnd end{.tag = under_way_.front(), .result = result < 0 ? result : -EIO};
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

template <typename Memory>
std::unique_ptr<TransferQueue<Memory>> make_queue(unsigned depth) {
  auto queue = std::make_unique<RingQueue<Memory>>(depth);
  if (!queue->works()) return nullptr;
  return queue;
}

}  // namespace

std::unique_ptr<WriteQueue> make_ring_write_queue(unsigned depth) { return make_queue<const void>(depth); }
std::unique_ptr<ReadQueue> make_ring_read_queue(unsigned depth) { return make_queue<void>(depth); }

}  // namespace rekindle
