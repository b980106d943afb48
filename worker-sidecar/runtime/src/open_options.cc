#include "worker-sidecar/runtime/src/open_options.h"

#include <sys/un.h>

#include <array>
#include <charconv>
#include <cstring>
#include <span>
#include <string_view>

#include "common/base/format.h"
#include "common/contract/environment.h"
#include "worker-sidecar/protocol/local_message.h"
#include "worker-sidecar/runtime/src/c_struct.h"

namespace rekindle::runtime {
namespace {

std::string chosen(const char* given, const Environment& environment, const char* variable) {
  const char* const text = given != nullptr ? given : environment(variable);
  return text != nullptr ? text : "";
}

// Who started the process has said its place in one of these: `rekindle run` and the webhook,
// torchrun, MindSpore's launchers. The first that is set counts.
constexpr std::array kRankVariables{environment::kRank, environment::kTorchRank, environment::kRankId};
constexpr std::array kWorldSizeVariables{environment::kWorldSize, environment::kTorchWorldSize, environment::kRankSize};

struct Numbered {
  std::uint32_t number = 0;
  std::string source;  // the variable, empty when none is set
};

Outcome<Numbered> number_from(const Environment& environment, std::span<const char* const> variables,
                              std::uint32_t otherwise) {
  for (const char* variable : variables) {
    const char* const given = environment(variable);
    if (given == nullptr || *given == '\0') continue;
    const std::string_view text = given;
    Numbered numbered{.source = variable};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), numbered.number);
    if (error != std::errc{} || end != text.data() + text.size()) {
      return refuse(RK_ERROR_ARGUMENT, format("{} is '{}'; it must be a whole number", variable, text));
    }
    return numbered;
  }
  return Numbered{.number = otherwise, .source = ""};
}

// Where a place came from, for a message.
std::string sources_of(const Numbered& rank, const Numbered& world_size) {
  const auto name = [](const Numbered& each, const char* ours) {
    return each.source.empty() ? format("{} (not set)", ours) : each.source;
  };
  return format("{} and {}", name(rank, environment::kRank), name(world_size, environment::kWorldSize));
}

Done read_place(const rk_options& given, const Environment& environment, OpenOptions& options) {
  if (given.world_size < 0 || given.rank < 0) {
    return refuse(RK_ERROR_ARGUMENT,
                  format("rk_options: rank {} of world_size {} is negative", given.rank, given.world_size));
  }
  std::string sources = "rk_options";
  if (given.world_size > 0) {
    options.rank = static_cast<std::uint32_t>(given.rank);
    options.world_size = static_cast<std::uint32_t>(given.world_size);
  } else {
    const auto rank = number_from(environment, kRankVariables, 0);
    if (!rank) return std::unexpected(rank.error());
    const auto world_size = number_from(environment, kWorldSizeVariables, 1);
    if (!world_size) return std::unexpected(world_size.error());
    options.rank = rank->number;
    options.world_size = world_size->number;
    sources = sources_of(*rank, *world_size);
  }
  if (options.world_size == 0 || options.world_size > kRanksMax || options.rank >= options.world_size) {
    return refuse(RK_ERROR_ARGUMENT, format("rank {} of {} ranks does not exist: ranks count from 0 and there are at "
                                            "most {}; check {}",
                                            options.rank, options.world_size, kRanksMax, sources));
  }
  return {};
}

}  // namespace

Outcome<OpenOptions> read_open_options(const rk_options* given, const Environment& environment) {
  rk_options raw{};
  if (given != nullptr) {
    const Outcome<rk_options> copy = read_struct(given, "rk_options");
    if (!copy) return std::unexpected(copy.error());
    raw = *copy;
  }
  OpenOptions options;
  options.socket_path = chosen(raw.socket_path, environment, environment::kSocket);
  options.checkpoint_dir = chosen(raw.checkpoint_dir, environment, environment::kCheckpointFolder);
  if (std::string job = chosen(raw.job, environment, environment::kJob); !job.empty()) options.job = std::move(job);
  options.job_uid = chosen(nullptr, environment, environment::kJobUid);
  if (Done done = read_place(raw, environment, options); !done) return std::unexpected(done.error());
  if ((raw.flags & ~(std::uint32_t{RK_NEVER_EXIT} | std::uint32_t{RK_REBUILDS})) != 0) {
    return refuse(
        RK_ERROR_VERSION,
        format("rk_options.flags has bits that this library does not know ({}); use a newer librekindle", raw.flags));
  }
  const Result<CheckpointSettings> checkpoints = read_checkpoint_settings([&](const char* name) {
    const char* const value = environment(name);
    return std::string(value != nullptr ? value : "");
  });
  if (!checkpoints) return refuse(RK_ERROR_ARGUMENT, checkpoints.error().message);
  options.checkpoints = *checkpoints;
  options.never_exit = (raw.flags & RK_NEVER_EXIT) != 0;
  options.rebuilds = (raw.flags & RK_REBUILDS) != 0;
  if (raw.state_bytes_max != 0) options.state_bytes_max = raw.state_bytes_max;
  if (raw.open_seconds_max != 0) options.open_time_max = std::chrono::seconds(raw.open_seconds_max);
  if (options.socket_path.size() >= sizeof(sockaddr_un::sun_path)) {
    return refuse(RK_ERROR_ARGUMENT,
                  format("the socket path '{}' is longer than the {} bytes that the system allows; use a shorter one",
                         options.socket_path, sizeof(sockaddr_un::sun_path) - 1));
  }
  if (options.socket_path.empty() && options.world_size > 1) {
    return refuse(RK_ERROR_ARGUMENT, format("{} ranks need a sidecar and REKINDLE_SOCKET is not set; start them with "
                                            "`rekindle run -n {} -- COMMAND`, or let "
                                            "the operator add the sidecar",
                                            options.world_size, options.world_size));
  }
  return options;
}

}  // namespace rekindle::runtime
