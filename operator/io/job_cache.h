// The jobs that the owner thread knows, for the webhook's threads: a copy behind a lock, written by
// one, read by many.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "operator/kube/object_key.h"
#include "operator/model/job.h"

namespace rekindle::op {

class JobCache {
 public:
  void put(const ObjectKey& key, std::shared_ptr<const Job> job) {
    const std::lock_guard lock(mutex_);
    if (job) {
      jobs_[key] = std::move(job);
    } else {
      jobs_.erase(key);
    }
  }

  // Null when there is none.
  std::shared_ptr<const Job> get(const ObjectKey& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = jobs_.find(key);
    return found == jobs_.end() ? nullptr : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<ObjectKey, std::shared_ptr<const Job>> jobs_;  // guarded by mutex_
};

}  // namespace rekindle::op
