// Whether the ranks of a job can abort their communicators, make new ones and go on in their
// processes, instead of all being started again. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "worker-sidecar/coordination/outcome.h"

namespace rekindle::sidecar {

// Nothing is broken but communicators, as far as these causes tell.
bool only_communicators_failed(const std::set<TriggerCause>& causes);

// Some ranks have the order to rebuild and others have not: the coordinator that gave it was lost
// in between.
bool rebuild_orders_differ(const std::vector<CollectedRank>& ranks);

struct RebuildInput {
  std::vector<CollectedRank> ranks;  // that answered, each once
  std::uint32_t world_size = 1;
  std::uint64_t step = 0;  // that would be gone on from
  // They registered the very same.
  std::function<bool(std::uint32_t, std::uint32_t)> alike;
};

// Empty: yes. Otherwise the reason, as a part of a sentence. Every rank has to live and to be
// able to; none may be beyond the step or on the way there, since its steps would be an abandoned
// line, which takes a new attempt (P15); and a rank behind it has to have a live copy of itself
// there, because a rank that registered something new in between could not be filled from the
// checkpoint.
std::string why_not_rebuild(const RebuildInput& input);

// How often the job has rebuilt at one step.
class RebuildCount {
 public:
  void note(const CommittedMessage& committed);
  std::uint32_t at(std::uint64_t step) const { return step == step_ ? count_ : 0; }
  // Of the newest one; 0: there was none.
  std::uint64_t term() const { return term_; }

 private:
  std::uint64_t term_ = 0;
  std::uint64_t step_ = 0;
  std::uint32_t count_ = 0;
};

}  // namespace rekindle::sidecar
