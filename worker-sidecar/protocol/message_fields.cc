#include "worker-sidecar/protocol/message_fields.h"

#include <array>
#include <cmath>

#include "common/base/format.h"
#include "common/contract/job_limits.h"
#include "worker-sidecar/checkpoint/hash.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/protocol/frame.h"

namespace rekindle::message_fields {
namespace {

constexpr std::array<ErrorCode, 13> kErrorCodes = {
    ErrorCode::invalid_input, ErrorCode::not_found,    ErrorCode::already_exists, ErrorCode::conflict,
    ErrorCode::refused,       ErrorCode::unauthorized, ErrorCode::unavailable,    ErrorCode::deadline_exceeded,
    ErrorCode::gone,          ErrorCode::exhausted,    ErrorCode::corrupt,        ErrorCode::io,
    ErrorCode::internal};

// More than any deadline, so that seconds always fit a Duration.
constexpr std::size_t kWayBytesMax = 64;

}  // namespace

Result<Json> parse_body(std::uint16_t kind, std::string_view body) {
  return parse_json(body, format("the body of a message of kind {}", kind), kMessageBodyBytesMax);
}

std::string short_text(JsonFields& in, std::string_view name, std::size_t bytes_max) {
  std::string value = in.text(name);
  if (value.size() > bytes_max) in.refuse(name, format("is longer than {} bytes", bytes_max));
  return value;
}

std::string optional_text(JsonFields& in, std::string_view name, std::size_t bytes_max) {
  std::string value = in.text_or(name, "");
  if (value.size() > bytes_max) in.refuse(name, format("is longer than {} bytes", bytes_max));
  return value;
}

std::string folder_name(JsonFields& in, std::string_view name) {
  std::string value = in.text(name);
  if (!value.empty() && !is_safe_file_name(value)) in.refuse(name, "must be the name of a folder without a slash");
  return value;
}

std::string file_name(JsonFields& in, std::string_view name) {
  std::string value = in.text(name);
  if (!is_safe_file_name(value)) in.refuse(name, "must be the name of a file without a slash");
  return value;
}

std::uint32_t number32(JsonFields& in, std::string_view name, std::uint64_t max) {
  const std::uint64_t value = in.number(name);
  if (value > max) in.refuse(name, format("must be at most {}", max));
  return static_cast<std::uint32_t>(value);
}

std::uint32_t rank_number(JsonFields& in, std::string_view name) { return number32(in, name, kRanksMax - 1); }

double real_number(JsonFields& in, const Json& object, std::string_view name, double max) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || found == object.end() || !found->is_number()) {
    in.refuse(name, "must be a number");
    return 0;
  }
  const double value = found->get<double>();
  if (!std::isfinite(value) || value < 0 || value > max) {
    in.refuse(name, format("must be at least 0 and at most {}", static_cast<std::uint64_t>(max)));
    return 0;
  }
  return value;
}

const Json& limited_array(JsonFields& in, std::string_view name, std::size_t max) {
  static const Json empty = Json::array();
  const Json& value = in.array(name);
  if (value.size() <= max) return value;
  in.refuse(name, format("has more than {} elements", max));
  return empty;
}

std::vector<std::uint32_t> rank_numbers(JsonFields& in, std::string_view name) {
  return each<std::uint32_t>(in, name, kRanksMax, [](const Json& element) -> Result<std::uint32_t> {
    if (!element.is_number_unsigned() || element.get<std::uint64_t>() >= kRanksMax) {
      return fail(ErrorCode::invalid_input, format("must hold ranks below {}", kRanksMax));
    }
    return element.get<std::uint32_t>();
  });
}

void adopt(JsonFields& in, std::string_view name, const Status& status) {
  if (!status) in.refuse(name, status.error().message);
}

std::string describe_unknown(std::string_view text, std::string_view what) {
  return format("'{}' is no {}", text.substr(0, 40), what);
}

Json encode_error(const Error& error) {
  return {{"code", to_string(error.code)},
          {"message", error.message.substr(0, kMessageTextBytesMax)},
          {"retry", error.retry == Retry::yes}};
}

Error read_error(JsonFields& in, std::string_view name) {
  if (!in.has(name)) return {};
  JsonFields part(in.object(name), std::string(name));
  const std::string code = part.text("code");
  Error error{ErrorCode::internal, short_text(part, "message", 2 * kMessageTextBytesMax),
              part.boolean_or("retry", false) ? Retry::yes : Retry::no};
  // A code of a later version is still an error; its message says what to do.
  for (const ErrorCode known : kErrorCodes) {
    if (to_string(known) == code) error.code = known;
  }
  adopt(in, name, part.finish());
  return error;
}

Json encode_pieces(const std::vector<PiecePlan>& pieces) {
  Json list = Json::array();
  for (const PiecePlan& piece : pieces) {
    list.push_back({{"tensor", piece.tensor}, {"begin_row", piece.begin_row}, {"end_row", piece.end_row}});
  }
  return list;
}

std::vector<PiecePlan> read_pieces(JsonFields& in, std::string_view name) {
  return each<PiecePlan>(in, name, kPiecesMax, [](const Json& element) -> Result<PiecePlan> {
    JsonFields part(element, "piece");
    PiecePlan piece{.tensor = short_text(part, "tensor", kNameBytesMax),
                    .begin_row = part.number("begin_row"),
                    .end_row = part.number("end_row")};
    if (piece.end_row < piece.begin_row) part.refuse("end_row", "must not be before begin_row");
    if (Status status = part.finish(); !status) return std::unexpected(status.error());
    return piece;
  });
}

Json encode_written(const WrittenFile& written) {
  Json entries = Json::array();
  for (const WrittenEntry& entry : written.entries) {
    entries.push_back({{"key", entry.key},
                       {"tensor", entry.tensor},
                       {"begin_row", entry.begin_row},
                       {"end_row", entry.end_row},
                       {"begin_byte", entry.begin_byte},
                       {"end_byte", entry.end_byte}});
  }
  Json object = {
      {"file", written.file}, {"bytes", written.bytes}, {"hash", written.hash}, {"entries", std::move(entries)}};
  if (!written.chunks.empty()) object["chunks"] = written.chunks;
  if (!written.way.empty()) object["way"] = written.way;
  return object;
}

Result<WrittenEntry> read_written_entry(const Json& element) {
  JsonFields part(element, "entry");
  WrittenEntry entry{.key = short_text(part, "key"),
                     .tensor = short_text(part, "tensor", kNameBytesMax),
                     .begin_row = part.number("begin_row"),
                     .end_row = part.number("end_row"),
                     .begin_byte = part.number("begin_byte"),
                     .end_byte = part.number("end_byte")};
  if (entry.end_row < entry.begin_row) part.refuse("end_row", "must not be before begin_row");
  if (entry.end_byte < entry.begin_byte) part.refuse("end_byte", "must not be before begin_byte");
  if (Status status = part.finish(); !status) return std::unexpected(status.error());
  return entry;
}

WrittenFile read_written(JsonFields& in) {
  WrittenFile written{.file = file_name(in, "file"), .bytes = in.number("bytes"), .hash = in.text("hash")};
  if (!is_hash_text(written.hash)) in.refuse("hash", "must be 32 hex digits");
  written.chunks = in.texts_or_empty("chunks");
  for (const std::string& chunk : written.chunks) {
    if (!is_hash_text(chunk, 16)) in.refuse("chunks", "must be of 16 hex digits each");
  }
  written.entries = each<WrittenEntry>(in, "entries", kPiecesMax, read_written_entry);
  written.way = optional_text(in, "way", kWayBytesMax);
  return written;
}

Json encode_summary(const CheckpointSummary& summary) {
  Json object = {{"bytes", summary.bytes}, {"world_size", summary.world_size}, {"live_ranks", summary.live_ranks}};
  if (summary.agreed_milliseconds != 0) object["agreed_milliseconds"] = summary.agreed_milliseconds;
  return object;
}

CheckpointSummary read_summary(JsonFields& in, std::string_view name) {
  JsonFields part(in.object(name), std::string(name));
  const CheckpointSummary summary{.bytes = part.number("bytes"),
                                  .world_size = number32(part, "world_size", kRanksMax),
                                  .live_ranks = number32(part, "live_ranks", kRanksMax),
                                  .agreed_milliseconds = part.number_or("agreed_milliseconds", 0)};
  if (summary.live_ranks > summary.world_size) part.refuse("live_ranks", "must not be more than world_size");
  adopt(in, name, part.finish());
  return summary;
}

Json encode_trigger(const TriggerMessage& trigger) {
  Json object = {{"term", trigger.term},
                 {"cause", to_string(trigger.cause)},
                 {"pod", trigger.pod},
                 {"detail", trigger.detail.substr(0, kMessageTextBytesMax)},
                 {"seconds_left", trigger.seconds_left},
                 {"after", to_string(trigger.after)},
                 {"breakpoint", trigger.breakpoint}};
  if (trigger.rebuilt != 0) object["rebuilt"] = trigger.rebuilt;
  return object;
}

Result<TriggerMessage> decode_trigger(const Json& object) {
  JsonFields in(object, "trigger");
  TriggerMessage trigger{.term = in.number("term"),
                         .pod = number32(in, "pod", kPodsMax - 1),
                         .detail = optional_text(in, "detail", 2 * kMessageTextBytesMax),
                         .seconds_left = real_number(in, object, "seconds_left", kMessageSecondsMax),
                         .breakpoint = optional_text(in, "breakpoint"),
                         .rebuilt = in.number_or("rebuilt", 0)};
  trigger.cause = read_enum<TriggerCause>(in, "cause", "cause of a breakpoint");
  // The operator keeps words of a newer sidecar; sidecars of one job have to understand each other.
  if (trigger.cause == TriggerCause::unknown) in.refuse("cause", describe_unknown("unknown", "cause of a breakpoint"));
  const Result<AfterBreakpoint> after = parse_after_breakpoint(in.text("after"));
  if (after) trigger.after = *after;
  else in.refuse("after", after.error().message);
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  return trigger;
}

}  // namespace rekindle::message_fields
