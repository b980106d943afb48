#include "worker-sidecar/sidecar/rank_table.h"

#include <algorithm>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>

#include "common/base/format.h"
#include "worker-sidecar/sidecar/death_watch.h"
#include "worker-sidecar/storage/nonce.h"

namespace rekindle::sidecar {

struct RankTable::Place {
  explicit Place(ControlFile file) : control(std::move(file)) {}

  ControlFile control;
  std::uint64_t generation = 0;  // of the process; tells late news of an earlier one apart
  std::int64_t pid = 0;          // as the process told it, in its own namespace
  std::unique_ptr<asio::posix::stream_descriptor> process;
  bool process_watched = false;
  std::optional<LinkId> link;
  std::vector<StateDescription> states;
  Layout layout;
  std::shared_ptr<const Shadow> shadow;
  std::optional<RankStatus> reported;
  bool alive = true;
  bool finished = false;
  std::unique_ptr<DeathWatch> watch;  // last: it reads the control block until it is destroyed
};

RankTable::RankTable(asio::io_context& loop, std::string run_folder, std::uint32_t world_size, Died died)
    : loop_(loop),
      run_folder_(std::move(run_folder)),
      world_size_(world_size),
      died_(std::move(died)),
      self_(std::make_shared<RankTable*>(this)) {}

RankTable::~RankTable() = default;

Result<const ControlFile*> RankTable::admit(std::uint32_t rank, std::int64_t pid, std::uint32_t state_bytes_max,
                                            LinkId link, FileDescriptor process) {
  Result<ControlFile> file = ControlFile::create(
      run_folder_,
      {.rank = rank, .world_size = world_size_, .incarnation = draw_number(), .state_bytes_max = state_bytes_max});
  if (!file) return std::unexpected(file.error());
  ShadowFile::remove(run_folder_, rank);
  return seat(rank, std::move(*file), pid, link, std::move(process));
}

Result<const ControlFile*> RankTable::readmit(std::uint32_t rank, std::int64_t pid, LinkId link,
                                              FileDescriptor process) {
  if (const auto found = places_.find(rank); found != places_.end() && found->second->alive) {
    found->second->link = link;
    found->second->reported.reset();
    return &found->second->control;
  }
  Result<ControlFile> file = ControlFile::open(run_folder_, rank, world_size_);
  if (!file) return std::unexpected(file.error());
  return seat(rank, std::move(*file), pid, link, std::move(process));
}

Result<const ControlFile*> RankTable::seat(std::uint32_t rank, ControlFile file, std::int64_t pid, LinkId link,
                                           FileDescriptor process) {
  auto place = std::make_unique<Place>(std::move(file));
  const std::uint64_t generation = ++last_generation_;
  place->generation = generation;
  place->pid = pid;
  place->link = link;
  const std::weak_ptr<RankTable*> weak = self_;
  if (process) {
    place->process = std::make_unique<asio::posix::stream_descriptor>(loop_);
    std::error_code refused;
    // Only what can be waited for is taken; a client that sends something else is watched without
    // it.
    place->process->assign(process.get(), refused);
    if (!refused) {
      process.release();
      place->process_watched = true;
      place->process->async_wait(asio::posix::stream_descriptor::wait_read,
                                 [weak, rank, generation](std::error_code error) {
                                   if (const auto self = weak.lock(); self && !error) (*self)->gone(rank, generation);
                                 });
    }
  }
  place->watch = std::make_unique<DeathWatch>(place->control.owner_word(), place->control.owner_ready(),
                                              [weak, &loop = loop_, rank, generation] {
                                                asio::post(loop, [weak, rank, generation] {
                                                  if (const auto self = weak.lock()) (*self)->gone(rank, generation);
                                                });
                                              });
  const ControlFile* const control = &place->control;
  places_[rank] = std::move(place);
  return control;
}

void RankTable::gone(std::uint32_t rank, std::uint64_t generation) {
  const auto found = places_.find(rank);
  if (found == places_.end() || found->second->generation != generation || !found->second->alive) return;
  Place& place = *found->second;
  place.alive = false;
  place.link.reset();
  place.watch.reset();
  if (place.process) {
    std::error_code ignored;
    place.process->close(ignored);
  }
  died_(rank, place.control.word());
}

void RankTable::link_ended(LinkId link) {
  for (auto& [rank, place] : places_) {
    if (place->link != link) continue;
    place->link.reset();
    const bool watched = place->process_watched || place->control.owner_ready().load(std::memory_order_acquire) != 0;
    // gone() may call back into this table, so nothing here is touched afterwards.
    if (!watched) gone(rank, place->generation);
    return;
  }
}

void RankTable::process_ended(std::uint32_t rank) {
  if (const auto found = places_.find(rank); found != places_.end()) gone(rank, found->second->generation);
}

void RankTable::mark_finished(std::uint32_t rank) {
  if (const auto found = places_.find(rank); found != places_.end()) found->second->finished = true;
}

void RankTable::set_registered(std::uint32_t rank, const RegisteredMessage& registered) {
  const auto found = places_.find(rank);
  if (found == places_.end()) return;
  Place& place = *found->second;
  place.states = registered.states;
  place.layout = registered.layout;
  if (place.shadow) return;
  // Of a rank that lived on while this sidecar was restarted.
  if (Result<ShadowFile> file = ShadowFile::open(run_folder_, rank, place.control.incarnation())) {
    place.shadow =
        std::make_shared<const Shadow>(Shadow{std::make_shared<const ShadowFile>(*std::move(file)), place.layout});
  }
}

Result<std::shared_ptr<const ShadowFile>> RankTable::make_shadow(std::uint32_t rank, const KeptShare& share) {
  const auto found = places_.find(rank);
  if (found == places_.end()) return fail(ErrorCode::unavailable, format("rank {} is not here", rank));
  Place& place = *found->second;
  Result<ShadowPlan> plan = plan_shadow({.rank = rank,
                                         .incarnation = place.control.incarnation(),
                                         .serial = share.serial,
                                         .snapshots = share.snapshots,
                                         .shadow_every_steps = share.shadow_every_steps,
                                         .state_bytes = place.control.slot_bytes()},
                                        place.layout, share.pieces);
  if (!plan) return std::unexpected(plan.error());
  Result<ShadowFile> file = ShadowFile::create(run_folder_, *std::move(plan));
  if (!file) return std::unexpected(file.error());
  auto kept = std::make_shared<const ShadowFile>(*std::move(file));
  place.shadow = std::make_shared<const Shadow>(Shadow{kept, place.layout});
  return kept;
}

std::shared_ptr<const RankTable::Shadow> RankTable::shadow_of(std::uint32_t rank) const {
  const auto found = places_.find(rank);
  return found == places_.end() ? nullptr : found->second->shadow;
}

std::vector<std::uint64_t> RankTable::shadow_steps(std::uint32_t rank, std::uint64_t attempt) const {
  const std::shared_ptr<const Shadow> shadow = shadow_of(rank);
  return shadow ? shadow->file->whole_steps(attempt) : std::vector<std::uint64_t>();
}

std::optional<std::uint32_t> RankTable::rank_of(LinkId link) const {
  for (const auto& [rank, place] : places_) {
    if (place->link == link) return rank;
  }
  return std::nullopt;
}

std::optional<LinkId> RankTable::link_of(std::uint32_t rank) const {
  const auto found = places_.find(rank);
  return found == places_.end() ? std::nullopt : found->second->link;
}

bool RankTable::alive(std::uint32_t rank) const {
  const auto found = places_.find(rank);
  return found != places_.end() && found->second->alive;
}

bool RankTable::lost_connection(std::uint32_t rank, std::int64_t pid) const {
  const auto found = places_.find(rank);
  return found != places_.end() && found->second->alive && !found->second->link && found->second->pid == pid;
}

bool RankTable::finished(std::uint32_t rank) const {
  const auto found = places_.find(rank);
  return found != places_.end() && found->second->finished;
}

std::vector<std::uint32_t> RankTable::live_ranks() const {
  std::vector<std::uint32_t> ranks;
  for (const auto& [rank, place] : places_) {
    if (place->alive) ranks.push_back(rank);
  }
  return ranks;
}

const ControlFile* RankTable::control_of(std::uint32_t rank) const {
  const auto found = places_.find(rank);
  return found == places_.end() ? nullptr : &found->second->control;
}

void RankTable::hold_live() {
  for (auto& [rank, place] : places_) {
    if (place->alive && !place->control.held()) place->control.hold();
  }
}

void RankTable::request_snapshot(std::uint64_t step) {
  for (auto& [rank, place] : places_) place->control.request_snapshot(step);
}

std::vector<std::pair<std::uint32_t, RankStatus>> RankTable::live_words() const {
  std::vector<std::pair<std::uint32_t, RankStatus>> words;
  for (const auto& [rank, place] : places_) {
    if (place->alive) words.emplace_back(rank, place->control.word());
  }
  return words;
}

void RankTable::permit(std::uint32_t rank, std::uint64_t step) {
  if (const auto found = places_.find(rank); found != places_.end()) found->second->control.permit(step);
}

void RankTable::release_all(GateOrder order) {
  for (auto& [rank, place] : places_) place->control.release(order);
}

Status RankTable::release_to_rebuild(const RebuildOrder& order) {
  for (auto& [rank, place] : places_) {
    if (Status released = place->control.release_to_rebuild(order); !released) return released;
  }
  return {};
}

bool RankTable::settle_rebuild(std::uint32_t rank) {
  const auto found = places_.find(rank);
  return found != places_.end() && found->second->control.settle_rebuild();
}

std::vector<std::pair<std::uint32_t, RankStatus>> RankTable::changed_words() {
  std::vector<std::pair<std::uint32_t, RankStatus>> changed;
  for (auto& [rank, place] : places_) {
    if (!place->alive) continue;
    const RankStatus word = place->control.word();
    if (place->reported == word) continue;
    place->reported = word;
    changed.emplace_back(rank, word);
  }
  return changed;
}

void RankTable::forget_words() {
  for (auto& [rank, place] : places_) place->reported.reset();
}

namespace {

bool is_size_of(const StateDescription& registered, std::size_t bytes) {
  return registered.variable ? bytes <= registered.bytes : bytes == registered.bytes;
}

}  // namespace

RankTable::Captured RankTable::capture(const std::vector<std::uint32_t>& ranks, std::uint64_t step,
                                       std::uint64_t attempt) const {
  Captured result;
  const auto miss = [&](std::uint32_t rank, std::string why) {
    result.missing.push_back(rank);
    result.reasons.push_back(format("rank {}: {}", rank, why));
  };
  for (const std::uint32_t rank : ranks) {
    const auto found = places_.find(rank);
    if (found == places_.end()) {
      miss(rank, "its control block is not here");
      continue;
    }
    const Place& place = *found->second;
    if (place.states.empty()) continue;
    Result<CapturedState> captured = place.control.captured(step, attempt);
    if (!captured && place.shadow) {
      if (Result<CapturedState> kept = place.shadow->file->captured(step, attempt)) captured = std::move(kept);
    }
    if (!captured) {
      miss(rank, captured.error().message);
      continue;
    }
    // A slot also holds tensors that are written anywhere; those are the writers' part of the
    // checkpoint.
    RankState state{.rank = rank, .captured = {.step = captured->step, .attempt = captured->attempt, .entries = {}}};
    for (const StateDescription& registered : place.states) {
      const auto entry = std::ranges::find(captured->entries, registered.name,
                                           [](const auto& pair) -> const std::string& { return pair.first; });
      if (entry == captured->entries.end() || !is_size_of(registered, entry->second.size())) continue;
      state.captured.entries.push_back(std::move(*entry));
    }
    if (state.captured.entries.size() != place.states.size()) {
      miss(rank, format("the captured state of step {} does not have everything that was registered", step));
      continue;
    }
    result.states.push_back(std::move(state));
  }
  return result;
}

}  // namespace rekindle::sidecar
