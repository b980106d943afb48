#include "worker-sidecar/protocol/local_message.h"

#include "common/base/format.h"
#include "common/base/json_text.h"
#include "common/contract/job_limits.h"
#include "worker-sidecar/protocol/frame.h"
#include "worker-sidecar/protocol/message_fields.h"
#include "worker-sidecar/protocol/message_kinds.h"

namespace rekindle {
namespace {

using namespace message_fields;

// One function a message: to JSON.

Json to_json(const HelloMessage& m) {
  Json object = {{"rank", m.rank},
                 {"world_size", m.world_size},
                 {"pid", m.pid},
                 {"state_bytes_max", m.state_bytes_max},
                 {"library_version", m.library_version},
                 {"term", m.term}};
  if (m.rebuilds) object["rebuilds"] = true;
  return object;
}
Json to_json(const ControlMessage& m) {
  return {{"slot_bytes", m.slot_bytes},
          {"incarnation", m.incarnation},
          {"checkpoint_dir", m.checkpoint_dir},
          {"ranks_here", m.ranks_here}};
}
Json to_json(const WelcomeMessage&) { return Json::object(); }
Json to_json(const RegisteredMessage& m) {
  Json states = Json::array();
  for (const StateDescription& state : m.states) {
    states.push_back({{"name", state.name}, {"bytes", state.bytes}});
    if (state.variable) states.back()["variable"] = true;
  }
  return {{"tensors", Json::array()}, {"states", std::move(states)}, {"late", m.late}};
}
Json to_json(const OfferMessage& m) {
  Json object = {{"path", m.path}, {"step", m.step}, {"manifest_hash", m.manifest_hash}};
  if (m.job_checked) object["job_checked"] = true;
  return object;
}
Json to_json(const LoadedMessage& m) {
  Json object = {{"path", m.path}, {"step", m.step}, {"ok", m.ok}, {"state_missing", m.state_missing}};
  if (!m.ok) object["error"] = encode_error(m.error);
  if (!m.way.empty()) {
    object["way"] = m.way;
    object["bytes_read"] = m.bytes_read;
  }
  return object;
}
Json to_json(const TakeMessage& m) {
  Json object = {{"attempt", m.attempt}, {"path", m.path}, {"step", m.step}, {"manifest_hash", m.manifest_hash}};
  if (m.summary) object["summary"] = encode_summary(*m.summary);
  if (!m.job_layout_hash.empty()) object["job_layout_hash"] = m.job_layout_hash;
  return object;
}
Json to_json(const WriteMessage& m) {
  return {{"term", m.term}, {"hold", m.hold}, {"step", m.step},
          {"path", m.path}, {"file", m.file}, {"pieces", encode_pieces(m.pieces)}};
}
Json to_json(const WrittenMessage& m) {
  Json object = encode_written(m.written);
  object["term"] = m.term;
  return object;
}
Json to_json(const WriteFailedMessage& m) { return {{"term", m.term}, {"error", encode_error(m.error)}}; }
Json to_json(const CollectiveFailedMessage& m) {
  Json object = {{"step", m.step}, {"why", m.why.substr(0, kMessageTextBytesMax)}};
  if (m.rebuilt != 0) object["rebuilt"] = m.rebuilt;
  return object;
}
Json to_json(const CheckpointWantedMessage& m) { return {{"step", m.step}}; }
Json to_json(const FinishedMessage& m) { return {{"exit_code", m.exit_code}}; }
Json to_json(const EndMessage& m) { return {{"exit_code", m.exit_code}}; }
Json to_json(const RefusedMessage& m) { return {{"error", encode_error(m.error)}}; }
Json to_json(const StatusMessage& m) {
  Result<Json> state = parse_json(m.state_text, "status", kMessageBodyBytesMax);
  return state && state->is_object() ? *state : Json::object();
}
Json to_json(const HookMessage& m) { return {{"container", m.container}, {"seconds_left", m.seconds_left}}; }
Json to_json(const HookDoneMessage& m) {
  return {{"outcome", to_string(m.outcome)},
          {"step", m.step},
          {"path", m.path},
          {"milliseconds", m.milliseconds},
          {"message", m.message.substr(0, kMessageTextBytesMax)}};
}
Json to_json(const KeepMessage& m) { return {{"serial", m.serial}}; }
Json to_json(const KeptMessage& m) {
  Json object = {{"serial", m.serial}, {"ok", m.ok}};
  if (!m.ok) object["error"] = encode_error(m.error);
  return object;
}
Json to_json(const SnapshottedMessage& m) {
  Json object = {{"step", m.step}, {"microseconds", m.microseconds}, {"ok", m.ok}};
  if (!m.ok) object["error"] = encode_error(m.error);
  return object;
}
Json to_json(const CheckpointDoneMessage& m) {
  return {{"requested", m.requested},
          {"outcome", to_string(m.outcome)},
          {"step", m.step},
          {"path", m.path},
          {"message", m.message.substr(0, kMessageTextBytesMax)}};
}
Json to_json(const RebuiltMessage& m) { return {{"term", m.term}, {"step", m.step}}; }

template <typename Message>
std::string encode_local_body(const Message& m) {
  return dump_json(to_json(m));
}
std::string encode_local_body(const RegisteredMessage& m) {
  std::string body = dump_json(to_json(m));
  put_json_elements(body, "tensors", layout_elements(m.layout));
  return body;
}

// And back. Reading goes on after a fault; finish() tells.

void read(JsonFields& in, const Json&, HelloMessage& m) {
  m.rank = rank_number(in, "rank");
  m.world_size = number32(in, "world_size", kRanksMax);
  m.pid = in.integer("pid");
  m.state_bytes_max = in.number("state_bytes_max");
  m.library_version = short_text(in, "library_version", 64);
  m.term = in.number_or("term", 0);
  m.rebuilds = in.boolean_or("rebuilds", false);
  if (m.world_size == 0) in.refuse("world_size", "must not be 0");
  else if (m.rank >= m.world_size) in.refuse("rank", "must be below world_size");
}
void read(JsonFields& in, const Json&, ControlMessage& m) {
  m.slot_bytes = number32(in, "slot_bytes");
  m.incarnation = in.number("incarnation");
  m.checkpoint_dir = short_text(in, "checkpoint_dir");
  const std::uint64_t ranks_here = in.number_or("ranks_here", 1);
  if (ranks_here == 0 || ranks_here > kRanksMax) in.refuse("ranks_here", format("must be between 1 and {}", kRanksMax));
  else m.ranks_here = static_cast<std::uint32_t>(ranks_here);
}
void read(JsonFields&, const Json&, WelcomeMessage&) {}
void read(JsonFields& in, const Json&, RegisteredMessage& m) {
  // They were read one by one (decode_registered).
  if (!in.array("tensors").empty()) in.refuse("tensors", "must be objects");
  m.states = each<StateDescription>(in, "states", kStatesMax, [](const Json& element) -> Result<StateDescription> {
    JsonFields part(element, "state");
    StateDescription state{.name = short_text(part, "name", kNameBytesMax),
                           .bytes = part.number("bytes"),
                           .variable = part.boolean_or("variable", false)};
    if (Status status = part.finish(); !status) return std::unexpected(status.error());
    return state;
  });
  adopt(in, "states", check_states(m.states));
  m.late = in.boolean_or("late", false);
}
void read(JsonFields& in, const Json&, OfferMessage& m) {
  m.path = folder_name(in, "path");
  m.step = in.number_or("step", 0);
  m.manifest_hash = optional_text(in, "manifest_hash", 64);
  m.job_checked = in.boolean_or("job_checked", false);
}
void read(JsonFields& in, const Json&, LoadedMessage& m) {
  m.path = folder_name(in, "path");
  m.step = in.number("step");
  m.ok = in.boolean("ok");
  m.error = read_error(in, "error");
  m.state_missing = in.boolean_or("state_missing", false);
  if (in.has("way")) m.way = short_text(in, "way", 64);
  m.bytes_read = in.number_or("bytes_read", 0);
}
void read(JsonFields& in, const Json&, TakeMessage& m) {
  m.attempt = number32(in, "attempt");
  m.path = folder_name(in, "path");
  m.step = in.number("step");
  m.manifest_hash = optional_text(in, "manifest_hash", 64);
  if (in.has("summary")) m.summary = read_summary(in, "summary");
  m.job_layout_hash = in.text_or("job_layout_hash", "");
  if (m.attempt == 0) in.refuse("attempt", "must not be 0");
}
void read(JsonFields& in, const Json&, WriteMessage& m) {
  m.term = in.number("term");
  m.hold = number32(in, "hold");
  m.step = in.number("step");
  m.path = file_name(in, "path");
  m.file = file_name(in, "file");
  m.pieces = read_pieces(in, "pieces");
}
void read(JsonFields& in, const Json&, WrittenMessage& m) {
  m.term = in.number("term");
  m.written = read_written(in);
}
void read(JsonFields& in, const Json&, WriteFailedMessage& m) {
  m.term = in.number("term");
  m.error = read_error(in, "error");
}
void read(JsonFields& in, const Json&, CollectiveFailedMessage& m) {
  m.step = in.number("step");
  m.why = optional_text(in, "why", 2 * kMessageTextBytesMax);
  m.rebuilt = in.number_or("rebuilt", 0);
}
void read(JsonFields& in, const Json&, CheckpointWantedMessage& m) { m.step = in.number_or("step", 0); }
void read(JsonFields& in, const Json&, FinishedMessage& m) { m.exit_code = in.integer("exit_code"); }
void read(JsonFields& in, const Json&, EndMessage& m) { m.exit_code = in.integer("exit_code"); }
void read(JsonFields& in, const Json&, RefusedMessage& m) { m.error = read_error(in, "error"); }
void read(JsonFields&, const Json& object, StatusMessage& m) { m.state_text = dump_json(object); }
void read(JsonFields& in, const Json& object, HookMessage& m) {
  m.container = optional_text(in, "container");
  m.seconds_left = real_number(in, object, "seconds_left", kMessageSecondsMax);
}
void read(JsonFields& in, const Json&, HookDoneMessage& m) {
  m.outcome = read_enum<HookOutcome>(in, "outcome", "outcome of a hook");
  m.step = in.number_or("step", 0);
  m.path = folder_name(in, "path");
  m.milliseconds = in.number_or("milliseconds", 0);
  m.message = optional_text(in, "message", 2 * kMessageTextBytesMax);
}
void read(JsonFields& in, const Json&, KeepMessage& m) { m.serial = in.number("serial"); }
void read(JsonFields& in, const Json&, KeptMessage& m) {
  m.serial = in.number("serial");
  m.ok = in.boolean("ok");
  m.error = read_error(in, "error");
}
void read(JsonFields& in, const Json&, SnapshottedMessage& m) {
  m.step = in.number("step");
  m.microseconds = in.number("microseconds");
  m.ok = in.boolean("ok");
  m.error = read_error(in, "error");
}
void read(JsonFields& in, const Json&, CheckpointDoneMessage& m) {
  m.requested = in.number("requested");
  m.outcome = read_enum<HookOutcome>(in, "outcome", "outcome of a checkpoint");
  m.step = in.number_or("step", 0);
  m.path = folder_name(in, "path");
  m.message = optional_text(in, "message", 2 * kMessageTextBytesMax);
}
void read(JsonFields& in, const Json&, RebuiltMessage& m) {
  m.term = in.number("term");
  m.step = in.number("step");
}

template <typename Message>
Result<LocalMessage> decode_local_object(const Json& object) {
  JsonFields in(object, format("message {}", Message::kName));
  Message message;
  read(in, object, message);
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  return message;
}

template <typename Message>
Result<LocalMessage> decode_local_body(std::string_view body) {
  const Result<Json> object = parse_body(Message::kKind, body);
  if (!object) return std::unexpected(object.error());
  return decode_local_object<Message>(*object);
}

template <>
Result<LocalMessage> decode_local_body<RegisteredMessage>(std::string_view body) {
  Layout layout;
  const Result<Json> object = parse_json_elements(
      body, "message registered", kMessageBodyBytesMax, {"tensors"}, [&](const Json& element) -> Status {
        if (layout.tensors.size() == kTensorsMax)
          return fail(ErrorCode::invalid_input, format("tensors has more than {} elements", kTensorsMax));
        Result<TensorDescription> tensor = decode_layout_element(element);
        if (!tensor) return std::unexpected(tensor.error());
        layout.tensors.push_back(std::move(*tensor));
        return {};
      });
  if (!object) return std::unexpected(with_context(object.error(), "message registered"));
  Result<LocalMessage> message = decode_local_object<RegisteredMessage>(*object);
  if (!message) return message;
  if (Status status = check_layout(layout); !status)
    return std::unexpected(with_context(status.error(), "message registered: tensors"));
  std::get<RegisteredMessage>(*message).layout = std::move(layout);
  return message;
}

// Entries of a long report, one by one.
template <>
Result<LocalMessage> decode_local_body<WrittenMessage>(std::string_view body) {
  std::vector<WrittenEntry> entries;
  const Result<Json> object = parse_json_elements(
      body, "message written", kMessageBodyBytesMax, {"entries"}, [&](const Json& element) -> Status {
        if (entries.size() == kPiecesMax)
          return fail(ErrorCode::invalid_input, format("entries has more than {} elements", kPiecesMax));
        Result<WrittenEntry> entry = read_written_entry(element);
        if (!entry) return std::unexpected(entry.error());
        entries.push_back(std::move(*entry));
        return {};
      });
  if (!object) return std::unexpected(with_context(object.error(), "message written"));
  Result<LocalMessage> message = decode_local_object<WrittenMessage>(*object);
  if (message) std::get<WrittenMessage>(*message).written.entries = std::move(entries);
  return message;
}

template <typename Message>
struct LocalKind {
  static constexpr std::uint16_t value = Message::kKind;
};
using LocalKinds = MessageKinds<LocalKind, LocalMessage>;

}  // namespace

std::uint16_t local_kind_of(const LocalMessage& message) { return LocalKinds::kind_of(message); }

EncodedMessage encode_local_message(const LocalMessage& message) {
  return {local_kind_of(message), std::visit([](const auto& m) { return encode_local_body(m); }, message)};
}

Result<LocalMessage> decode_local_message(std::uint16_t kind, std::string_view body) {
  std::optional<Result<LocalMessage>> message =
      LocalKinds::decode(kind, [&]<typename Message>() { return decode_local_body<Message>(body); });
  if (message) return *std::move(message);
  return fail(ErrorCode::not_found, format("kind {} is no message between rank and sidecar", kind));
}

}  // namespace rekindle
