// The ranks of this pod as the sidecar holds them: control block, watch over the process,
// connection. The table stores and reads words and notices deaths; what follows from them is
// decided elsewhere. Threads: the loop thread only (the watches hand their news over to it).
#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/layout.h"
#include "worker-sidecar/sidecar/checkpoint_repository.h"
#include "worker-sidecar/sidecar/control_file.h"
#include "worker-sidecar/sidecar/local_server.h"
#include "worker-sidecar/sidecar/shadow_file.h"

namespace rekindle::sidecar {

class RankTable {
 public:
  // `died` is called once for each process, with the last word of its control block.
  using Died = std::function<void(std::uint32_t rank, RankStatus word)>;

  RankTable(asio::io_context& loop, std::string run_folder, std::uint32_t world_size, Died died);
  ~RankTable();

  // A new process takes the rank: a fresh control block.
  Result<const ControlFile*> admit(std::uint32_t rank, std::int64_t pid, std::uint32_t state_bytes_max, LinkId link,
                                   FileDescriptor process);
  // The process that has the rank already is back, after its connection broke or this sidecar was
  // restarted: the same control block.
  Result<const ControlFile*> readmit(std::uint32_t rank, std::int64_t pid, LinkId link, FileDescriptor process);

  // The connection is gone. That is a death only where nothing better watches the process.
  void link_ended(LinkId link);
  // The parent of the process did waitpid: it is over.
  void process_ended(std::uint32_t rank);
  void mark_finished(std::uint32_t rank);
  void set_registered(std::uint32_t rank, const RegisteredMessage& registered);

  std::optional<std::uint32_t> rank_of(LinkId link) const;
  std::optional<LinkId> link_of(std::uint32_t rank) const;
  bool alive(std::uint32_t rank) const;
  // The live process of this rank whose connection broke, by the process id that it tells.
  bool lost_connection(std::uint32_t rank, std::int64_t pid) const;
  bool finished(std::uint32_t rank) const;
  std::vector<std::uint32_t> live_ranks() const;
  const ControlFile* control_of(std::uint32_t rank) const;

  // Makes the rank's shadow anew for these pieces of what it has registered; the one before is
  // over.
  struct KeptShare {
    std::uint64_t serial = 0;
    bool snapshots = false;
    std::uint64_t shadow_every_steps = 0;
    std::vector<PiecePlan> pieces;
  };
  Result<std::shared_ptr<const ShadowFile>> make_shadow(std::uint32_t rank, const KeptShare& share);
  // With the layout that it was planned for; null: there is none. May be used on other threads.
  struct Shadow {
    std::shared_ptr<const ShadowFile> file;
    Layout layout;
  };
  std::shared_ptr<const Shadow> shadow_of(std::uint32_t rank) const;
  std::vector<std::uint64_t> shadow_steps(std::uint32_t rank, std::uint64_t attempt) const;

  void hold_live();
  void request_snapshot(std::uint64_t step);
  void permit(std::uint32_t rank, std::uint64_t step);
  void release_all(GateOrder order);
  Status release_to_rebuild(const RebuildOrder& order);
  // The rank has carried out its order to rebuild, as its control block says; false: it has not, or
  // that was known.
  bool settle_rebuild(std::uint32_t rank);

  // Live ranks whose word is another than at the last call for them.
  std::vector<std::pair<std::uint32_t, RankStatus>> changed_words();
  std::vector<std::pair<std::uint32_t, RankStatus>> live_words() const;
  // Makes changed_words report every live rank again.
  void forget_words();

  // The registered small state of these ranks at this step; ranks that do not have it are
  // `missing`.
  struct Captured {
    std::vector<RankState> states;
    std::vector<std::uint32_t> missing;
    std::vector<std::string> reasons;  // one for each missing one
  };
  Captured capture(const std::vector<std::uint32_t>& ranks, std::uint64_t step, std::uint64_t attempt) const;

 private:
  struct Place;
  Result<const ControlFile*> seat(std::uint32_t rank, ControlFile file, std::int64_t pid, LinkId link,
                                  FileDescriptor process);
  void gone(std::uint32_t rank, std::uint64_t generation);

  asio::io_context& loop_;
  const std::string run_folder_;
  const std::uint32_t world_size_;
  Died died_;
  std::map<std::uint32_t, std::unique_ptr<Place>> places_;
  std::uint64_t last_generation_ = 0;
  // News of watches that arrive after the table is gone find this expired.
  std::shared_ptr<RankTable*> self_;
};

}  // namespace rekindle::sidecar
