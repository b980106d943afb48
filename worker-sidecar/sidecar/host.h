// The sidecar's shell around the coordination machines: local messages, deaths, words and the
// storage become events; outputs become stores in control blocks, frames and jobs on the disk pool.
// It runs in a pod (rekindle-sidecar) and inside `rekindle run`. It decides nothing that a machine
// could decide.
//
// Expected flow: start() listens and tries the storage out, then everything happens on the loop.
// Threads: everything on the loop thread, except start() and the destructor, which run while the
// loop does not; post() may be called from any thread. Errors: a storage that does not work is no
// reason not to start: ranks get the message when they come.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/base/error.h"
#include "common/base/instant.h"
#include "worker-sidecar/coordination/config.h"
#include "worker-sidecar/coordination/coordination.h"
#include "worker-sidecar/coordination/event.h"
#include "worker-sidecar/sidecar/observer.h"
#include "worker-sidecar/sidecar/settings.h"

namespace asio {
class io_context;
}

namespace rekindle::sidecar {

// Carries messages to the sidecars of other pods. Dropped when there is no connection.
class PeerTransport {
 public:
  virtual ~PeerTransport() = default;
  virtual void send(std::uint32_t ordinal, const PeerMessage& message, std::uint32_t attempt) = 0;
};

// A step's worth of facts for the operator's report, metrics and the status tool.
struct HostStatus {
  std::uint32_t attempt = 0;
  std::uint64_t step = 0;  // newest committed one of the local ranks
  SidecarPhase phase = SidecarPhase::waiting;
  bool coordinating = false;
  std::uint32_t live_ranks = 0;  // of the job, as far as known
  std::uint32_t local_live_ranks = 0;
  std::uint64_t breakpoints_durable = 0;
  std::uint64_t breakpoints_failed = 0;
  std::uint64_t periodic_durable = 0;
  bool storage_ready = false;
};

class Host {
 public:
  struct Options {
    HostSettings settings;
    CoordinationConfig coordination;
    bool create_checkpoint_root = false;
    // File descriptor of a lock or the like is the caller's; these outlive the host.
    HostObserver* observer = nullptr;
    PeerTransport* peers = nullptr;  // none under `rekindle run`
  };

  static Result<std::unique_ptr<Host>> start(asio::io_context& loop, Options options);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  // Loop thread.
  void handle(const CoordinationEvent& event);
  // The parent of a local rank did waitpid: the process is over, whatever else is known.
  void process_ended(std::uint32_t rank);
  // Asks for a checkpoint of the running job after which training goes on. False when no
  // rank lives that could ask for it.
  bool request_checkpoint();
  HostStatus status() const;
  std::string status_text() const;  // JSON, one line

 private:
  struct Parts;
  explicit Host(std::shared_ptr<Parts> parts);
  std::shared_ptr<Parts> parts_;
};

}  // namespace rekindle::sidecar
