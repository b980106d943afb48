#include "operator/io/kubeconfig.h"

#include <yaml-cpp/yaml.h>

#include <charconv>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "common/base/base64.h"
#include "common/base/format.h"
#include "common/base/http_message.h"

namespace rekindle::op {
namespace {

constexpr std::uintmax_t kFileBytesMax = 4u << 20;

Result<std::string> read_small_file(const std::filesystem::path& path, const std::string& what) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error)
    return fail(ErrorCode::not_found, format("{} cannot be read: {}: {}", what, path.string(), error.message()));
  if (size > kFileBytesMax)
    return fail(ErrorCode::invalid_input, format("{} is far too large: {}", what, path.string()));
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return fail(ErrorCode::io, format("{} cannot be read: {}", what, path.string()));
  return std::move(text).str();
}

std::string text_at(const YAML::Node& node, const char* name) {
  if (!node.IsMap()) return {};
  const YAML::Node value = node[name];
  return value && value.IsScalar() ? value.Scalar() : std::string();
}

bool is_true(const std::string& text) { return text == "true" || text == "True" || text == "TRUE"; }

struct Found {
  YAML::Node content;
  std::filesystem::path folder;  // relative paths in the entry start here
};

struct Files {
  std::vector<std::pair<YAML::Node, std::filesystem::path>> documents;

  // The entry `name` of the list `list` ("clusters"), its content being under `field` ("cluster").
  std::optional<Found> find(const char* list, const char* field, const std::string& name) const {
    for (const auto& [document, folder] : documents) {
      const YAML::Node entries = document[list];
      if (!entries || !entries.IsSequence()) continue;
      for (const YAML::Node& entry : entries) {
        if (text_at(entry, "name") == name && entry[field] && entry[field].IsMap()) return Found{entry[field], folder};
      }
    }
    return std::nullopt;
  }
};

// A value that stands in the file in base64 or in another file of its own.
Result<std::string> data_or_file(const Found& entry, const char* data_name, const char* file_name,
                                 const std::string& what) {
  if (const std::string data = text_at(entry.content, data_name); !data.empty()) {
    Result<std::string> decoded = base64_decode(data);
    if (!decoded) return std::unexpected(with_context(decoded.error(), format("{} ({})", what, data_name)));
    return decoded;
  }
  const std::string file = text_at(entry.content, file_name);
  if (file.empty()) return std::string();
  return read_small_file(entry.folder / file, format("{} ({})", what, file_name));
}

Status read_cluster(const Found& cluster, const std::string& where, KubeconfigFacts& facts) {
  if (is_true(text_at(cluster.content, "insecure-skip-tls-verify"))) {
    return fail(ErrorCode::refused,
                where +
                    " says insecure-skip-tls-verify: anybody could pretend to be the API server. Give it "
                    "certificate-authority or certificate-authority-data instead");
  }
  if (!text_at(cluster.content, "proxy-url").empty()) {
    return fail(ErrorCode::refused,
                where +
                    " says proxy-url, which Rekindle does not support: use an address that can be reached "
                    "directly");
  }
  Result<ApiServerAddress> server = parse_server_url(text_at(cluster.content, "server"));
  if (!server) return std::unexpected(with_context(server.error(), where));
  facts.server = std::move(*server);
  facts.server.tls_server_name = text_at(cluster.content, "tls-server-name");
  Result<std::string> authorities = data_or_file(cluster, "certificate-authority-data", "certificate-authority",
                                                 where + ", the certificate authority");
  if (!authorities) return std::unexpected(authorities.error());
  facts.authorities_pem = std::move(*authorities);
  if (facts.server.tls && facts.authorities_pem.empty()) {
    return fail(ErrorCode::invalid_input,
                where +
                    " names no certificate authority: add certificate-authority or certificate-authority-data, so "
                    "that the API server can be recognised");
  }
  return {};
}

Status read_user(const Found& user, const std::string& where, KubeconfigFacts& facts) {
  struct Unsupported {
    const char* field;
    const char* instead;
  };
  constexpr Unsupported kUnsupported[] = {
      {"exec",
       "uses an exec plugin, which Rekindle does not run: give it a client certificate, or a token that "
       "'kubectl create token' prints"},
      {"auth-provider", "uses an auth provider, which Kubernetes has removed: give it a client certificate or a token"},
      {"username", "uses a user name and password, which Kubernetes has removed: give it a certificate or a token"},
      {"as", "impersonates another user, which Rekindle does not support: use the credentials of that user"},
  };
  for (const Unsupported& one : kUnsupported) {
    if (user.content[one.field]) return fail(ErrorCode::refused, format("{} {}", where, one.instead));
  }
  Result<std::string> certificate =
      data_or_file(user, "client-certificate-data", "client-certificate", where + ", the client certificate");
  if (!certificate) return std::unexpected(certificate.error());
  Result<std::string> key = data_or_file(user, "client-key-data", "client-key", where + ", the client key");
  if (!key) return std::unexpected(key.error());
  if (certificate->empty() != key->empty()) {
    return fail(ErrorCode::invalid_input, where + " has a client certificate without its key, or the other way round");
  }
  if (!certificate->empty()) facts.own = TlsKeyPair{std::move(*certificate), std::move(*key)};
  facts.token = text_at(user.content, "token");
  if (const std::string file = text_at(user.content, "tokenFile"); !file.empty()) {
    facts.token_file = (user.folder / file).string();
  }
  return {};
}

Result<Files> read_files(const std::vector<std::string>& paths) {
  Files files;
  std::string missing;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (paths.size() > 1 && !std::filesystem::exists(path, ignored)) {
      // Of several files some may be absent, as with kubectl.
      missing += (missing.empty() ? "" : ", ") + path;
      continue;
    }
    Result<std::string> text = read_small_file(path, "the kubeconfig");
    if (!text) return std::unexpected(text.error());
    YAML::Node document = YAML::Load(*text);
    if (document.IsNull()) continue;
    if (!document.IsMap()) return fail(ErrorCode::invalid_input, format("the kubeconfig {} is no mapping", path));
    files.documents.emplace_back(std::move(document), std::filesystem::absolute(path).parent_path());
  }
  if (files.documents.empty()) {
    const std::string looked_at = missing.empty() ? std::string() : format(" ({})", missing);
    return fail(ErrorCode::not_found,
                format("there is no kubeconfig{}: name one with --kubeconfig or in $KUBECONFIG", looked_at));
  }
  return files;
}

Result<KubeconfigFacts> read_documents(const Files& files, std::string_view wanted_context) {
  KubeconfigFacts facts;
  facts.context = wanted_context;
  for (const auto& [document, folder] : files.documents) {
    if (facts.context.empty()) facts.context = text_at(document, "current-context");
  }
  if (facts.context.empty()) {
    return fail(ErrorCode::invalid_input, "the kubeconfig has no current context: choose one with --context");
  }
  const std::optional<Found> context = files.find("contexts", "context", facts.context);
  if (!context) return fail(ErrorCode::not_found, format("the kubeconfig has no context '{}'", facts.context));
  if (std::string name = text_at(context->content, "namespace"); !name.empty()) facts.namespace_name = std::move(name);

  const std::string cluster_name = text_at(context->content, "cluster");
  const std::optional<Found> cluster = files.find("clusters", "cluster", cluster_name);
  if (!cluster) return fail(ErrorCode::not_found, format("the kubeconfig has no cluster '{}'", cluster_name));
  if (Status status = read_cluster(*cluster, format("the kubeconfig's cluster '{}'", cluster_name), facts); !status) {
    return std::unexpected(status.error());
  }
  const std::string user_name = text_at(context->content, "user");
  if (user_name.empty()) return facts;
  const std::optional<Found> user = files.find("users", "user", user_name);
  if (!user) return fail(ErrorCode::not_found, format("the kubeconfig has no user '{}'", user_name));
  if (Status status = read_user(*user, format("the kubeconfig's user '{}'", user_name), facts); !status) {
    return std::unexpected(status.error());
  }
  return facts;
}

}  // namespace

Result<ApiServerAddress> parse_server_url(std::string_view url) {
  ApiServerAddress address;
  const auto wrong = [&] {
    return fail(ErrorCode::invalid_input, format("'{}' is no address of an API server: write https://host:port", url));
  };
  std::string_view rest = url;
  if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
    address.tls = false;
    address.port = 80;
  } else {
    return wrong();
  }
  std::string_view authority = rest.substr(0, rest.find('/'));
  std::string_view path = rest.substr(authority.size());
  while (path.ends_with('/')) path.remove_suffix(1);
  if (path.find_first_of("?# \t\r\n") != std::string_view::npos || authority.contains('@')) return wrong();
  address.path_prefix = path;

  std::string_view host = authority;
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t close = authority.find(']');
    if (close == std::string_view::npos) return wrong();
    host = authority.substr(1, close - 1);
    const std::string_view behind = authority.substr(close + 1);
    if (!behind.empty() && !behind.starts_with(':')) return wrong();
    if (!behind.empty()) port = behind.substr(1);
  } else if (const std::size_t colon = authority.find(':'); colon != std::string_view::npos) {
    host = authority.substr(0, colon);
    port = authority.substr(colon + 1);
    if (port.empty()) return wrong();
  }
  if (host.empty()) return wrong();
  address.host = host;
  if (!port.empty()) {
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
    if (error != std::errc{} || end != port.data() + port.size() || address.port == 0) return wrong();
  }
  return address;
}

Result<KubeconfigFacts> read_kubeconfig(const std::vector<std::string>& paths, std::string_view context) {
  // yaml-cpp throws on what it cannot read; nothing of that leaves here.
  try {
    const Result<Files> files = read_files(paths);
    if (!files) return std::unexpected(files.error());
    return read_documents(*files, context);
  } catch (const std::exception& exception) {
    return fail(ErrorCode::invalid_input, std::string("the kubeconfig is no proper YAML: ") + exception.what());
  }
}

std::vector<std::string> default_kubeconfig_paths() {
  std::vector<std::string> paths;
  if (const char* list = std::getenv("KUBECONFIG"); list != nullptr && *list != '\0') {
    std::istringstream parts{std::string(list)};
    for (std::string path; std::getline(parts, path, ':');) {
      if (!path.empty()) paths.push_back(path);
    }
  } else if (const char* home = std::getenv("HOME"); home != nullptr) {
    paths.push_back(std::string(home) + "/.kube/config");
  }
  return paths;
}

}  // namespace rekindle::op
