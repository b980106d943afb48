// Parts that several messages share, to JSON and back. Private to this folder's codecs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/enum_names.h"
#include "common/base/json_fields.h"
#include "worker-sidecar/protocol/local_message.h"
#include "worker-sidecar/protocol/peer_message.h"

namespace rekindle::message_fields {

Result<Json> parse_body(std::uint16_t kind, std::string_view body);

// Reading. Each refuses through `in`, so that a codec asks finish() once at the end.
std::string short_text(JsonFields& in, std::string_view name, std::size_t bytes_max = kMessageTextBytesMax);
std::string optional_text(JsonFields& in, std::string_view name, std::size_t bytes_max = kMessageTextBytesMax);
// empty or safe inside the job's folder
std::string folder_name(JsonFields& in, std::string_view name);
// safe inside a checkpoint's folder
std::string file_name(JsonFields& in, std::string_view name);
std::uint32_t number32(JsonFields& in, std::string_view name, std::uint64_t max = 0xffffffff);
std::uint32_t rank_number(JsonFields& in, std::string_view name);
double real_number(JsonFields& in, const Json& object, std::string_view name, double max);
const Json& limited_array(JsonFields& in, std::string_view name, std::size_t max);
std::vector<std::uint32_t> rank_numbers(JsonFields& in, std::string_view name);

// Takes over the error of a part.
void adopt(JsonFields& in, std::string_view name, const Status& status);

// Each element of the array through `read`, which returns Result<T>.
template <typename T, typename Read>
std::vector<T> each(JsonFields& in, std::string_view name, std::size_t max, Read read) {
  std::vector<T> values;
  for (const Json& element : limited_array(in, name, max)) {
    Result<T> value = read(element);
    if (!value) {
      in.refuse(name, value.error().message);
      return {};
    }
    values.push_back(std::move(*value));
  }
  return values;
}

std::string describe_unknown(std::string_view text, std::string_view what);

// A name of the enum's values; `what` they are, for the error.
template <NamedEnum Enum>
Enum read_enum(JsonFields& in, std::string_view name, std::string_view what) {
  const std::string text = in.text(name);
  if (const std::optional<Enum> value = parse_enum<Enum>(text)) return *value;
  in.refuse(name, describe_unknown(text, what));
  return Enum{};
}

Json encode_error(const Error& error);
// a default Error when the field is not there
Error read_error(JsonFields& in, std::string_view name);

Json encode_pieces(const std::vector<PiecePlan>& pieces);
std::vector<PiecePlan> read_pieces(JsonFields& in, std::string_view name);

Json encode_written(const WrittenFile& written);
WrittenFile read_written(JsonFields& in);
Result<WrittenEntry> read_written_entry(const Json& element);

Json encode_summary(const CheckpointSummary& summary);
CheckpointSummary read_summary(JsonFields& in, std::string_view name);

Json encode_trigger(const TriggerMessage& trigger);
Result<TriggerMessage> decode_trigger(const Json& object);

}  // namespace rekindle::message_fields
