// rekindle-hook: the preStop command of a protected container. A static binary, since it runs in
// images of any kind.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "common/contract/environment.h"
#include "worker-sidecar/hook/hook_call.h"

namespace {

constexpr const char* kUsage =
    "Usage: rekindle-hook              save, as the preStop command of a protected container; where the sidecar is "
    "comes "
    "from the environment\n"
    "       rekindle-hook --version\n"
    "       rekindle-hook --help\n";

std::string variable(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view word = argc == 2 ? argv[1] : "";
  if (word == "--version") {
    std::puts("rekindle-hook " REKINDLE_VERSION);
    return 0;
  }
  if (word == "--help") {
    std::fputs(kUsage, stdout);
    return 0;
  }
  if (argc > 1) {
    std::fputs(
        "rekindle-hook: takes no arguments; a preStop command of your own cannot be combined with it in this "
        "version.\n",
        stderr);
    std::fputs(kUsage, stderr);
    return 2;
  }
  const rekindle::hook::HookResult result = rekindle::hook::call_sidecar({
      .socket_path = variable(rekindle::environment::kSocket, "/rekindle/run/sidecar.sock"),
      .container = variable(rekindle::environment::kContainer, variable("HOSTNAME", "").c_str()),
  });
  std::fprintf(result.exit_code == 0 ? stdout : stderr, "%s\n", result.line.c_str());
  return result.exit_code;
}
