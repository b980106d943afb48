#include "operator/kube/watch_event.h"

#include <optional>
#include <utility>

#include "common/base/format.h"
#include "common/base/json_slices.h"

namespace rekindle::op {
namespace {

constexpr std::size_t kTypeBytesMax = 64;

}  // namespace

Result<WatchEvent> decode_watch_event(std::string_view line) {
  std::optional<Error> too_large;
  Result<Json> document;
  if (const std::size_t values = extent_of(line).values; values > kObjectValuesMax) {
    TooLargeObject object = too_large_object(json_field(line, "object").value_or("{}"), values);
    too_large = std::move(object.error);
    document = parse_json(json_field(line, "type").value_or("null"), "type of a watch's line", kTypeBytesMax);
    if (document) document = Json{{"type", *std::move(document)}, {"object", std::move(object.object)}};
  } else {
    document = parse_json(line, "line of a watch");
  }
  if (!document) return std::unexpected(document.error());
  JsonFields in(*document, "line of a watch");
  const std::string type = in.text("type");
  in.object("object");
  if (Status status = in.finish(); !status) return std::unexpected(status.error());

  WatchEvent event;
  const std::optional<WatchEventKind> kind = parse_enum<WatchEventKind>(type);
  if (!kind) return fail(ErrorCode::invalid_input, format("a watch sent an event of the unknown type '{}'", type));
  event.kind = *kind;
  event.too_large = std::move(too_large);

  event.object = std::move((*document)["object"]);
  if (event.kind == WatchEventKind::error) {
    event.status = parse_kube_status(event.object);
    return event;
  }
  JsonFields object(event.object, "object of a watch");
  JsonFields metadata(object.object("metadata"), "object of a watch, metadata");
  event.resource_version = metadata.text("resourceVersion");
  if (event.resource_version.empty()) metadata.refuse("resourceVersion", "must not be empty");
  if (Status status = object.finish(); !status) return std::unexpected(status.error());
  if (Status status = metadata.finish(); !status) return std::unexpected(status.error());
  return event;
}

}  // namespace rekindle::op
