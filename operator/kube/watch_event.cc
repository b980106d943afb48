#include "operator/kube/watch_event.h"

#include <optional>
#include <utility>

#include "common/base/format.h"

namespace rekindle::op {

Result<WatchEvent> decode_watch_event(std::string_view line) {
  Result<Json> document = parse_json(line, "line of a watch");
  if (!document) return std::unexpected(document.error());
  JsonFields in(*document, "line of a watch");
  const std::string type = in.text("type");
  in.object("object");
  if (Status status = in.finish(); !status) return std::unexpected(status.error());

  WatchEvent event;
  const std::optional<WatchEventKind> kind = parse_enum<WatchEventKind>(type);
  if (!kind) return fail(ErrorCode::invalid_input, format("a watch sent an event of the unknown type '{}'", type));
  event.kind = *kind;

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
