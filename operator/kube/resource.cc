#include "operator/kube/resource.h"

#include "common/base/format.h"
#include "common/base/http_message.h"

namespace rekindle::op {

std::string api_version(const Resource& resource) {
  std::string version(resource.version);
  return resource.group.empty() ? version : format("{}/{}", resource.group, version);
}

std::string collection_path(const Resource& resource, std::string_view namespace_name) {
  std::string path = (resource.group.empty() ? "/api/" : "/apis/") + api_version(resource);
  if (resource.namespaced && !namespace_name.empty()) path += "/namespaces/" + percent_encode(namespace_name);
  path += "/";
  path += resource.plural;
  return path;
}

}  // namespace rekindle::op
