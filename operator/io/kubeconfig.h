// Reads kubeconfig files into the few facts that we use. Anything that we do not support and that
// changes who we are or whom we trust is refused with a message that says what to do instead;
// unknown fields are ignored, as kubectl does. Pure but for reading the files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/net/tls.h"

namespace rekindle::op {

struct ApiServerAddress {
  std::string host;
  std::uint16_t port = 443;
  bool tls = true;
  std::string path_prefix;      // without a slash at the end; empty for most
  std::string tls_server_name;  // overrides whom the certificate must name; empty for most

  bool operator==(const ApiServerAddress&) const = default;
};

// "https://10.0.0.1:6443", "https://host/k8s/clusters/c-1".
Result<ApiServerAddress> parse_server_url(std::string_view url);

struct KubeconfigFacts {
  std::string context;
  ApiServerAddress server;
  std::string namespace_name = "default";
  std::string authorities_pem;  // empty only for plain http
  std::optional<TlsKeyPair> own;
  std::string token;
  std::string token_file;  // read again while running; wins over token
};

// `paths`: one or more files; of entries with the same name the first file's counts, as with
// KUBECONFIG. `context` empty: the current one.
Result<KubeconfigFacts> read_kubeconfig(const std::vector<std::string>& paths, std::string_view context = {});

// $KUBECONFIG split at ':', else $HOME/.kube/config.
std::vector<std::string> default_kubeconfig_paths();

}  // namespace rekindle::op
