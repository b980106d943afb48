// Keeps a store in step with the API server: LIST by pages, then WATCH from the version that the
// list had, for ever. Pure: it says what to send and is told what came; the shell
// (operator/io/watch_thread.h) does both.
//
// Expected flow
//   Empty -> Listing (a page after the other) -> Listed -> Watching (-> Closing when we end it); a
//   stream that the server closes is opened again from the last version seen, so nothing is missed
//   and nothing listed twice.
// Guarantees
//   - Emitted events form whole lists (Init, InitApply..., InitDone) followed by single changes in
//     the order of the server. A list that is begun again starts with a new Init.
//   - The version advances with every change and every bookmark, never with an error.
//   - 410 (HTTP status or in the stream) empties and lists anew: at once after a quiet time, else
//     after a pause. An expired continue token lists anew in one page, since paging was too slow
//     for the server's history.
//   - An answer that is too large is asked for again with a quarter of the objects, down to one. An
//     object that is too large to be read keeps its last good state.
//   - Any other failure pauses (0.8 s doubling to 30 s, jitter from the seed, reset after 120 s
//     without one; a longer Retry-After of the server wins) and goes on where it was: the same
//     page, or the watch from the last version.
//   - A stream that is silent for idle_limit is closed and opened again: bookmarks come about once
//     a minute, so silence means a dead peer.
//   - A stream that ends within a second without a word counts as a failure, so that no server can
//     make us spin.
// Assumptions
//   - The shell performs outputs in order, and reports each SendList and OpenWatch exactly once
//     (ListPage or ListFailed; any number of WatchLine, then one StreamClosed, also after
//     CloseWatch). It sends Tick at or after the last WakeAt.
// Caveats
//   - A line that cannot be read leads to a new list: what it said is not known, and asking again
//     from the same version may give the same line.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/instant.h"
#include "common/base/prng.h"
#include "operator/controller/backoff.h"
#include "operator/controller/store_event.h"
#include "operator/kube/answer.h"
#include "operator/kube/watch_event.h"

namespace rekindle::op {

struct WatchSettings {
  // objects; fewer where the server's answer is too large
  std::uint32_t page_limit = 500;
  Duration idle_limit = std::chrono::seconds(100);
  // each stream asks for a random time between these two
  std::chrono::seconds watch_timeout_least{300};
  std::chrono::seconds watch_timeout_most{600};
  BackoffSettings backoff{};
};

namespace watch {

// Nothing is known; the next step lists.
struct Empty {};
// A page is on its way.
struct Listing {
  std::string continue_token;
  std::uint32_t pages = 0;  // received so far
  std::uint32_t limit = 0;  // objects a page; 0: all in one
  bool shrunk = false;      // just now, since the answer was too large
};
// The list is complete; the watch is about to open.
struct Listed {
  std::string resource_version;
};
// A stream is open.
struct Watching {
  std::string resource_version;
  Instant opened_at{};
  Instant last_activity{};
  std::uint64_t lines = 0;  // received on this stream
};
// We have asked for the end of the stream and wait until it is over; lines that still come are
// dropped.
struct Closing {
  std::variant<Empty, Listed> then;
  Duration pause{};
};
// Waiting after a failure; then goes on with `then`.
struct BackingOff {
  Instant until{};
  std::variant<Empty, Listing, Listed> then;
};

using State = std::variant<Empty, Listing, Listed, Watching, Closing, BackingOff>;

// Inputs.
struct PageArrived {
  ListPage page;
};
struct ListFailed {
  Error error;
  std::optional<Duration> retry_after;
};
struct WatchLine {
  Result<WatchEvent> event;
};
// The stream is over: by us, by the server (no error) or by a failure (which includes that it was
// never opened).
struct StreamClosed {
  std::optional<Error> error;
  std::optional<Duration> retry_after;
};
struct Tick {};

using Input = std::variant<PageArrived, ListFailed, WatchLine, StreamClosed, Tick>;

// Outputs.
struct SendList {
  std::string continue_token;
  std::uint32_t limit = 0;
  bool operator==(const SendList&) const = default;
};
struct OpenWatch {
  std::string resource_version;
  std::chrono::seconds timeout{};
  bool operator==(const OpenWatch&) const = default;
};
struct CloseWatch {
  bool operator==(const CloseWatch&) const = default;
};
struct Emit {
  StoreEvent<Json> event;
  bool operator==(const Emit&) const = default;
};
struct WakeAt {
  Instant when{};
  bool operator==(const WakeAt&) const = default;
};
// For people and metrics: something went wrong, and what happens next ("lists anew in 1.2 s").
struct Trouble {
  Error error;
  std::string next;
  bool operator==(const Trouble&) const = default;
};

using Output = std::variant<SendList, OpenWatch, CloseWatch, Emit, WakeAt, Trouble>;

}  // namespace watch

class WatchMachine {
 public:
  WatchMachine(WatchSettings settings, std::uint64_t seed);

  // Takes one input and returns what to do, in order. The first input is a Tick.
  std::vector<watch::Output> advance(watch::Input input, Instant now);

  const watch::State& state() const { return state_; }

 private:
  using Outputs = std::vector<watch::Output>;
  using Resume = std::variant<watch::Empty, watch::Listing, watch::Listed>;

  void on(watch::PageArrived& input, Instant now, Outputs& out);
  void on(watch::ListFailed& input, Instant now, Outputs& out);
  void on(watch::WatchLine& input, Instant now, Outputs& out);
  void on(watch::StreamClosed& input, Instant now, Outputs& out);
  void on(watch::Tick& input, Instant now, Outputs& out);

  Duration pause_after_failure(Instant now, std::optional<Duration> requested);
  Duration pause_after_gone(Instant now);
  void resume_with(Resume then, Duration pause, Instant now, Outputs& out);
  watch::Listing first_page() const { return {.limit = settings_.page_limit}; }
  void list(watch::Listing listing, Outputs& out);
  void leave_out(TooLargeObject& object, bool listed, Outputs& out);
  void open(std::string resource_version, Instant now, Outputs& out);
  void close(std::variant<watch::Empty, watch::Listed> then, Duration pause, Error error, Outputs& out);

  WatchSettings settings_;
  Prng rng_;
  Backoff backoff_;
  watch::State state_;
};

// "listing", "watching"...: for logs and metrics.
std::string_view name_of(const watch::State& state);

}  // namespace rekindle::op
