// Errors are values: a code for programs, a message for people that says what to do, and whether
// trying again can help. A function that may fail returns Result<T>.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "common/base/enum_names.h"

namespace rekindle {

enum class ErrorCode {
  invalid_input,      // what a user, a file or a peer gave us does not fit; a retry gives the same
  not_found,          // the named thing is not there
  already_exists,     // the name is taken
  conflict,           // another client changed it first; read it again
  refused,            // understood, and not allowed
  unauthorized,       // credentials are missing, wrong or expired
  unavailable,        // the other side cannot be reached or is not ready; retry later
  deadline_exceeded,  // the time given was not enough
  gone,               // what we referred to has been compacted or replaced
  exhausted,          // no space, no memory, a limit reached
  corrupt,            // bytes do not match their checksum or format
  io,                 // the operating system reported a failure
  internal,           // our own bug, seen where ending the process would do harm
};

constexpr auto enum_names(ErrorCode) {
  return std::to_array<EnumName<ErrorCode>>({{ErrorCode::invalid_input, "invalid_input"},
                                             {ErrorCode::not_found, "not_found"},
                                             {ErrorCode::already_exists, "already_exists"},
                                             {ErrorCode::conflict, "conflict"},
                                             {ErrorCode::refused, "refused"},
                                             {ErrorCode::unauthorized, "unauthorized"},
                                             {ErrorCode::unavailable, "unavailable"},
                                             {ErrorCode::deadline_exceeded, "deadline_exceeded"},
                                             {ErrorCode::gone, "gone"},
                                             {ErrorCode::exhausted, "exhausted"},
                                             {ErrorCode::corrupt, "corrupt"},
                                             {ErrorCode::io, "io"},
                                             {ErrorCode::internal, "internal"}});
}

enum class Retry { no, yes };

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
  Retry retry = Retry::no;

  bool operator==(const Error&) const = default;
};

template <typename T>
using Result = std::expected<T, Error>;
using Status = std::expected<void, Error>;

// Makes the error side of any Result: `return fail(ErrorCode::not_found, "...");`
std::unexpected<Error> fail(ErrorCode code, std::string message, Retry retry = Retry::no);

// The same with the text of errno behind the sentence. Retry is yes where a later try may pass
// (EAGAIN, EINTR, ENOSPC, ECONNREFUSED...); the code is chosen from the errno (ENOENT -> not_found,
// ENOSPC -> exhausted...).
std::unexpected<Error> fail_errno(int error_number, std::string message);

// Puts a sentence about the surrounding task in front: "reading the manifest: no such file".
Error with_context(Error error, std::string_view context);

}  // namespace rekindle
