#include "operator/io/credentials.h"

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "common/base/format.h"
#include "common/base/http_message.h"

namespace rekindle::op {
namespace {

constexpr Duration kAuthoritiesAgeMax = std::chrono::seconds(60);

Result<std::string> read_file(const std::string& path, const std::string& what) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return fail(ErrorCode::not_found, format("{} cannot be read from {}", what, path), Retry::yes);
  return std::move(text).str();
}

Result<std::string> read_token(const std::string& path) {
  Result<std::string> token = read_file(path, "the token of the service account");
  if (!token) return token;
  while (!token->empty() && (token->back() == '\n' || token->back() == '\r' || token->back() == ' ')) token->pop_back();
  if (token->empty()) return fail(ErrorCode::unauthorized, format("the token file {} is empty", path), Retry::yes);
  return token;
}

std::string text_of_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

}  // namespace

Credentials::~Credentials() = default;

Result<std::unique_ptr<Credentials>> Credentials::in_cluster(const InClusterPaths& paths) {
  const std::string host = paths.host.empty() ? text_of_environment("KUBERNETES_SERVICE_HOST") : paths.host;
  const std::string port = paths.port.empty() ? text_of_environment("KUBERNETES_SERVICE_PORT") : paths.port;
  if (host.empty() || port.empty()) {
    return fail(ErrorCode::not_found,
                "this is no pod (KUBERNETES_SERVICE_HOST is not set): name a kubeconfig with --kubeconfig");
  }
  std::unique_ptr<Credentials> credentials(new Credentials());
  credentials->server_.host = host;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), credentials->server_.port);
  if (error != std::errc{} || end != port.data() + port.size()) {
    return fail(ErrorCode::invalid_input, format("KUBERNETES_SERVICE_PORT is no port: '{}'", port));
  }
  credentials->origin_ = "the service account of this pod";
  credentials->token_file_ = paths.folder + "/token";
  credentials->authorities_file_ = paths.folder + "/ca.crt";
  Result<std::string> name = read_file(paths.folder + "/namespace", "the namespace of this pod");
  if (!name) return std::unexpected(name.error());
  credentials->namespace_name_ = std::move(*name);
  // A pod without these is set up wrongly; better said at start than at the first request.
  if (Result<std::string> token = read_token(credentials->token_file_); !token) return std::unexpected(token.error());
  Result<std::string> authorities =
      read_file(credentials->authorities_file_, "the certificate authority of the cluster");
  if (!authorities) return std::unexpected(authorities.error());
  return credentials;
}

Result<std::unique_ptr<Credentials>> Credentials::from_kubeconfig(const std::vector<std::string>& paths,
                                                                  std::string_view context) {
  Result<KubeconfigFacts> facts = read_kubeconfig(paths, context);
  if (!facts) return std::unexpected(facts.error());
  std::unique_ptr<Credentials> credentials(new Credentials());
  credentials->server_ = std::move(facts->server);
  credentials->namespace_name_ = std::move(facts->namespace_name);
  credentials->origin_ = format("context {} of the kubeconfig", facts->context);
  credentials->token_file_ = std::move(facts->token_file);
  credentials->token_ = std::move(facts->token);
  credentials->authorities_pem_ = std::move(facts->authorities_pem);
  credentials->own_ = std::move(facts->own);
  return credentials;
}

Result<std::unique_ptr<Credentials>> Credentials::find(const std::string& path, std::string_view context) {
  if (!path.empty()) return from_kubeconfig({path}, context);
  std::error_code ignored;
  const bool in_pod = !text_of_environment("KUBERNETES_SERVICE_HOST").empty() &&
                      std::filesystem::exists(InClusterPaths{}.folder + "/token", ignored);
  if (in_pod && context.empty()) return in_cluster();
  return from_kubeconfig(default_kubeconfig_paths(), context);
}

Result<std::string> Credentials::token(Instant now) {
  const std::lock_guard lock(mutex_);
  if (token_file_.empty()) return token_;
  if (token_read_at_ && now - *token_read_at_ < kTokenAgeMax) return token_;
  Result<std::string> fresh = read_token(token_file_);
  if (!fresh) {
    // A token that is being replaced may be missing for a moment; the old one is still good then.
    if (!token_.empty()) return token_;
    return fresh;
  }
  token_ = std::move(*fresh);
  token_read_at_ = now;
  return token_;
}

bool Credentials::token_refused(const std::string& refused) {
  const std::lock_guard lock(mutex_);
  if (token_file_.empty()) return false;
  if (token_ != refused) return true;  // another thread has read the file since
  Result<std::string> fresh = read_token(token_file_);
  if (!fresh || *fresh == refused) return false;
  token_ = std::move(*fresh);
  return true;
}

Result<Credentials::Endpoint> Credentials::endpoint(Instant now) {
  const std::lock_guard lock(mutex_);
  const bool look_again =
      !authorities_file_.empty() && (!authorities_read_at_ || now - *authorities_read_at_ >= kAuthoritiesAgeMax);
  bool changed = server_.tls && !tls_;
  if (look_again) {
    Result<std::string> fresh = read_file(authorities_file_, "the certificate authority of the cluster");
    if (fresh && !fresh->empty()) {
      changed = changed || *fresh != authorities_pem_;
      authorities_pem_ = std::move(*fresh);
      authorities_read_at_ = now;
    } else if (authorities_pem_.empty()) {
      return std::unexpected(fresh ? Error{ErrorCode::invalid_input, authorities_file_ + " is empty", Retry::yes}
                                   : fresh.error());
    }
  }
  if (server_.tls && changed) {
    Result<std::shared_ptr<const TlsClientContext>> made =
        TlsClientContext::make({.authorities_pem = authorities_pem_, .own = own_});
    if (!made && !tls_) return std::unexpected(with_context(made.error(), origin_));
    // A damaged new bundle must not take the working one away.
    if (made) {
      tls_ = std::move(*made);
      ++tls_version_;
    }
  }
  Endpoint endpoint{.endpoint = {.host = server_.host, .port = server_.port, .tls = tls_}, .version = tls_version_};
  if (!server_.tls_server_name.empty()) endpoint.endpoint.identity = TlsIdentity::of_host(server_.tls_server_name);
  return endpoint;
}

}  // namespace rekindle::op
