// What the host reports to the program that runs it: the log of a sidecar in a pod, the supervision
// and the event file of `rekindle run`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/instant.h"
#include "worker-sidecar/coordination/output.h"
#include "worker-sidecar/protocol/control_block.h"

namespace rekindle::sidecar {

enum class Severity : std::uint8_t { debug, info, warning, error };

// One thing that happened: a fixed text and fields. Values may hold anything that a user wrote;
// the program that prints them escapes.
using Facts = std::vector<std::pair<std::string_view, std::string>>;

// All calls come on the loop thread and must not block.
class HostObserver {
 public:
  virtual ~HostObserver() = default;

  virtual void log(Severity level, std::string_view message, const Facts& fields) = 0;
  virtual void rank_died(std::uint32_t /*rank*/, RankStatus /*word*/, bool /*finished*/, Instant /*at*/) {}
  // The newest state of one breakpoint; called again for each change.
  virtual void breakpoint(const BreakpointRecord& /*record*/, std::uint32_t /*attempt*/, Instant /*at*/) {}
  virtual void periodic(const ReportPeriodic& /*report*/, std::uint32_t /*attempt*/, Instant /*at*/) {}
  virtual void attempt_begun(const AttemptBegun& /*begun*/, Instant /*at*/) {}
  // The first step that a rank of this pod committed in the attempt.
  virtual void first_step(std::uint32_t /*attempt*/, std::uint64_t /*step*/, Instant /*at*/) {}
  virtual void problem(const std::string& /*code*/, const std::string& /*message*/) {}
  // What problem() told with this code is put right.
  virtual void problem_over(const std::string& /*code*/) {}
  virtual void exit_allowed() {}
};

}  // namespace rekindle::sidecar
