// What the operator knows of a pod by its sidecar: the last report, and when it was heard.
#pragma once

#include "common/contract/sync_request.h"
#include "common/contract/wall_time.h"

namespace rekindle::op {

struct SidecarReport {
  SyncSender sender;
  SyncReport sync;
  WallTime received{};
  WallTime phase_since{};    // when this phase was first heard of
  WallTime attempt_since{};  // when this attempt was first heard of from this pod

  bool operator==(const SidecarReport&) const = default;
};

}  // namespace rekindle::op
