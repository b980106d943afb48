#include "worker-sidecar/launcher/environment.h"

#include <unistd.h>

#include <string>
#include <string_view>

#include "common/contract/environment.h"

namespace rekindle::launcher {
namespace {

std::string first_host(const Environment& variables) {
  const auto hosts_of = [&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second.substr(0, found->second.find(','));
  };
  for (const char* name : {"VC_MASTER_HOSTS", "VC_CHIEF_HOSTS"}) {
    if (std::string host = hosts_of(name); !host.empty()) return host;
  }
  for (const auto& [name, value] : variables) {
    if (!name.starts_with("VC_") || !name.ends_with("_HOSTS")) continue;
    if (std::string host = hosts_of(name); !host.empty()) return host;
  }
  return {};
}

}  // namespace

Environment own_environment() {
  Environment variables;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (const std::size_t equals = text.find('='); equals != std::string_view::npos) {
      variables.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return variables;
}

Environment rank_environment(const Environment& base, const RankPlacement& placement) {
  Environment variables = base;
  variables[environment::kRank] = std::to_string(placement.rank);
  variables[environment::kWorldSize] = std::to_string(placement.world_size);
  variables[environment::kRankId] = std::to_string(placement.rank);
  variables[environment::kRankSize] = std::to_string(placement.world_size);
  variables[environment::kLocalRank] = std::to_string(placement.local_rank);
  if (!variables.contains(environment::kMasterAddress)) {
    if (const std::string host = first_host(variables); !host.empty()) variables[environment::kMasterAddress] = host;
  }
  return variables;
}

}  // namespace rekindle::launcher
