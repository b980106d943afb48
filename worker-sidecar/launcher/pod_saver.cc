#include "worker-sidecar/launcher/pod_saver.h"

#include <utility>

#include "common/base/format.h"
#include "worker-sidecar/hook/hook_call.h"
#include "worker-sidecar/launcher/output.h"

namespace rekindle::launcher {

PodSaver::PodSaver(std::string socket_path) : socket_path_(std::move(socket_path)) {}

// A call that still waits ends with the process; nothing of ours is used by it but the waker, which
// outlives the thread's last use.
PodSaver::~PodSaver() {
  if (thread_.joinable()) thread_.join();
}

void PodSaver::rank_ended(const ChildEnd& end) {
  if (end.exit_code != 0) say(format("rank {} ended with {}", end.rank, describe(end)));
}

void PodSaver::save() {
  thread_ = std::thread([this] {
    const hook::HookResult result =
        hook::call_sidecar({.socket_path = socket_path_, .container = "rekindle run", .answer_limit = kAnswerLimit});
    output_to(2).write(result.line + "\n");
    save_ended_.wake();
  });
}

void PodSaver::checkpoint_now() {
  say("SIGUSR1 asks for a checkpoint outside Kubernetes only; in a pod create a Breakpoint instead");
}

}  // namespace rekindle::launcher
