// rekindle-hook: the preStop command of a protected container. A static binary, since it runs in
// images of any kind.
#include <cstdio>
#include <cstdlib>

#include "common/contract/environment.h"
#include "worker-sidecar/hook/hook_call.h"

namespace {

std::string variable(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

}  // namespace

int main(int argc, char**) {
  if (argc > 1) {
    std::fputs(
        "rekindle-hook: takes no arguments. Carrying out a preStop command of your own behind the save is not possible "
        "in this "
        "version; call rekindle-hook from your own script instead.\n",
        stderr);
    return 2;
  }
  const rekindle::hook::HookResult result = rekindle::hook::call_sidecar({
      .socket_path = variable(rekindle::environment::kSocket, "/rekindle/run/sidecar.sock"),
      .container = variable(rekindle::environment::kContainer, variable("HOSTNAME", "").c_str()),
  });
  std::fprintf(result.exit_code == 0 ? stdout : stderr, "%s\n", result.line.c_str());
  return result.exit_code;
}
