// Who we are for the API server and whom we trust: from the files that a pod is given, or from a
// kubeconfig. Tokens and authorities in files are rotated while we run, so they are read again: the
// token at most every 60 s and after a 401, the authorities when the file changed. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "common/base/instant.h"
#include "common/net/http_client.h"
#include "operator/io/kubeconfig.h"

namespace rekindle::op {

struct InClusterPaths {
  std::string folder = "/var/run/secrets/kubernetes.io/serviceaccount";
  std::string host;  // empty: $KUBERNETES_SERVICE_HOST
  std::string port;  // empty: $KUBERNETES_SERVICE_PORT
};

class Credentials {
 public:
  static constexpr Duration kTokenAgeMax = std::chrono::seconds(60);

  static Result<std::unique_ptr<Credentials>> in_cluster(const InClusterPaths& paths = {});
  static Result<std::unique_ptr<Credentials>> from_kubeconfig(const std::vector<std::string>& paths,
                                                              std::string_view context = {});
  // A kubeconfig where `path` is given; else the pod's files where they exist; else the default
  // kubeconfig.
  static Result<std::unique_ptr<Credentials>> find(const std::string& path = {}, std::string_view context = {});

  ~Credentials();

  const ApiServerAddress& server() const { return server_; }
  // our own, or the context's
  const std::string& namespace_name() const { return namespace_name_; }
  // "the service account of this pod", "context kind in /home/a/.kube/config": for messages.
  const std::string& origin() const { return origin_; }

  // The bearer token, empty where a certificate says who we are.
  Result<std::string> token(Instant now);

  // The server refused this token: the file is read now, whatever its age. True when token() gives
  // another one.
  bool token_refused(const std::string& refused);

  struct Endpoint {
    HttpEndpoint endpoint;
    std::uint64_t version = 0;  // grows when the authorities changed
  };
  Result<Endpoint> endpoint(Instant now);

 private:
  Credentials() = default;

  // Constant after construction.
  ApiServerAddress server_;
  std::string namespace_name_;
  std::string origin_;
  std::string token_file_;
  std::string authorities_file_;
  std::optional<TlsKeyPair> own_;

  std::mutex mutex_;
  // Guarded by mutex_.
  std::string token_;
  std::optional<Instant> token_read_at_;
  std::string authorities_pem_;
  std::optional<Instant> authorities_read_at_;
  std::shared_ptr<const TlsClientContext> tls_;
  std::uint64_t tls_version_ = 0;
};

}  // namespace rekindle::op
