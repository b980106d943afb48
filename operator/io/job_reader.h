// The Job of a pod that is being admitted: what the watch has shown, else a GET, since pods may
// come before the watch. Every pod in the cluster may ask about Jobs that there are not, so only
// few are read at once: the API client's rate and the webhooks' workers are for others as well.
// Thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <semaphore>

#include "operator/admission/pod_admission.h"
#include "operator/io/job_cache.h"
#include "operator/io/transport.h"

namespace rekindle::op {

class JobReader {
 public:
  static constexpr std::ptrdiff_t kReadsMax = 8;

  // Both must outlive the reader.
  JobReader(const JobCache& jobs, KubeTransport& transport) : jobs_(jobs), transport_(transport) {}

  // Null when it could not be had, also because others are being read: the pod is made anew later.
  std::shared_ptr<const Job> find(const PodOwner& owner);

 private:
  const JobCache& jobs_;
  KubeTransport& transport_;
  std::counting_semaphore<kReadsMax> reads_{kReadsMax};
};

}  // namespace rekindle::op
