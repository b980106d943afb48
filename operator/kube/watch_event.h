// Decodes one line of a WATCH stream.
#pragma once

#include <string>
#include <string_view>

#include "common/base/enum_names.h"
#include "operator/kube/answer.h"

namespace rekindle::op {

enum class WatchEventKind { added, modified, deleted, bookmark, error };
constexpr auto enum_names(WatchEventKind) {
  return std::to_array<EnumName<WatchEventKind>>({{WatchEventKind::added, "ADDED"},
                                                  {WatchEventKind::modified, "MODIFIED"},
                                                  {WatchEventKind::deleted, "DELETED"},
                                                  {WatchEventKind::bookmark, "BOOKMARK"},
                                                  {WatchEventKind::error, "ERROR"}});
}

struct WatchEvent {
  WatchEventKind kind = WatchEventKind::bookmark;
  // a bookmark's holds little more than its version; an error's is the Status
  Json object;
  std::string resource_version;  // of the object; empty for an error
  KubeStatus status;             // of an error
  // set: it was not read, and `object` is its metadata alone
  std::optional<Error> too_large;
};

// invalid_input names what is wrong with the line. Event types that we do not know are refused too:
// a later server would not send them unasked.
Result<WatchEvent> decode_watch_event(std::string_view line);

}  // namespace rekindle::op
