#include "common/base/error.h"

#include <cerrno>
#include <cstring>
#include <utility>

namespace rekindle {
namespace {

struct ErrnoMeaning {
  int number;
  ErrorCode code;
  Retry retry;
};

constexpr ErrnoMeaning kErrnoMeanings[] = {
    {ENOENT, ErrorCode::not_found, Retry::no},
    {ENOTDIR, ErrorCode::not_found, Retry::no},
    {EEXIST, ErrorCode::already_exists, Retry::no},
    {EACCES, ErrorCode::refused, Retry::no},
    {EPERM, ErrorCode::refused, Retry::no},
    {EROFS, ErrorCode::refused, Retry::no},
    {ENOSPC, ErrorCode::exhausted, Retry::yes},
    {EDQUOT, ErrorCode::exhausted, Retry::yes},
    {ENOMEM, ErrorCode::exhausted, Retry::yes},
    {EMFILE, ErrorCode::exhausted, Retry::yes},
    {EAGAIN, ErrorCode::unavailable, Retry::yes},
    {EINTR, ErrorCode::unavailable, Retry::yes},
    {ECONNREFUSED, ErrorCode::unavailable, Retry::yes},
    {ECONNRESET, ErrorCode::unavailable, Retry::yes},
    {EPIPE, ErrorCode::unavailable, Retry::yes},
    {ETIMEDOUT, ErrorCode::deadline_exceeded, Retry::yes},
    // Of a disk or a server that is asked again; what lasts comes again.
    {EIO, ErrorCode::io, Retry::yes},
    {ESTALE, ErrorCode::io, Retry::yes},
    {EBUSY, ErrorCode::io, Retry::yes},
};

}  // namespace

std::unexpected<Error> fail(ErrorCode code, std::string message, Retry retry) {
  return std::unexpected(Error{code, std::move(message), retry});
}

std::unexpected<Error> fail_errno(int error_number, std::string message) {
  message += ": ";
  message += std::strerror(error_number);
  for (const ErrnoMeaning& meaning : kErrnoMeanings) {
    if (meaning.number == error_number) {
      return fail(meaning.code, std::move(message), meaning.retry);
    }
  }
  return fail(ErrorCode::io, std::move(message), Retry::no);
}

Error with_context(Error error, std::string_view context) {
  error.message = std::string(context) + ": " + error.message;
  return error;
}

}  // namespace rekindle
