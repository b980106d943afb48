#include "operator/controller/watch_machine.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "common/base/assert.h"
#include "common/base/format.h"

namespace rekindle::op {
namespace {

// A stream that ends sooner and without a line was refused in all but name.
constexpr Duration kShortestStream = std::chrono::seconds(1);

std::string in_how_long(Duration pause) {
  if (pause == Duration::zero()) return "at once";
  char text[32];
  std::snprintf(text, sizeof text, "in %.1f s", to_seconds(pause));
  return text;
}

std::string describe(const std::variant<watch::Empty, watch::Listing, watch::Listed>& then, Duration pause) {
  struct Describe {
    std::string operator()(const watch::Empty&) const { return "lists anew "; }
    std::string operator()(const watch::Listing& listing) const {
      if (listing.shrunk) return format("asks for {} objects a page ", listing.limit);
      return listing.continue_token.empty() ? "lists again " : "asks for the same page again ";
    }
    std::string operator()(const watch::Listed& listed) const {
      return format("watches again from version {} ", listed.resource_version);
    }
  };
  return std::visit(Describe{}, then) + in_how_long(pause);
}

}  // namespace

std::string_view name_of(const watch::State& state) {
  struct Name {
    std::string_view operator()(const watch::Empty&) const { return "empty"; }
    std::string_view operator()(const watch::Listing&) const { return "listing"; }
    std::string_view operator()(const watch::Listed&) const { return "listed"; }
    std::string_view operator()(const watch::Watching&) const { return "watching"; }
    std::string_view operator()(const watch::Closing&) const { return "closing"; }
    std::string_view operator()(const watch::BackingOff&) const { return "backing_off"; }
  };
  return std::visit(Name{}, state);
}

WatchMachine::WatchMachine(WatchSettings settings, std::uint64_t seed)
    : settings_(settings), rng_(seed), backoff_(settings.backoff), state_(watch::Empty{}) {}

std::vector<watch::Output> WatchMachine::advance(watch::Input input, Instant now) {
  Outputs out;
  std::visit([&](auto& one) { on(one, now, out); }, input);
  return out;
}

void WatchMachine::on(watch::PageArrived& input, Instant now, Outputs& out) {
  RK_ASSERT(std::holds_alternative<watch::Listing>(state_));
  watch::Listing listing = std::get<watch::Listing>(std::move(state_));
  if (listing.pages == 0) out.push_back(watch::Emit{Init{}});
  for (Json& item : input.page.items) {
    Result<ObjectKey> key = key_of(item);
    if (key) {
      out.push_back(watch::Emit{InitApply<Json>{std::move(*key), std::move(item)}});
    } else {
      // Without a name there is nothing to keep it under; the rest of the list is good.
      out.push_back(watch::Trouble{key.error(), "leaves this object out"});
    }
  }
  for (TooLargeObject& object : input.page.too_large) leave_out(object, true, out);
  ++listing.pages;
  if (!input.page.continue_token.empty()) {
    listing.continue_token = std::move(input.page.continue_token);
    list(std::move(listing), out);
    return;
  }
  out.push_back(watch::Emit{InitDone{}});
  open(std::move(input.page.resource_version), now, out);
}

void WatchMachine::on(watch::ListFailed& input, Instant now, Outputs& out) {
  RK_ASSERT(std::holds_alternative<watch::Listing>(state_));
  watch::Listing listing = std::get<watch::Listing>(std::move(state_));
  Duration pause{};
  listing.shrunk = input.error.code == ErrorCode::exhausted && listing.limit != 1;
  if (listing.shrunk) {
    const std::uint32_t limit = listing.limit == 0 ? settings_.page_limit : listing.limit;
    listing.limit = std::max<std::uint32_t>(1, limit / 4);
  } else if (input.error.code == ErrorCode::gone && !listing.continue_token.empty()) {
    pause = pause_after_gone(now);
    listing = watch::Listing{.limit = 0};
  } else {
    pause = pause_after_failure(now, input.retry_after);
  }
  Resume then = std::move(listing);
  out.push_back(watch::Trouble{std::move(input.error), describe(then, pause)});
  resume_with(std::move(then), pause, now, out);
}

void WatchMachine::on(watch::WatchLine& input, Instant now, Outputs& out) {
  if (std::holds_alternative<watch::Closing>(state_)) return;
  RK_ASSERT(std::holds_alternative<watch::Watching>(state_));
  auto& watching = std::get<watch::Watching>(state_);
  watching.last_activity = now;
  ++watching.lines;

  Result<ObjectKey> key;
  if (input.event) {
    const bool has_key = input.event->kind == WatchEventKind::added || input.event->kind == WatchEventKind::modified ||
                         input.event->kind == WatchEventKind::deleted;
    if (has_key) key = key_of(input.event->object);
  }
  if (!input.event || !key) {
    Error error = !input.event ? input.event.error() : key.error();
    close(watch::Empty{}, pause_after_failure(now, std::nullopt), std::move(error), out);
    return;
  }

  WatchEvent& event = *input.event;
  switch (event.kind) {
    case WatchEventKind::added:
    case WatchEventKind::modified:
      watching.resource_version = std::move(event.resource_version);
      if (event.too_large) {
        TooLargeObject object{std::move(event.object), *std::move(event.too_large)};
        return leave_out(object, false, out);
      }
      out.push_back(watch::Emit{Apply<Json>{std::move(*key), std::move(event.object)}});
      return;
    case WatchEventKind::deleted:
      watching.resource_version = std::move(event.resource_version);
      out.push_back(watch::Emit{
          Delete<Json>{std::move(*key), event.too_large ? std::nullopt : std::optional(std::move(event.object))}});
      return;
    case WatchEventKind::bookmark: watching.resource_version = std::move(event.resource_version); return;
    case WatchEventKind::error: break;
  }

  Error error = to_error(event.status);
  if (error.code == ErrorCode::gone) {
    close(watch::Empty{}, pause_after_gone(now), std::move(error), out);
    return;
  }
  const Duration pause = pause_after_failure(now, event.status.retry_after);
  if (error.retry == Retry::yes) {
    close(watch::Listed{watching.resource_version}, pause, std::move(error), out);
  } else {
    // The server does not like what we ask for; from where we are it may say so for ever.
    close(watch::Empty{}, pause, std::move(error), out);
  }
}

void WatchMachine::on(watch::StreamClosed& input, Instant now, Outputs& out) {
  if (auto* closing = std::get_if<watch::Closing>(&state_)) {
    const Duration pause = closing->pause;
    Resume then = std::visit([](auto& one) -> Resume { return std::move(one); }, closing->then);
    resume_with(std::move(then), pause, now, out);
    return;
  }
  RK_ASSERT(std::holds_alternative<watch::Watching>(state_));
  watch::Watching watching = std::get<watch::Watching>(std::move(state_));
  Resume then = watch::Listed{std::move(watching.resource_version)};
  if (!input.error && (watching.lines > 0 || now - watching.opened_at >= kShortestStream)) {
    resume_with(std::move(then), Duration::zero(), now, out);
    return;
  }
  if (!input.error) {
    input.error = Error{ErrorCode::unavailable, "the API server ended a watch at once and without a word", Retry::yes};
  }
  Duration pause{};
  if (input.error->code == ErrorCode::gone) {
    then = watch::Empty{};
    pause = pause_after_gone(now);
  } else {
    pause = pause_after_failure(now, input.retry_after);
  }
  out.push_back(watch::Trouble{std::move(*input.error), describe(then, pause)});
  resume_with(std::move(then), pause, now, out);
}

void WatchMachine::on(watch::Tick&, Instant now, Outputs& out) {
  if (std::holds_alternative<watch::Empty>(state_)) {
    list(first_page(), out);
    return;
  }
  if (auto* backing_off = std::get_if<watch::BackingOff>(&state_)) {
    if (now < backing_off->until) {
      out.push_back(watch::WakeAt{backing_off->until});
    } else {
      resume_with(std::move(backing_off->then), Duration::zero(), now, out);
    }
    return;
  }
  if (const auto* watching = std::get_if<watch::Watching>(&state_)) {
    const Instant limit = watching->last_activity + settings_.idle_limit;
    if (now < limit) {
      out.push_back(watch::WakeAt{limit});
    } else {
      // Not a failure of the server that would need a pause: the connection is dead, and a fresh
      // one is what helps.
      Error error{ErrorCode::deadline_exceeded, "a watch was silent for too long; its connection is taken for dead",
                  Retry::yes};
      close(watch::Listed{watching->resource_version}, Duration::zero(), std::move(error), out);
    }
  }
}

Duration WatchMachine::pause_after_failure(Instant now, std::optional<Duration> requested) {
  return std::max(backoff_.failed(now, rng_), requested.value_or(Duration::zero()));
}

Duration WatchMachine::pause_after_gone(Instant now) {
  const bool first_trouble = backoff_.rested(now);
  const Duration pause = backoff_.failed(now, rng_);
  return first_trouble ? Duration::zero() : pause;
}

void WatchMachine::resume_with(Resume then, Duration pause, Instant now, Outputs& out) {
  if (pause > Duration::zero()) {
    out.push_back(watch::WakeAt{now + pause});
    state_ = watch::BackingOff{now + pause, std::move(then)};
  } else if (auto* listing = std::get_if<watch::Listing>(&then)) {
    list(std::move(*listing), out);
  } else if (auto* listed = std::get_if<watch::Listed>(&then)) {
    open(std::move(listed->resource_version), now, out);
  } else {
    list(first_page(), out);
  }
}

// What is known of it stays; of an object that was never read that is nothing.
void WatchMachine::leave_out(TooLargeObject& object, bool listed, Outputs& out) {
  if (Result<ObjectKey> key = key_of(object.object)) {
    object.error = with_context(object.error, to_text(*key));
    if (listed) out.push_back(watch::Emit{InitKeep{*std::move(key)}});
  }
  out.push_back(watch::Trouble{std::move(object.error), "keeps what was known of it"});
}

void WatchMachine::list(watch::Listing listing, Outputs& out) {
  out.push_back(watch::SendList{listing.continue_token, listing.limit});
  state_ = std::move(listing);
}

void WatchMachine::open(std::string resource_version, Instant now, Outputs& out) {
  const auto span = settings_.watch_timeout_most - settings_.watch_timeout_least;
  const std::chrono::seconds more(rng_.below(static_cast<std::uint64_t>(std::max<std::int64_t>(span.count(), 0)) + 1));
  out.push_back(watch::OpenWatch{resource_version, settings_.watch_timeout_least + more});
  out.push_back(watch::WakeAt{now + settings_.idle_limit});
  state_ = watch::Watching{.resource_version = std::move(resource_version), .opened_at = now, .last_activity = now};
}

void WatchMachine::close(std::variant<watch::Empty, watch::Listed> then, Duration pause, Error error, Outputs& out) {
  const Resume resume = std::visit([](const auto& one) -> Resume { return one; }, then);
  out.push_back(watch::Trouble{std::move(error), describe(resume, pause)});
  out.push_back(watch::CloseWatch{});
  state_ = watch::Closing{std::move(then), pause};
}

}  // namespace rekindle::op
