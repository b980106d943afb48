// What the sidecar says and what follows from it: a part of link.h, all on the library's thread.
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/base/format.h"
#include "common/contract/exit_codes.h"
#include "worker-sidecar/runtime/src/link.h"
#include "worker-sidecar/runtime/src/say.h"

namespace rekindle::runtime {
namespace {}  // namespace

void Link::handle(SidecarSocket::Arrival arrival) {
  {
    const std::lock_guard held(mutex_);
    // Of a life of the job that is over; what came before the first one has 0.
    if (arrival.attempt != 0 && arrival.attempt < attempt_) return;
  }
  if (const auto* control = std::get_if<ControlMessage>(&arrival.message)) return on_control(*control);
  if (const auto* take = std::get_if<TakeMessage>(&arrival.message)) return on_take(*take);
  if (const auto* refused = std::get_if<RefusedMessage>(&arrival.message)) return on_refused(*refused);
  if (const auto* end = std::get_if<EndMessage>(&arrival.message)) return on_end(*end);
  if (const auto* keep = std::get_if<KeepMessage>(&arrival.message)) return on_keep(*keep);
  if (auto* order = std::get_if<WriteMessage>(&arrival.message)) return on_write(std::move(*order));
  if (std::holds_alternative<WelcomeMessage>(arrival.message)) {
    const std::lock_guard held(mutex_);
    // Without a block there is nothing that rk_open could return with.
    if (mapping_) welcomed_ = true;
    changed_.notify_all();
  } else if (auto* offer = std::get_if<OfferMessage>(&arrival.message)) {
    const std::lock_guard held(mutex_);
    if (attempt_ == 0) restore_events_.push_back(std::move(*offer));
    changed_.notify_all();
  }
}

void Link::on_control(const ControlMessage& control) {
  const int descriptor = socket_.take_descriptor();
  if (descriptor < 0) return disconnect("the sidecar sent no control block");
  Outcome<ControlMapping> fresh = ControlMapping::map(descriptor, options_.rank, options_.world_size);
  ::close(descriptor);
  const std::lock_guard held(mutex_);
  if (!fresh) {
    last_problem_ = fresh.error().sentence;
    if (!welcomed_) refused_ = fresh.error();
    changed_.notify_all();
    socket_.close();
    return;
  }
  const bool same = mapping_ && mapping_->incarnation == (*fresh)->incarnation;
  if (!same && attempt_ != 0) {
    last_problem_ = "it came back with another control block than the one this process trains with";
    socket_.close();
    return;
  }
  if (mapping_ && mapping_->slot_bytes != (*fresh)->slot_bytes) {
    refused_ = Failure{RK_ERROR_UNAVAILABLE, "the sidecar came back with slots of another size; start the pod again"};
    changed_.notify_all();
    socket_.close();
    return;
  }
  if (!same) adopt_block(*std::move(fresh));
  stage_ = Stage::linked;
  pause_ = limits_.first_pause;
  if (said_unprotected_) say("the sidecar is back; the run is protected again");
  said_unprotected_ = false;
  gates_.expect_orders();
  job_folder_ = control.checkpoint_dir;
  ranks_here_ = control.ranks_here;
  reachable_ = true;
  absent_too_long_ = false;
  announce_ = registered_.has_value();
  if (collective_failed_) requests_.push_back(*collective_failed_);
}

// mutex_ is held.
void Link::adopt_block(ControlMapping mapping) {
  owner_.release();
  const bool had_one = static_cast<bool>(mapping_);
  mapping_ = std::move(mapping);
  if (Status status = owner_.hold(mapping_->owner, mapping_->owner_ready); !status) say(status.error().message);
  small_state_.attach(*mapping_);
  gates_.attach(*mapping_);
  if (had_one) gates_.publish(gates_.word());
}

void Link::on_take(const TakeMessage& take) {
  const std::lock_guard held(mutex_);
  if (attempt_ != 0) return;
  attempt_ = std::max<std::uint32_t>(take.attempt, 1);
  if (registered_) registered_->late = true;
  restore_events_.push_back(take);
  changed_.notify_all();
}

void Link::on_refused(const RefusedMessage& refused) {
  const std::lock_guard held(mutex_);
  last_problem_ = refused.error.message;
  // Later on the run goes on without, and the sidecar is asked again.
  if (attempt_ == 0) refused_ = refuse(refused.error).error();
  // Whoever was welcomed is restoring: what was wrong about the rank itself was said before.
  if (refused_ && welcomed_ && refused.error.code == ErrorCode::invalid_input) refused_->status = RK_ERROR_MISMATCH;
  changed_.notify_all();
  socket_.close();
}

void Link::on_write(WriteMessage order) {
  if (order.term < highest_term_) {
    send(WriteFailedMessage{.term = order.term,
                            .error = {.code = ErrorCode::refused,
                                      .message = format("rank {} has seen term {} and takes no order of term {}",
                                                        options_.rank, highest_term_, order.term),
                                      .retry = Retry::no}});
    return;
  }
  highest_term_ = order.term;
  std::erase_if(orders_, [&](const WriteMessage& waiting) { return waiting.term < order.term; });
  orders_.push_back(std::move(order));
}

void Link::on_keep(const KeepMessage& keep) {
  const int descriptor = socket_.take_descriptor();
  if (descriptor < 0) return disconnect("the sidecar sent no shadow");
  std::uint64_t incarnation = 0;
  ShadowHost host;
  {
    const std::lock_guard held(mutex_);
    if (mapping_) incarnation = mapping_->incarnation;
    host.ranks = ranks_here_;
  }
  Outcome<ShadowMapping> mapping = ShadowMapping::map(descriptor, options_.rank, incarnation, host);
  ::close(descriptor);
  if (!mapping) {
    // An older plan may not fit what is registered any more, and the sidecar does not read it
    // again.
    keeper_.offer(nullptr);
    return send(
        KeptMessage{.serial = keep.serial,
                    .ok = false,
                    .error = {.code = ErrorCode::exhausted, .message = mapping.error().sentence, .retry = Retry::no}});
  }
  keeper_.offer(std::make_shared<ShadowMapping>(*std::move(mapping)));
  send(KeptMessage{.serial = keep.serial, .ok = true, .error = {}});
}

void Link::on_end(const EndMessage& end) {
  if (options_.never_exit) {
    gates_.end();
    return;
  }
  // No destructors and no handlers: the training thread is parked inside the program's code, and
  // the container is ending.
  ::_exit(end.exit_code > 0 && end.exit_code < 256 ? static_cast<int>(end.exit_code) : kStoppedExitCode);
}

void Link::carry_out(const WriteMessage& order) {
  ControlBlock* block = nullptr;
  std::string folder;
  {
    const std::lock_guard held(mutex_);
    if (!mapping_) return;
    block = &*mapping_;
    folder = job_folder_;
  }
  const auto may_go_on = [&]() -> Status {
    exchange();
    if (stage_ != Stage::linked) return fail(ErrorCode::unavailable, "the sidecar that gave the order is gone");
    if (highest_term_ > order.term)
      return fail(ErrorCode::gone, format("an order of term {} replaced it", highest_term_));
    const std::lock_guard held(mutex_);
    if (closing_) return fail(ErrorCode::gone, "the program closed its session");
    return {};
  };
  const PinnedRank rank{.registry = registry_, .small_state = small_state_, .gates = gates_, .block = *block};
  Result<WrittenFile> written =
      write_shard(*limits_.file_system, folder, order, rank, may_go_on, options_.checkpoints.bytes_per_second_max);
  if (!written) return send(WriteFailedMessage{.term = order.term, .error = written.error()});
  WrittenMessage report{.term = order.term, .written = *std::move(written)};
  EncodedMessage encoded = encode_local_message(report);
  if (encoded.body.size() > kRankMessageBytesMax) {
    // Hashes of chunks only help to say where damage is; a report must fit into a message.
    report.written.chunks.clear();
    encoded = encode_local_message(report);
  }
  if (const std::size_t bytes = encoded.body.size(); bytes > kRankMessageBytesMax) {
    return send(WriteFailedMessage{
        .term = order.term,
        .error = {.code = ErrorCode::exhausted,
                  .message = format(
                      "the report of {} pieces takes {} bytes, and a message holds {}; register fewer, larger tensors",
                      order.pieces.size(), bytes, kRankMessageBytesMax),
                  .retry = Retry::no}});
  }
  send(encoded);
}

}  // namespace rekindle::runtime
