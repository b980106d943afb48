// The sidecar's side of one control block (docs/formats/control-block.md): the file in the run
// folder, its mapping, and the few stores that open and close the gates of a rank.
//
// Promises: the file is made exclusively and allocated before it is mapped, so a full memory volume
// is an error here and never a SIGBUS in training. Nothing that the rank wrote is believed beyond
// what the reader checks: words are values, slots need a right checksum and are read with pread, so
// a rank that shortens the file cannot end this process through them. Threads: one owner. Other
// threads may use owner_word() and owner_ready() while the file lives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/protocol/control_block.h"
#include "worker-sidecar/protocol/rebuild_order.h"

namespace rekindle::sidecar {

// What one slot held: the named values in order of registration.
struct CapturedState {
  std::uint64_t step = 0;
  std::uint64_t attempt = 0;
  std::vector<std::pair<std::string, std::string>> entries;
};

struct ControlShape {
  std::uint32_t rank = 0;
  std::uint32_t world_size = 0;
  std::uint64_t incarnation = 0;
  std::uint32_t state_bytes_max = 65536;
};

class ControlFile {
 public:
  // Makes `rank-<r>.control` in `folder`, replacing one of an earlier process. `exhausted` when the
  // volume is full.
  static Result<ControlFile> create(const std::string& folder, const ControlShape& shape);

  // The file of a rank that still runs, after this sidecar was restarted. `not_found` when there is
  // none, `corrupt` when it is not a control block that this sidecar's user made for that rank.
  static Result<ControlFile> open(const std::string& folder, std::uint32_t rank, std::uint32_t world_size);

  ControlFile(ControlFile&& other) noexcept;
  ControlFile& operator=(ControlFile&& other) noexcept;
  ~ControlFile();

  int descriptor() const { return descriptor_; }
  std::uint32_t slot_bytes() const { return slot_bytes_; }
  std::uint64_t incarnation() const { return incarnation_; }

  RankStatus word() const;
  std::uint64_t attempt() const;

  // Closes the gates; a word read afterwards is either a gate's or cannot pass one. Returns the
  // number of the hold.
  std::uint32_t hold();
  bool held() const;
  std::uint32_t hold_number() const { return hold_number_; }
  // Lets the update to `step` through although the gates are closed.
  void permit(std::uint64_t step);
  // A rank that passes a step gate at exactly this step takes a snapshot; 0: none. A word read
  // afterwards is either not beyond the gate, or the rank has seen it.
  void request_snapshot(std::uint64_t step);
  // Opens the gates. With GateOrder::stop the rank leaves its loop at this and every later gate.
  // With go_on an order to rebuild that it has not carried out yet still stands.
  void release(GateOrder order);
  // Opens the gates for a rank that shall rebuild. Nothing of the order was carried out when it is
  // refused, and the gates stay closed.
  Status release_to_rebuild(const RebuildOrder& order);
  // Gates cost nothing again once the rank has carried it out; true when it has just been found so.
  bool settle_rebuild();
  // Of the newest order to rebuild; 0: there was none.
  std::uint64_t rebuild_term() const;

  // The captured state of exactly this step: of the committed one from the slot that the word
  // names, of another one from the other slot. An earlier capture of the committed step may stand
  // there, with less in it: a late registration captures again. `not_found` when that slot holds
  // another step, `corrupt` when the checksum or the entries are wrong.
  Result<CapturedState> captured(std::uint64_t step, std::uint64_t attempt) const;

  std::atomic<std::uint32_t>& owner_word() const { return block_->owner; }
  std::atomic<std::uint32_t>& owner_ready() const { return block_->owner_ready; }

 private:
  ControlFile(int descriptor, ControlBlock* block, std::uint32_t slot_bytes, std::uint64_t incarnation);
  void open_gates(GateOrder order);
  GateOrder standing_order() const;
  void ring();
  void close();

  int descriptor_ = -1;
  ControlBlock* block_ = nullptr;
  std::uint32_t slot_bytes_ = 0;
  std::uint64_t incarnation_ = 0;
  std::uint32_t hold_number_ = 0;
};

// Takes the payload of a slot apart. Pure; also the target of the fuzzer.
Result<CapturedState> decode_slot_payload(const SlotHeader& header, std::string_view payload);

}  // namespace rekindle::sidecar
