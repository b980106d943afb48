#include "operator/kube/object_key.h"

#include <utility>

#include "common/base/format.h"

namespace rekindle::op {

std::string to_text(const ObjectKey& key) {
  return key.namespace_name.empty() ? key.name : format("{}/{}", key.namespace_name, key.name);
}

Result<ObjectKey> key_of(const Json& object) {
  JsonFields in(object, "object");
  JsonFields metadata(in.object("metadata"), "object metadata");
  ObjectKey key{metadata.text_or("namespace", ""), metadata.text("name")};
  if (key.name.empty()) metadata.refuse("name", "must not be empty");
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  if (Status status = metadata.finish(); !status) return std::unexpected(status.error());
  return key;
}

}  // namespace rekindle::op
