// What becomes of a checkpoint that could not be loaded, the same with and without a sidecar
// (PROTOCOL P17). An older one costs the steps in between for good: only damage, or what stays
// missing, leads there. Storage that fails for a while is waited for; when it goes on failing the
// start ends with the reason, and nothing is lost.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/error.h"
#include "common/base/instant.h"

namespace rekindle {

enum class AfterFailure : std::uint8_t { try_again, next_older, stop };

struct RestoreLimits {
  // between two tries
  Duration pause = std::chrono::seconds(1);
  // A network file system may remember for some seconds that a name was not there.
  Duration missing_max = std::chrono::seconds(5);
  Duration failing_max = std::chrono::seconds(60);
  // however long each of them takes
  std::uint32_t tries_min = 2;
};

// `tries`: that have failed so far, this one counted. `elapsed`: since the first of them failed.
AfterFailure after_failure(ErrorCode code, std::uint32_t tries, Duration elapsed, const RestoreLimits& limits = {});

// Whether the error says something about the checkpoint itself, so that an older one may be
// considered at once.
bool is_damage(ErrorCode code);

// A file of a checkpoint that is or says what it cannot be is damage, too.
Error as_damage(Error error);

// What a person reads when the start ends over a checkpoint that may be whole.
std::string why_no_older(const std::string& path);

}  // namespace rekindle
