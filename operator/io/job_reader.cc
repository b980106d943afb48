#include "operator/io/job_reader.h"

#include <utility>

#include "common/system/log.h"
#include "operator/io/api_client.h"
#include "operator/kube/requests.h"

namespace rekindle::op {

namespace {

// Gives the place of a read back, however it ends.
class Place {
 public:
  explicit Place(std::counting_semaphore<JobReader::kReadsMax>& places)
      : places_(places), taken_(places.try_acquire()) {}
  ~Place() {
    if (taken_) places_.release();
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  explicit operator bool() const { return taken_; }

 private:
  std::counting_semaphore<JobReader::kReadsMax>& places_;
  const bool taken_;
};

}  // namespace

std::shared_ptr<const Job> JobReader::find(const PodOwner& owner) {
  const ObjectKey key{owner.namespace_name, owner.job_name};
  // only if it is that very one
  if (auto job = jobs_.get(key); job && job->uid == owner.job_uid) return job;
  const Place place(reads_);
  if (!place) {
    log_debug("the job of a pod is not read: too many others are", {{"job", to_text(key)}});
    return nullptr;
  }
  const Result<Json> found = call_api(transport_, get_request(kJobs, key), "reading the job of a pod");
  if (!found) {
    log_warning("the job of a pod could not be read", {{"job", to_text(key)}, {"error", found.error().message}});
    return nullptr;
  }
  Result<Job> job = job_from_json(*found);
  if (!job) return nullptr;
  return std::make_shared<const Job>(std::move(*job));
}

}  // namespace rekindle::op
