// Who this sidecar is, and every bound of the coordination machines. Pure values.
#pragma once

#include <cstdint>

#include "common/base/instant.h"
#include "common/contract/checkpoint_settings.h"
#include "common/contract/deadlines.h"
#include "worker-sidecar/checkpoint/restore_policy.h"
#include "worker-sidecar/protocol/peer_message.h"

namespace rekindle::sidecar {

// Defaults fit a cluster; tests and `rekindle run` set their own.
struct CoordinationLimits {
  // Of a breakpoint whose trigger does not say how long it may take (P18).
  Duration deadline = kBreakpointDeadlineDefault;
  // Hooks are answered this long before their time is over, so that the answer still arrives.
  Duration hook_margin = std::chrono::milliseconds(500);
  // Collect: how long a pod that cannot be reached is waited for before its ranks count as unknown,
  // and one that can be reached and does not answer. These and the next four never take more than a
  // quarter of the time that is left.
  Duration collect_wait = std::chrono::seconds(1);
  Duration answer_wait = std::chrono::seconds(3);
  // A rank that is updating commits within an update; after this long it is dirty (P6).
  Duration updating_wait = std::chrono::seconds(2);
  // How long a live rank may take to arrive at its update gate when only it can reach the step that
  // a dead one had.
  Duration arrival_wait = std::chrono::seconds(1);
  // The same when only its small state of that step would be lost.
  Duration straggler_wait = std::chrono::milliseconds(250);
  // From a permit until the permitted ranks have committed.
  Duration permit_wait = std::chrono::seconds(2);
  // Messages that were not answered are sent again; a held sidecar that gets none queries.
  Duration resend = std::chrono::milliseconds(500);
  // Once a hook is answered its container is stopped from outside. A process that does not end on
  // that gets an end message after this long. At once would be wrong: a container that ends by
  // itself in the instant in which it is stopped makes containerd 1.6 lose the stop (ttrpc:
  // closed), and the kubelet then waits out the whole grace before it stops the sidecar.
  Duration stop_wait = std::chrono::seconds(2);
  // A lost connection outside a breakpoint becomes a trigger after this long, unless the peer table
  // says more.
  Duration pod_lost_grace = std::chrono::seconds(5);
  // Between breakpoints after which training goes on and that ranks ask for (P18).
  Duration minimum_interval{0};
  // A sidecar that came back waits this long for the rest of its ranks, and a hook that calls
  // before any has come.
  Duration rejoin_wait = std::chrono::seconds(2);
  // A sidecar whose ranks are held and that hears of no outcome gives up this long after the
  // deadline.
  Duration outcome_grace = std::chrono::seconds(10);
  // Rounds of one breakpoint: writers that fail are left out of the next one.
  std::uint32_t rounds_max = 8;
  // The ranks rebuild at most this often at one step; then the job is restarted.
  std::uint32_t rebuilds_max = 3;
  // Of a candidate that cannot be loaded (P17).
  RestoreLimits restore;
};

struct CoordinationConfig {
  std::uint32_t ordinal = 0;
  std::uint32_t pods = 1;
  std::uint32_t ranks_per_pod = 1;
  // What follows a breakpoint whose cause is a fault: park in a cluster (the operator ends the
  // pods), stop under `rekindle run`.
  AfterBreakpoint after_fault = AfterBreakpoint::park;
  // False: ranks may begin as soon as all are there, the operator need not agree.
  bool wait_for_go = true;
  CoordinationLimits limits;
  // Periodic checkpoints and shadows; the same in every pod of the job.
  SnapshotSettings snapshots;

  std::uint32_t world_size() const { return pods * ranks_per_pod; }
  std::uint32_t first_rank() const { return ordinal * ranks_per_pod; }
  std::uint32_t pod_of(std::uint32_t rank) const { return rank / ranks_per_pod; }
  bool hosts(std::uint32_t rank) const { return pod_of(rank) == ordinal; }
};

}  // namespace rekindle::sidecar
