// Sockets that never block for longer than they are told. Included by .cc files of this folder and
// by tests.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include "common/base/error.h"
#include "common/base/instant.h"
#include "common/system/file_descriptor.h"
#include "common/system/waker.h"

namespace rekindle {

// Ends waits when a stop token is stopped. Lives on the stack of one call; costs nothing for a
// token that can never stop.
class StopSignal {
 public:
  explicit StopSignal(std::stop_token stop);
  // exhausted when the process had no descriptor left for it.
  Status made() const;
  int descriptor() const { return waker_ ? waker_->descriptor() : -1; }

 private:
  struct Raise {
    const Waker* waker;
    void operator()() const { waker->wake(); }
  };
  std::optional<Waker> waker_;
  std::optional<std::stop_callback<Raise>> callback_;
};

enum class Readiness { ready, timed_out, interrupted };

// Waits until `descriptor` can be read (or written), `interrupt` is readable (-1: none), or the
// time has come.
Result<Readiness> wait_for(int descriptor, bool to_write, Instant deadline, int interrupt);

// The error of a call that found no descriptor left.
std::unexpected<Error> no_descriptor_left();

// The error of a call that was ended by its stop token.
std::unexpected<Error> stopped();

// A TCP connection, non-blocking from then on. The name is looked up without blocking for longer
// than the deadline.
Result<FileDescriptor> connect_to(const std::string& host, std::uint16_t port, Instant deadline, int interrupt);

// `address` is an IP address.
Result<FileDescriptor> listen_on(const std::string& address, std::uint16_t port);

std::uint16_t local_port(int descriptor);
std::string peer_address(int descriptor);

// For descriptors that carry HTTP: no delay for small writes; a peer that vanished without a word
// is noticed within half a minute.
void tune_connection(int descriptor);

}  // namespace rekindle
