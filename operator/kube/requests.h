// Builds the requests that the operator sends to the API server, as values: method, path, query,
// headers, body. The shell adds credentials and sends them. What the server thinks of it is read by
// answer.h.
//
// A request about one object is refused (invalid_input) when its name, its namespace or, for a
// delete, its uid is missing: they come from objects that any user may write.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/http_message.h"
#include "operator/kube/object_key.h"
#include "operator/kube/resource.h"

namespace rekindle::op {

// Which objects of a kind: everything that a list and the watch behind it must have in common.
struct Selection {
  std::string namespace_name;  // empty: all namespaces
  std::string label_selector;
  std::string field_selector;
  // PartialObjectMetadata: names, labels and annotations without spec, status and data
  bool metadata_only = false;

  bool operator==(const Selection&) const = default;
};

struct ListParams {
  std::uint32_t limit = 500;     // objects a page; 0: everything in one answer
  std::string continue_token;    // from the page before
  std::string resource_version;  // empty: the newest; "0": whatever the server has in memory
};

struct WatchParams {
  std::string resource_version;
  std::chrono::seconds timeout{290};  // the server closes the stream after this time
};

HttpRequest list_request(const Resource& resource, const Selection& selection, const ListParams& params);
HttpRequest watch_request(const Resource& resource, const Selection& selection, const WatchParams& params);
Result<HttpRequest> get_request(const Resource& resource, const ObjectKey& key);

// Every write names its field manager, so that `kubectl get --show-managed-fields` shows who did
// what.
inline constexpr std::string_view kFieldManager = "rekindle-operator";

enum class Subresource { none, status };

Result<HttpRequest> create_request(const Resource& resource, std::string_view namespace_name, const Json& object);

// RFC 7386: fields that are given are set, null removes, lists are replaced as a whole. With
// `resource_version` in metadata of the patch the server answers 409 when another client was
// faster.
Result<HttpRequest> merge_patch_request(const Resource& resource, const ObjectKey& key, const Json& patch,
                                        Subresource subresource = Subresource::none);

// A delete carries the uid: names are used again (Volcano recreates pods under the
// same name), and the decision was about one object. The server answers 409 when the name belongs
// to another object by now. A pod gets its own grace.
struct DeleteParams {
  explicit DeleteParams(std::string object_uid) : uid(std::move(object_uid)) {}

  std::string uid;
  // dependents are removed after the owner, by the garbage collector
  bool in_background = true;
};

Result<HttpRequest> delete_request(const Resource& resource, const ObjectKey& key, const DeleteParams& params);

}  // namespace rekindle::op
