#include "operator/kube/requests.h"

#include <utility>

#include "common/base/format.h"

namespace rekindle::op {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kMetadataList =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
constexpr std::string_view kMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
constexpr std::string_view kMergePatch = "application/merge-patch+json";

// A part of a path. Encoding keeps everything in its place but these, which mean a folder.
bool is_path_part(std::string_view name) { return !name.empty() && name != "." && name != ".."; }

std::unexpected<Error> refuse(const Resource& resource, std::string_view what) {
  return fail(ErrorCode::invalid_input,
              format("no request can be made about a {}: {}; look at the object that names it", resource.kind, what));
}

Result<std::string> folder_path(const Resource& resource, std::string_view namespace_name) {
  if (!resource.namespaced && !namespace_name.empty()) return refuse(resource, "it lives in no namespace");
  if (resource.namespaced && !is_path_part(namespace_name)) return refuse(resource, "its namespace is missing");
  return collection_path(resource, namespace_name);
}

Result<std::string> object_path(const Resource& resource, const ObjectKey& key, std::string_view subresource = {}) {
  Result<std::string> path = folder_path(resource, key.namespace_name);
  if (!path) return path;
  if (!is_path_part(key.name)) return refuse(resource, "its name is missing");
  *path += "/" + percent_encode(key.name);
  if (!subresource.empty()) *path += "/" + std::string(subresource);
  return path;
}

std::string_view name_of(Subresource subresource) {
  switch (subresource) {
    case Subresource::none: return {};
    case Subresource::status: return "status";
  }
  return {};
}

HttpRequest reading(std::string path, std::string_view accept = kJson) {
  return {.method = "GET", .path = std::move(path), .headers = {{"Accept", std::string(accept)}}};
}

Result<HttpRequest> writing(std::string_view method, Result<std::string> path, std::string_view content_type,
                            const Json& body) {
  if (!path) return std::unexpected(path.error());
  return HttpRequest{.method = std::string(method),
                     .path = *std::move(path),
                     .query = {{"fieldManager", std::string(kFieldManager)}},
                     .headers = {{"Accept", std::string(kJson)}, {"Content-Type", std::string(content_type)}},
                     .body = dump_json(body)};
}

// For what has no field manager.
Result<HttpRequest> without_manager(Result<HttpRequest> request) {
  if (request) request->query.clear();
  return request;
}

void add_selectors(HttpRequest& request, const Selection& selection) {
  if (!selection.label_selector.empty()) request.query.emplace_back("labelSelector", selection.label_selector);
  if (!selection.field_selector.empty()) request.query.emplace_back("fieldSelector", selection.field_selector);
}

Json delete_options(const DeleteParams& params) {
  Json options = {{"kind", "DeleteOptions"},
                  {"apiVersion", "v1"},
                  {"preconditions", {{"uid", params.uid}}},
                  {"propagationPolicy", params.in_background ? "Background" : "Foreground"}};
  return options;
}

}  // namespace

HttpRequest list_request(const Resource& resource, const Selection& selection, const ListParams& params) {
  HttpRequest request =
      reading(collection_path(resource, selection.namespace_name), selection.metadata_only ? kMetadataList : kJson);
  add_selectors(request, selection);
  if (params.limit != 0) request.query.emplace_back("limit", std::to_string(params.limit));
  // A continue token carries its version; the server refuses a request that gives both.
  if (!params.continue_token.empty()) {
    request.query.emplace_back("continue", params.continue_token);
  } else if (!params.resource_version.empty()) {
    request.query.emplace_back("resourceVersion", params.resource_version);
  }
  return request;
}

HttpRequest watch_request(const Resource& resource, const Selection& selection, const WatchParams& params) {
  HttpRequest request =
      reading(collection_path(resource, selection.namespace_name), selection.metadata_only ? kMetadata : kJson);
  add_selectors(request, selection);
  request.query.emplace_back("watch", "true");
  request.query.emplace_back("allowWatchBookmarks", "true");
  request.query.emplace_back("resourceVersion", params.resource_version);
  request.query.emplace_back("timeoutSeconds", std::to_string(params.timeout.count()));
  return request;
}

Result<HttpRequest> get_request(const Resource& resource, const ObjectKey& key) {
  Result<std::string> path = object_path(resource, key);
  if (!path) return std::unexpected(path.error());
  return reading(*std::move(path));
}

Result<HttpRequest> create_request(const Resource& resource, std::string_view namespace_name, const Json& object) {
  return writing("POST", folder_path(resource, namespace_name), kJson, object);
}

Result<HttpRequest> merge_patch_request(const Resource& resource, const ObjectKey& key, const Json& patch,
                                        Subresource subresource) {
  return writing("PATCH", object_path(resource, key, name_of(subresource)), kMergePatch, patch);
}

Result<HttpRequest> delete_request(const Resource& resource, const ObjectKey& key, const DeleteParams& params) {
  if (params.uid.empty()) return refuse(resource, "its uid is missing, and names are used again");
  return without_manager(writing("DELETE", object_path(resource, key), kJson, delete_options(params)));
}

}  // namespace rekindle::op
