// A session: what the functions of rekindle.h do, in order.
//
//   opened --restore--> between --step_begin--> in_step --update_begin--> updating
//   updating --update_end--> committed --step_end--> between
//
// swapped is entered from between, in_step and committed, and left to where it came from
// (rk_set_phase); stopped is entered from any gate that answers stop, and is left by close() alone;
// rebuilding is entered from any gate that answers so, and left to between by rebuild(); failed
// after a restore that may have overwritten memory.
//
// Guarantees: in the steady state (step_begin to step_end with open gates) no system call, no
// clock, no allocation. Every refusal leaves its message in last_error.h. Threads: the training
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "worker-sidecar/runtime/src/background_saver.h"
#include "worker-sidecar/runtime/src/control_mapping.h"
#include "worker-sidecar/runtime/src/fork_guard.h"
#include "worker-sidecar/runtime/src/gates.h"
#include "worker-sidecar/runtime/src/last_error.h"
#include "worker-sidecar/runtime/src/link.h"
#include "worker-sidecar/runtime/src/open_options.h"
#include "worker-sidecar/runtime/src/registry.h"
#include "worker-sidecar/runtime/src/shadow_keeper.h"
#include "worker-sidecar/runtime/src/small_state.h"
#include "worker-sidecar/runtime/src/stand_alone.h"

namespace rekindle::runtime {

class Session {
 public:
  static Outcome<std::unique_ptr<Session>> open(const OpenOptions& options, const LinkLimits& limits = {});

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  bool in_forked_child() const noexcept { return fork_guard_.in_child(); }

  rk_status add_tensor(const rk_tensor& tensor);
  rk_status move_tensor(const char* name, void* data);
  rk_status remove_tensor(const char* name);
  rk_status add_state(const char* name, void* data, std::size_t bytes);
  rk_status add_state(const char* name, std::size_t bytes_max, SaveState save, LoadState load);
  rk_status add_cursor(rk_cursor* cursor);
  rk_status restore(rk_position& position);
  rk_status rebuild(rk_position& position);
  rk_status step_begin(std::uint64_t step);
  rk_status update_begin();
  rk_status update_end();
  rk_status update_skip();
  rk_status step_end();
  rk_status collective_failed(const char* why);
  rk_status checkpoint();
  rk_status set_phase(rk_phase phase);
  int close();

 private:
  enum class Stage : std::uint8_t {
    opened,
    between,
    in_step,
    updating,
    committed,
    swapped,
    rebuilding,
    stopped,
    failed
  };

  struct Restored {
    std::uint64_t attempt = 1;
    std::uint64_t step = 0;
    std::string path;
    bool state_missing = false;
  };

  struct BroughtBack {
    RankStatus word;
    bool state_missing = false;
  };

  explicit Session(const OpenOptions& options) : options_(options), registry_(options.state_bytes_max) {}

  bool between_steps() const noexcept { return stage_ == Stage::between || stage_ == Stage::committed; }
  rk_status wrong_moment(const char* call) const;
  rk_status refuse_now(const char* call) const;
  rk_status stop() noexcept;
  rk_status leave_gate(GateAnswer answer) noexcept;
  void with_block(const std::function<void(ControlBlock&)>& use);
  // For those of registered tensors, and for `another`.
  rk_status wait_for_devices(const char* call, const rk_memory* another = nullptr);
  rk_status prepare_late_change(const char* call, const rk_memory* another_device = nullptr);
  void commit();
  // Behind a step gate that was passed.
  void keep_copies() noexcept {
    const std::uint64_t snapshot_step = gates_.snapshot_step();
    if (keeper_.due_at_gate(snapshot_step, gates_.word().step)) [[unlikely]]
      keeper_.at_gate(snapshot_step, gates_.word(), attempt_);
  }
  // What has to follow a change of what is captured. `capture_now`: the slot has to hold the state
  // of the committed step.
  void refresh_small_state(bool capture_now);
  void capture(std::uint8_t slot, std::uint64_t step);
  void capture_again();
  template <typename Change>
  rk_status change_registry(Change&& change, bool capture_now);
  template <typename Add>
  rk_status add_small_state(const char* call, Add&& add);
  void start_saver(std::uint64_t step);
  Outcome<Restored> restore_with_sidecar();
  Outcome<BroughtBack> bring_back(const RebuildOrder& order, RankStatus word);
  void fill_position(rk_position& position, std::uint64_t step, const std::string& path, bool state_missing) const;

  // Constant after open().
  const OpenOptions options_;
  ForkGuard fork_guard_;
  std::uint64_t slot_room_ = 0;

  Gates gates_;
  SmallState small_state_;
  Registry registry_;
  ShadowKeeper keeper_{registry_, small_state_};
  Stage stage_ = Stage::opened;
  Stage before_swap_ = Stage::between;
  bool capture_at_step_begin_ = false;
  // something came or went since the saver has planned
  bool copies_stale_ = false;
  std::uint64_t attempt_ = 0;
  // positions that the program has point into these
  std::string restored_path_;
  std::string rebuilt_path_;

  // Exactly one of the two. The link is the last member: its thread ends before what it uses.
  std::unique_ptr<StandAlone> alone_;
  ControlMapping private_block_;
  std::unique_ptr<BackgroundSaver> saver_;  // alone, with periodic checkpoints
  std::unique_ptr<Link> link_;
};

}  // namespace rekindle::runtime
