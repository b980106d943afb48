// A bounded queue from many threads to one owner thread. The owner takes everything at once; a full
// mailbox makes senders wait (push) or tells them (try_push), so memory stays bounded whatever the
// outside does.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <stop_token>
#include <utility>

namespace rekindle {

template <typename T>
class Mailbox {
 public:
  explicit Mailbox(std::size_t capacity) : capacity_(capacity) {}

  // Waits for room. False when the mailbox is closed; the item is dropped then.
  bool push(T item) {
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [&] { return closed_ || items_.size() < capacity_; });
    if (closed_) return false;
    items_.push_back(std::move(item));
    not_empty_.notify_one();
    return true;
  }

  // The same, and gives up (false) when `stop` is requested.
  bool push(T item, std::stop_token stop) {
    std::stop_callback wake(stop, [this] {
      const std::lock_guard lock(mutex_);
      not_full_.notify_all();
    });
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [&] { return closed_ || stop.stop_requested() || items_.size() < capacity_; });
    if (closed_ || stop.stop_requested()) return false;
    items_.push_back(std::move(item));
    not_empty_.notify_one();
    return true;
  }

  // For tests: fills a mailbox to its brim without waiting.
  bool try_push(T item) {
    const std::lock_guard lock(mutex_);
    if (closed_ || items_.size() >= capacity_) return false;
    items_.push_back(std::move(item));
    not_empty_.notify_one();
    return true;
  }

  // Takes all items, waiting at most `timeout` for the first. Empty after a timeout or when closed
  // and drained.
  std::deque<T> take_all(std::chrono::nanoseconds timeout) {
    std::unique_lock lock(mutex_);
    not_empty_.wait_for(lock, timeout, [&] { return closed_ || !items_.empty(); });
    std::deque<T> taken;
    taken.swap(items_);
    not_full_.notify_all();
    return taken;
  }

  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    not_empty_.notify_all();
    not_full_.notify_all();
  }

  bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  const std::size_t capacity_;

  mutable std::mutex mutex_;
  std::condition_variable not_empty_;
  std::condition_variable not_full_;
  std::deque<T> items_;  // guarded by mutex_
  bool closed_ = false;  // guarded by mutex_
};

}  // namespace rekindle
