#include "worker-sidecar/runtime/src/announcement.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/format.h"
#include "common/base/json_fields.h"

namespace rekindle::runtime {
namespace {

// of a message that is a list
constexpr std::size_t kRoomForTheRest = 256;

// What one description adds to the message.
std::size_t described_bytes(const TensorDescription& tensor) {
  return layout_elements({.tensors = {tensor}}).size() + 1;
}
std::size_t described_bytes(const StateDescription& state) {
  return dump_json(Json(state.name)).size() + kRoomForTheRest;
}

Done check_room(std::size_t tensors, std::size_t bytes) {
  if (bytes + kRoomForTheRest <= kRankMessageBytesMax) return {};
  return refuse(RK_ERROR_ARGUMENT, format("the description of {} tensors takes {} bytes, and a message holds {}; "
                                          "register fewer, larger tensors or use shorter names",
                                          tensors, bytes, kRankMessageBytesMax));
}

}  // namespace

Done Announcement::replace(RegisteredMessage registered) {
  std::size_t bytes = 0;
  for (const TensorDescription& tensor : registered.layout.tensors) bytes += described_bytes(tensor);
  for (const StateDescription& state : registered.states) bytes += described_bytes(state);
  if (Done done = check_room(registered.layout.tensors.size(), bytes); !done) return done;
  bytes_ = bytes;
  registered_ = std::move(registered);
  due_ = true;
  return {};
}

Done Announcement::add(TensorDescription tensor) {
  const std::size_t bytes = bytes_ + described_bytes(tensor);
  if (Done done = check_room(registered_->layout.tensors.size() + 1, bytes); !done) return done;
  bytes_ = bytes;
  registered_->layout.tensors.push_back(std::move(tensor));
  due_ = true;
  return {};
}

Done Announcement::add(StateDescription state) {
  const std::size_t bytes = bytes_ + described_bytes(state);
  if (Done done = check_room(registered_->layout.tensors.size(), bytes); !done) return done;
  bytes_ = bytes;
  registered_->states.push_back(std::move(state));
  due_ = true;
  return {};
}

bool Announcement::remove_tensor(std::string_view name) {
  std::vector<TensorDescription>& tensors = registered_->layout.tensors;
  const auto found = std::ranges::find(tensors, name, &TensorDescription::name);
  if (found == tensors.end()) return false;
  bytes_ -= described_bytes(*found);
  tensors.erase(found);
  due_ = true;
  return true;
}

void Announcement::mark_late() {
  if (registered_) registered_->late = true;
}

std::optional<RegisteredMessage> Announcement::take_due() {
  if (!std::exchange(due_, false)) return std::nullopt;
  return registered_;
}

}  // namespace rekindle::runtime
