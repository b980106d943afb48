#include "session.h"

#include <algorithm>
#include <utility>

namespace digits {
namespace {

Status checked(rk_status status) {
  if (status == RK_OK) return {};
  return failure(std::string(rk_status_name(status)) + ": " + rk_last_error());
}

}  // namespace

Status Session::open(const Options& options) {
  if (options.without_rekindle) return {};
  rk_options wanted{};
  wanted.struct_size = sizeof wanted;
  wanted.rank = options.place.rank;
  wanted.world_size = options.place.world_size;
  return checked(rk_open(&wanted, &session_));
}

Status Session::register_array(const std::string& name, const Part& part, std::span<float> values) {
  rk_tensor tensor{};
  tensor.struct_size = sizeof tensor;
  tensor.name = name.c_str();
  tensor.data = values.data() + part.begin;
  tensor.dtype = RK_F32;
  tensor.rank = static_cast<std::int32_t>(part.shape.size());
  std::copy(part.shape.begin(), part.shape.end(), tensor.shape);
  tensor.written_in = RK_UPDATE;
  return checked(rk_register(session_, &tensor));
}

Status Session::register_all(std::span<float> parameters, Adam& adam) {
  if (session_ == nullptr) return {};
  for (const Part& part : model_parts()) {
    const std::pair<std::string, std::span<float>> arrays[] = {{part.name, parameters},
                                                               {"adam.first." + part.name, adam.first_moments},
                                                               {"adam.second." + part.name, adam.second_moments}};
    for (const auto& [name, values] : arrays) {
      if (Status registered = register_array(name, part, values); !registered) return registered;
    }
  }
  return checked(rk_register_state(session_, "adam.counters", &adam.counters, sizeof adam.counters));
}

Result<Position> Session::restore() {
  if (session_ == nullptr) return Position{};
  rk_position at{};
  at.struct_size = sizeof at;
  if (Status restored = checked(rk_restore(session_, &at)); !restored) return failure(restored.error());
  return Position{.step = at.step,
                  .attempt = at.attempt,
                  .path = at.path == nullptr ? "" : at.path,
                  .state_missing = (at.flags & RK_STATE_MISSING) != 0};
}

int Session::close() { return session_ == nullptr ? 0 : rk_close(std::exchange(session_, nullptr)); }

}  // namespace digits
