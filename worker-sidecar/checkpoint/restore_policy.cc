#include "worker-sidecar/checkpoint/restore_policy.h"

#include "common/base/format.h"

namespace rekindle {

AfterFailure after_failure(ErrorCode code, std::uint32_t tries, Duration elapsed, const RestoreLimits& limits) {
  const auto within = [&](Duration longest) { return tries < limits.tries_min || elapsed < longest; };
  switch (code) {
    case ErrorCode::corrupt: return AfterFailure::next_older;
    case ErrorCode::not_found: return within(limits.missing_max) ? AfterFailure::try_again : AfterFailure::next_older;
    case ErrorCode::conflict:
    case ErrorCode::unavailable:
    case ErrorCode::deadline_exceeded:
    case ErrorCode::gone:
    case ErrorCode::exhausted:
    case ErrorCode::io: return within(limits.failing_max) ? AfterFailure::try_again : AfterFailure::stop;
    case ErrorCode::invalid_input:  // an older one would hide that the program has changed
    case ErrorCode::already_exists:
    case ErrorCode::refused:
    case ErrorCode::unauthorized:
    case ErrorCode::internal: return AfterFailure::stop;
  }
  return AfterFailure::stop;
}

bool is_damage(ErrorCode code) { return code == ErrorCode::corrupt || code == ErrorCode::invalid_input; }

Error as_damage(Error error) {
  if (is_damage(error.code)) error.code = ErrorCode::corrupt;
  return error;
}

std::string why_no_older(const std::string& path) {
  return format(
      ". No older checkpoint is taken instead, because {} may be whole: make the storage readable and start again, or "
      "move {} away to go on from the one before it",
      path, path);
}

}  // namespace rekindle
