// A few threads that run blocking work in the order it came.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace rekindle::op {

class WorkerPool {
 public:
  explicit WorkerPool(std::size_t threads) {
    for (std::size_t i = 0; i < threads; ++i) {
      threads_.emplace_back([this](std::stop_token stop) { work(stop); });
    }
  }
  ~WorkerPool() { stop(); }

  // Lets what has begun finish and drops the rest, and all that is still given to it.
  void stop() {
    for (std::jthread& thread : threads_) thread.request_stop();
    threads_.clear();
  }

  void run(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    added_.notify_one();
  }

 private:
  void work(std::stop_token stop) {
    while (true) {
      std::function<void()> task;
      {
        std::unique_lock lock(mutex_);
        if (!added_.wait(lock, stop, [this] { return !tasks_.empty(); }) || stop.stop_requested()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any added_;
  std::deque<std::function<void()>> tasks_;  // guarded by mutex_
  std::vector<std::jthread> threads_;
};

}  // namespace rekindle::op
