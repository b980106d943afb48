// The one place that performs actions. It does those of one plan in order and stops at the first
// that fails for another reason than "already so"; the next plan finds what is left. Blocking; safe
// on several threads at once.
#pragma once

#include <vector>

#include "operator/io/certificate_store.h"
#include "operator/io/operator_input.h"
#include "operator/io/transport.h"

namespace rekindle::op {

class ActionRunner {
 public:
  // Both must outlive the runner. `instance` names this process in events (at most 128 bytes).
  ActionRunner(KubeTransport& transport, const CertificateStore& certificates, std::string instance);

  ActionsDone run(const ObjectKey& job, const std::string& job_uid, const std::vector<Action>& actions);

 private:
  Status perform(const CreateBreakpoint& action, ActionsDone& done);
  Status perform(const WriteBreakpointStatus& action, ActionsDone& done);
  Status perform(const AdoptBreakpoint& action, ActionsDone& done);
  Status perform(const DeletePod& action, ActionsDone& done);
  Status perform(const DeleteBreakpoint& action, ActionsDone& done);
  Status perform(const CreateCertificateSecret& action, ActionsDone& done);
  Status perform(const AnnotateLastCheckpoint& action, ActionsDone& done);
  Status perform(const RecordEvent& action, ActionsDone& done);

  KubeTransport& transport_;
  const CertificateStore& certificates_;
  const std::string instance_;
};

}  // namespace rekindle::op
