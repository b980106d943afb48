#include "worker-sidecar/protocol/peer_message.h"

#include <algorithm>

#include "common/base/format.h"
#include "common/contract/job_limits.h"
#include "worker-sidecar/checkpoint/hash.h"
#include "worker-sidecar/protocol/frame.h"
#include "worker-sidecar/protocol/message_fields.h"
#include "worker-sidecar/protocol/message_kinds.h"

namespace rekindle {
namespace {

using namespace message_fields;

constexpr std::size_t kShadowStepsMax = 16;  // of one rank

// Fields that a plain data-parallel job never needs are left out when they are empty.
void put_layouts(Json& object, const std::vector<HeldLayout>& layouts) {
  if (layouts.empty()) return;
  Json list = Json::array();
  for (const HeldLayout& held : layouts) {
    list.push_back({{"hash", held.hash}, {"ranks", held.ranks}});
    if (held.layout) list.back()["tensors"] = encode_layout(*held.layout);
  }
  object["layouts"] = std::move(list);
}
void put_hashes(Json& object, const std::vector<std::string>& hashes) {
  if (!hashes.empty()) object["layout_hashes"] = hashes;
}

Json to_json(const PeerHelloMessage& m) {
  return {
      {"job_uid", m.job_uid}, {"pod_uid", m.pod_uid}, {"ordinal", m.ordinal}, {"pods", m.pods}, {"version", m.version}};
}
Json to_json(const ReadyMessage& m) {
  Json ranks = Json::array();
  for (const ReadyRank& rank : m.ranks) ranks.push_back({{"rank", rank.rank}, {"state", to_string(rank.state)}});
  Json object = {{"ordinal", m.ordinal},
                 {"ranks", std::move(ranks)},
                 {"layout_hash", m.layout_hash},
                 {"attempt", m.attempt},
                 {"step", m.step},
                 {"path", m.path},
                 {"manifest_hash", m.manifest_hash}};
  put_layouts(object, m.layouts);
  return object;
}
Json to_json(const BeginMessage& m) {
  Json object = Json::object();
  put_hashes(object, m.layout_hashes);
  put_layouts(object, m.layouts);
  return object;
}
Json to_json(const PodLoadedMessage& m) {
  Json object = {{"ordinal", m.ordinal}, {"path", m.path}, {"step", m.step}, {"ok", m.ok}};
  if (!m.ok) object["error"] = encode_error(m.error);
  return object;
}
Json to_json(const TriggerMessage& m) { return encode_trigger(m); }
Json to_json(const CollectMessage& m) {
  Json object = {{"term", m.term}, {"trigger", encode_trigger(m.trigger)}};
  if (!m.job_layout_hash.empty()) object["job_layout_hash"] = m.job_layout_hash;
  put_hashes(object, m.layout_hashes);
  return object;
}
Json to_json(const CollectedMessage& m) {
  Json ranks = Json::array();
  for (const CollectedRank& rank : m.ranks) {
    ranks.push_back({{"rank", rank.rank},
                     {"alive", rank.alive},
                     {"clean", rank.clean},
                     {"step", rank.step},
                     {"phase", to_string(rank.phase)}});
    if (!rank.shadow_steps.empty()) ranks.back()["shadow_steps"] = rank.shadow_steps;
    if (rank.rebuilds) ranks.back()["rebuilds"] = true;
    if (rank.rebuild_term != 0) ranks.back()["rebuild_term"] = rank.rebuild_term;
  }
  Json object = {{"term", m.term}, {"ordinal", m.ordinal}, {"ranks", std::move(ranks)}};
  put_layouts(object, m.layouts);
  if (m.more) object["more"] = true;
  return object;
}
Json to_json(const PermitMessage& m) { return {{"term", m.term}, {"step", m.step}, {"ranks", m.ranks}}; }
Json to_json(const AssignMessage& m) {
  Json writers = Json::array();
  for (const WriterPlan& writer : m.writers) {
    writers.push_back({{"rank", writer.rank}, {"file", writer.file}, {"pieces", encode_pieces(writer.pieces)}});
    if (writer.source != WriteSource::memory) writers.back()["source"] = to_string(writer.source);
  }
  Json object = {{"term", m.term}, {"step", m.step}, {"path", m.path}, {"writers", std::move(writers)}};
  if (m.writers_in_all != 0) object["writers_in_all"] = m.writers_in_all;
  return object;
}
Json to_json(const PodWrittenMessage& m) {
  Json ranks = Json::array();
  for (const RankWrittenFile& rank : m.ranks) {
    Json object = encode_written(rank.written);
    object["rank"] = rank.rank;
    ranks.push_back(std::move(object));
  }
  Json states = Json::array();
  for (const ManifestState& state : m.states) {
    states.push_back({{"rank", state.rank},
                      {"name", state.name},
                      {"file", state.file},
                      {"key", state.key},
                      {"bytes", state.bytes},
                      {"begin_byte", state.begin_byte},
                      {"end_byte", state.end_byte}});
  }
  Json object = {{"term", m.term},
                 {"ordinal", m.ordinal},
                 {"ok", m.ok},
                 {"failed_ranks", m.failed_ranks},
                 {"ranks", std::move(ranks)},
                 {"states", std::move(states)},
                 {"inexact_ranks", m.inexact_ranks}};
  if (!m.ok) object["error"] = encode_error(m.error);
  if (m.more) object["more"] = true;
  if (!m.states_file.name.empty()) {
    object["states_file"] = {
        {"name", m.states_file.name}, {"bytes", m.states_file.bytes}, {"hash", m.states_file.hash}};
    if (!m.states_file.chunks.empty()) object["states_file"]["chunks"] = m.states_file.chunks;
  }
  return object;
}
Json to_json(const CommittedMessage& m) {
  return {{"term", m.term},
          {"step", m.step},
          {"path", m.path},
          {"manifest_hash", m.manifest_hash},
          {"after", to_string(m.after)},
          {"bytes", m.bytes},
          {"seconds", m.seconds}};
}
Json to_json(const FailedMessage& m) {
  return {{"term", m.term}, {"error", encode_error(m.error)}, {"after", to_string(m.after)}};
}
Json to_json(const PodFinishedMessage& m) { return {{"ordinal", m.ordinal}}; }
Json to_json(const LayoutsMessage& m) {
  Json object = {{"ordinal", m.ordinal}};
  put_layouts(object, m.layouts);
  return object;
}
Json to_json(const PeerKeepMessage& m) {
  return {{"term", m.term},       {"snapshots", m.snapshots}, {"shadow_every_steps", m.shadow_every_steps},
          {"rank", m.share.rank}, {"file", m.share.file},     {"pieces", encode_pieces(m.share.pieces)}};
}
Json to_json(const PeerKeptMessage& m) {
  Json object = {{"term", m.term}, {"rank", m.rank}, {"ok", m.ok}};
  if (!m.ok) object["error"] = encode_error(m.error);
  return object;
}
Json to_json(const SnapshotMessage& m) { return {{"term", m.term}, {"step", m.step}}; }
Json to_json(const PodSnapshottedMessage& m) {
  Json object = {
      {"term", m.term}, {"ordinal", m.ordinal}, {"outcome", to_string(m.outcome)}, {"microseconds", m.microseconds}};
  if (m.outcome == SnapshotOutcome::failed) object["error"] = encode_error(m.error);
  return object;
}

std::uint32_t ordinal_number(JsonFields& in, std::string_view name) { return number32(in, name, kPodsMax - 1); }

Result<HeldLayout> read_held_layout(const Json& element) {
  JsonFields part(element, "layout");
  HeldLayout held{.hash = short_text(part, "hash", 64), .ranks = rank_numbers(part, "ranks"), .layout = {}};
  if (part.has("tensors")) {
    Result<Layout> layout = decode_layout(limited_array(part, "tensors", kTensorsMax));
    if (layout) held.layout = std::move(*layout);
    else part.refuse("tensors", layout.error().message);
  }
  if (Status status = part.finish(); !status) return std::unexpected(status.error());
  return held;
}
std::vector<HeldLayout> read_layouts(JsonFields& in) {
  if (!in.has("layouts")) return {};
  return each<HeldLayout>(in, "layouts", kRanksMax, read_held_layout);
}
std::vector<std::string> read_hashes(JsonFields& in) {
  std::vector<std::string> hashes = in.texts_or_empty("layout_hashes");
  for (const std::string& hash : hashes) {
    if (!is_hash_text(hash)) in.refuse("layout_hashes", "must be of 32 hex digits each");
  }
  return hashes;
}

void read(JsonFields& in, const Json&, PeerHelloMessage& m) {
  m.job_uid = short_text(in, "job_uid", 255);
  m.pod_uid = short_text(in, "pod_uid", 255);
  m.ordinal = ordinal_number(in, "ordinal");
  m.pods = number32(in, "pods", kPodsMax);
  m.version = short_text(in, "version", 64);
}
void read(JsonFields& in, const Json&, ReadyMessage& m) {
  m.ordinal = ordinal_number(in, "ordinal");
  m.ranks = each<ReadyRank>(in, "ranks", kRanksMax, [](const Json& element) -> Result<ReadyRank> {
    JsonFields part(element, "rank");
    ReadyRank rank{.rank = rank_number(part, "rank"), .state = read_enum<ReadyState>(part, "state", "state of a rank")};
    if (Status status = part.finish(); !status) return std::unexpected(status.error());
    return rank;
  });
  m.layout_hash = optional_text(in, "layout_hash", 64);
  m.attempt = number32(in, "attempt");
  m.step = in.number("step");
  m.path = folder_name(in, "path");
  m.manifest_hash = optional_text(in, "manifest_hash", 64);
  m.layouts = read_layouts(in);
}
void read(JsonFields& in, const Json&, BeginMessage& m) {
  m.layout_hashes = read_hashes(in);
  m.layouts = read_layouts(in);
}
void read(JsonFields& in, const Json&, PodLoadedMessage& m) {
  m.ordinal = ordinal_number(in, "ordinal");
  m.path = folder_name(in, "path");
  m.step = in.number("step");
  m.ok = in.boolean("ok");
  m.error = read_error(in, "error");
}
void read(JsonFields& in, const Json& object, TriggerMessage& m) {
  Result<TriggerMessage> trigger = decode_trigger(object);
  if (trigger) m = std::move(*trigger);
  else in.refuse("cause", trigger.error().message);
}
void read(JsonFields& in, const Json&, CollectMessage& m) {
  m.term = in.number("term");
  Result<TriggerMessage> trigger = decode_trigger(in.object("trigger"));
  if (trigger) m.trigger = std::move(*trigger);
  else in.refuse("trigger", trigger.error().message);
  m.job_layout_hash = optional_text(in, "job_layout_hash", 64);
  m.layout_hashes = read_hashes(in);
}
void read(JsonFields& in, const Json&, CollectedMessage& m) {
  m.term = in.number("term");
  m.ordinal = ordinal_number(in, "ordinal");
  m.ranks = each<CollectedRank>(in, "ranks", kRanksMax, [](const Json& element) -> Result<CollectedRank> {
    JsonFields part(element, "rank");
    CollectedRank rank{.rank = rank_number(part, "rank"),
                       .alive = part.boolean("alive"),
                       .clean = part.boolean("clean"),
                       .step = part.number("step"),
                       .phase = read_enum<RankPhase>(part, "phase", "phase of a rank"),
                       .rebuilds = part.boolean_or("rebuilds", false),
                       .rebuild_term = part.number_or("rebuild_term", 0)};
    if (rank.step >> 48 != 0) part.refuse("step", "must fit 48 bits");
    if (part.has("shadow_steps")) {
      for (const Json& step : limited_array(part, "shadow_steps", kShadowStepsMax)) {
        if (step.is_number_unsigned() && step.get<std::uint64_t>() >> 48 == 0)
          rank.shadow_steps.push_back(step.get<std::uint64_t>());
        else part.refuse("shadow_steps", "must be numbers of at most 48 bits");
      }
      std::sort(rank.shadow_steps.begin(), rank.shadow_steps.end());
    }
    if (Status status = part.finish(); !status) return std::unexpected(status.error());
    return rank;
  });
  m.layouts = read_layouts(in);
  m.more = in.boolean_or("more", false);
}
void read(JsonFields& in, const Json&, PermitMessage& m) {
  m.term = in.number("term");
  m.step = in.number("step");
  m.ranks = rank_numbers(in, "ranks");
}
void read(JsonFields& in, const Json&, AssignMessage& m) {
  m.term = in.number("term");
  m.step = in.number("step");
  m.path = file_name(in, "path");
  m.writers = each<WriterPlan>(in, "writers", kRanksMax, [](const Json& element) -> Result<WriterPlan> {
    JsonFields part(element, "writer");
    WriterPlan writer{
        .rank = rank_number(part, "rank"), .file = file_name(part, "file"), .pieces = read_pieces(part, "pieces")};
    const std::string source = part.text_or("source", "memory");
    if (source == to_string(WriteSource::shadow)) writer.source = WriteSource::shadow;
    else if (source != to_string(WriteSource::memory)) part.refuse("source", "must be memory or shadow");
    if (Status status = part.finish(); !status) return std::unexpected(status.error());
    return writer;
  });
  const std::uint64_t in_all = in.number_or("writers_in_all", 0);
  if (in_all > kRanksMax) in.refuse("writers_in_all", format("must be at most {}", kRanksMax));
  else m.writers_in_all = static_cast<std::uint32_t>(in_all);
}

Result<RankWrittenFile> read_rank_written(const Json& element) {
  JsonFields part(element, "rank");
  RankWrittenFile rank{.rank = rank_number(part, "rank"), .written = read_written(part)};
  if (Status status = part.finish(); !status) return std::unexpected(status.error());
  return rank;
}
Result<ManifestState> read_state(const Json& element) {
  JsonFields part(element, "state");
  ManifestState state{.rank = rank_number(part, "rank"),
                      .name = short_text(part, "name", kNameBytesMax),
                      .file = file_name(part, "file"),
                      .key = short_text(part, "key"),
                      .bytes = part.number("bytes"),
                      .begin_byte = part.number("begin_byte"),
                      .end_byte = part.number("end_byte")};
  if (state.end_byte < state.begin_byte) part.refuse("end_byte", "must not be before begin_byte");
  if (Status status = part.finish(); !status) return std::unexpected(status.error());
  return state;
}
ManifestFile read_states_file(JsonFields& in) {
  if (!in.has("states_file")) return {};
  JsonFields part(in.object("states_file"), "states_file");
  ManifestFile file{.name = file_name(part, "name"),
                    .bytes = part.number("bytes"),
                    .hash = part.text("hash"),
                    .chunks = part.texts_or_empty("chunks")};
  if (!is_hash_text(file.hash)) part.refuse("hash", "must be 32 hex digits");
  for (const std::string& chunk : file.chunks) {
    if (!is_hash_text(chunk, 16)) part.refuse("chunks", "must be of 16 hex digits each");
  }
  adopt(in, "states_file", part.finish());
  return file;
}
void read(JsonFields& in, const Json&, PodWrittenMessage& m) {
  m.term = in.number("term");
  m.ordinal = ordinal_number(in, "ordinal");
  m.ok = in.boolean("ok");
  m.error = read_error(in, "error");
  m.failed_ranks = rank_numbers(in, "failed_ranks");
  m.ranks = each<RankWrittenFile>(in, "ranks", kRanksMax, read_rank_written);
  m.states_file = read_states_file(in);
  m.states = each<ManifestState>(in, "states", kPiecesMax, read_state);
  m.inexact_ranks = rank_numbers(in, "inexact_ranks");
  m.more = in.boolean_or("more", false);
}
void read(JsonFields& in, const Json& object, CommittedMessage& m) {
  m.term = in.number("term");
  m.step = in.number("step");
  m.path = folder_name(in, "path");
  m.manifest_hash = optional_text(in, "manifest_hash", 64);
  m.after = read_enum<AfterBreakpoint>(in, "after", "order for the time after a breakpoint");
  m.bytes = in.number("bytes");
  m.seconds = real_number(in, object, "seconds", kMessageSecondsMax);
}
void read(JsonFields& in, const Json&, FailedMessage& m) {
  m.term = in.number("term");
  m.error = read_error(in, "error");
  m.after = read_enum<AfterBreakpoint>(in, "after", "order for the time after a breakpoint");
  if (m.after == AfterBreakpoint::rebuild)
    in.refuse("after", "must not be rebuild: without a checkpoint there is no step to rebuild at");
}
void read(JsonFields& in, const Json&, PodFinishedMessage& m) { m.ordinal = ordinal_number(in, "ordinal"); }
void read(JsonFields& in, const Json&, LayoutsMessage& m) {
  m.ordinal = ordinal_number(in, "ordinal");
  m.layouts = read_layouts(in);
}
void read(JsonFields& in, const Json&, PeerKeepMessage& m) {
  m.term = in.number("term");
  m.snapshots = in.boolean("snapshots");
  m.shadow_every_steps = in.number("shadow_every_steps");
  m.share = {.rank = rank_number(in, "rank"), .file = file_name(in, "file"), .pieces = read_pieces(in, "pieces")};
}
void read(JsonFields& in, const Json&, PeerKeptMessage& m) {
  m.term = in.number("term");
  m.rank = rank_number(in, "rank");
  m.ok = in.boolean("ok");
  m.error = read_error(in, "error");
}
void read(JsonFields& in, const Json&, SnapshotMessage& m) {
  m.term = in.number("term");
  m.step = in.number("step");
}
void read(JsonFields& in, const Json&, PodSnapshottedMessage& m) {
  m.term = in.number("term");
  m.ordinal = ordinal_number(in, "ordinal");
  m.outcome = read_enum<SnapshotOutcome>(in, "outcome", "outcome of a snapshot");
  m.microseconds = in.number("microseconds");
  m.error = read_error(in, "error");
}

// OfferMessage and TakeMessage: they have the body of the local wire.
template <typename Message>
constexpr bool kOfBothWires = requires { Message::kPeerKind; };

template <typename Message>
struct PeerKind {
  static constexpr std::uint16_t value = [] {
    if constexpr (kOfBothWires<Message>) return Message::kPeerKind;
    else return Message::kKind;
  }();
};
using PeerKinds = MessageKinds<PeerKind, PeerMessage>;

template <typename Message>
std::string encode_peer_body(const Message& message) {
  if constexpr (kOfBothWires<Message>) return encode_local_message(message).body;
  else return dump_json(to_json(message));
}

template <typename Message>
Result<PeerMessage> decode_peer_body(std::string_view body) {
  const Result<Json> object = parse_body(PeerKind<Message>::value, body);
  if (!object) return std::unexpected(object.error());
  if constexpr (kOfBothWires<Message>) {
    Result<LocalMessage> message = decode_local_message(Message::kKind, body);
    if (!message) return std::unexpected(message.error());
    return std::get<Message>(std::move(*message));
  } else {
    JsonFields in(*object, format("message {}", Message::kName));
    Message message;
    read(in, *object, message);
    if (Status status = in.finish(); !status) return std::unexpected(status.error());
    return message;
  }
}

}  // namespace

std::uint16_t peer_kind_of(const PeerMessage& message) { return PeerKinds::kind_of(message); }

EncodedMessage encode_peer_message(const PeerMessage& message) {
  return {peer_kind_of(message), std::visit([](const auto& m) { return encode_peer_body(m); }, message)};
}

Result<PeerMessage> decode_peer_message(std::uint16_t kind, std::string_view body) {
  std::optional<Result<PeerMessage>> message =
      PeerKinds::decode(kind, [&]<typename Message>() { return decode_peer_body<Message>(body); });
  if (message) return *std::move(message);
  return fail(ErrorCode::not_found, format("kind {} is no message between sidecars", kind));
}

}  // namespace rekindle
