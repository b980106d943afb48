// What makes a breakpoint begin: told from sidecar to sidecar, and to the operator.
#pragma once

#include <cstdint>

#include "common/base/enum_names.h"

namespace rekindle {

enum class TriggerCause : std::uint8_t {
  hook,            // preStop of a pod
  operator_order,  // a fault elsewhere, a Breakpoint made by hand
  rank_died,
  pod_lost,
  collective_failed,  // a rank said so
  user,               // rk_checkpoint
  terminated,         // SIGTERM to a sidecar whose ranks live
  sidecar,            // a sidecar found its ranks held and nobody told it why
  unknown,            // a word of a newer sidecar; only in what the operator reads
};

constexpr auto enum_names(TriggerCause) {
  return std::to_array<EnumName<TriggerCause>>({{TriggerCause::hook, "hook"},
                                                {TriggerCause::operator_order, "operator"},
                                                {TriggerCause::rank_died, "rank_died"},
                                                {TriggerCause::pod_lost, "pod_lost"},
                                                {TriggerCause::collective_failed, "collective_failed"},
                                                {TriggerCause::user, "user"},
                                                {TriggerCause::terminated, "terminated"},
                                                {TriggerCause::sidecar, "sidecar"},
                                                {TriggerCause::unknown, "unknown"}});
}

}  // namespace rekindle
