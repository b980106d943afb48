// A few threads for what blocks on the storage, and the way back to the loop.
#pragma once

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/thread_pool.hpp>
#include <functional>
#include <utility>

namespace rekindle::sidecar {

// Threads: run() on the loop thread. The destructor waits for work that has begun; answers that
// come after it are dropped with the loop.
class DiskPool {
 public:
  DiskPool(asio::io_context& loop, std::size_t threads) : loop_(loop), pool_(threads) {}
  ~DiskPool() {
    pool_.stop();
    pool_.join();
  }

  // `work` on a pool thread, `then` with its result on the loop.
  template <typename Work, typename Then>
  void run(Work work, Then then) {
    asio::post(pool_, [&loop = loop_, work = std::move(work), then = std::move(then)]() mutable {
      auto result = work();
      asio::post(loop, [then = std::move(then), result = std::move(result)]() mutable { then(std::move(result)); });
    });
  }

 private:
  asio::io_context& loop_;
  asio::thread_pool pool_;
};

}  // namespace rekindle::sidecar
