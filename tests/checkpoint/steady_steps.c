/* A training program with everything on (gates, fences, 256 bytes of state, one tensor) that only makes steps:
 * `steady_steps N`. For whoever counts its system calls. With a sidecar where the environment names one, by itself
 * otherwise. `steady_steps N getppid` makes that system call in every thousandth step, `steady_steps N close` one that
 * fails: to see that the count notices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker-sidecar/runtime/include/rekindle.h"

static int failed(const char* call) {
  fprintf(stderr, "steady_steps: %s: %s\n", call, rk_last_error());
  return 1;
}

int main(int count, char** arguments) {
  static float weights[64];
  static unsigned char state[256];
  const unsigned long long steps = count >= 2 ? strtoull(arguments[1], NULL, 10) : 1000;
  const char* const planted = count == 3 ? arguments[2] : "";
  rk_session* session = NULL;
  rk_options options = {.struct_size = sizeof options};
  if (rk_open(&options, &session) != RK_OK) return failed("rk_open");
  rk_tensor tensor = {
      .struct_size = sizeof tensor, .name = "weights", .data = weights, .dtype = RK_F32, .rank = 1, .shape = {64}};
  if (rk_register(session, &tensor) != RK_OK) return failed("rk_register");
  if (rk_register_state(session, "state", state, sizeof state) != RK_OK) return failed("rk_register_state");
  rk_position at = {.struct_size = sizeof at};
  if (rk_restore(session, &at) != RK_OK) return failed("rk_restore");
  for (unsigned long long step = at.step + 1; step <= at.step + steps; ++step) {
    if (rk_step_begin(session, step) != RK_OK) return failed("rk_step_begin");
    if (rk_update_begin(session) != RK_OK) return failed("rk_update_begin");
    weights[step % 64] += 1;
    state[step % 256] += 1;
    if (step % 1000 == 0 && strcmp(planted, "getppid") == 0) (void)getppid();
    if (step % 1000 == 0 && strcmp(planted, "close") == 0) (void)close(-1);
    if (rk_update_end(session) != RK_OK) return failed("rk_update_end");
    if (rk_step_end(session) != RK_OK) return failed("rk_step_end");
  }
  return rk_close(session);
}
