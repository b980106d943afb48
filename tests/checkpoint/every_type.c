/* Saves one checkpoint with a tensor of every type (of those narrower than a byte also one of one dimension), a scalar,
 * an empty one and one of several chunks, and what they held: `every_type CHECKPOINTS VALUES`. VALUES/NAME gets the
 * bytes of tensor NAME. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker-sidecar/runtime/include/rekindle.h"

struct array {
  const char* name;
  rk_dtype dtype;
  int rank;
  int64_t shape[2];
  size_t bytes;
};

static const struct array kArrays[] = {
    {"bool", RK_BOOL, 1, {5}, 5},
    {"u8", RK_U8, 2, {3, 5}, 15},
    {"i8", RK_I8, 2, {3, 5}, 15},
    {"i16", RK_I16, 2, {3, 5}, 30},
    {"u16", RK_U16, 2, {3, 5}, 30},
    {"f16", RK_F16, 2, {3, 5}, 30},
    {"bf16", RK_BF16, 2, {3, 5}, 30},
    {"i32", RK_I32, 2, {3, 5}, 60},
    {"u32", RK_U32, 2, {3, 5}, 60},
    {"f32", RK_F32, 2, {3, 5}, 60},
    {"f64", RK_F64, 2, {3, 5}, 120},
    {"i64", RK_I64, 2, {3, 5}, 120},
    {"u64", RK_U64, 2, {3, 5}, 120},
    {"f8_e4m3", RK_F8_E4M3, 1, {7}, 7},
    {"f8_e5m2", RK_F8_E5M2, 1, {7}, 7},
    {"f8_e8m0", RK_F8_E8M0, 1, {7}, 7},
    {"f8_e4m3fnuz", RK_F8_E4M3FNUZ, 1, {7}, 7},
    {"f8_e5m2fnuz", RK_F8_E5M2FNUZ, 1, {7}, 7},
    {"c64", RK_C64, 2, {3, 5}, 120},
    {"f4", RK_F4, 2, {3, 6}, 9},
    {"f4_line", RK_F4, 1, {10}, 5},
    {"f6_e2m3", RK_F6_E2M3, 2, {3, 4}, 9},
    {"f6_e3m2", RK_F6_E3M2, 2, {5, 8}, 30},
    {"f6_line", RK_F6_E3M2, 1, {12}, 9},
    {"scalar", RK_F64, 0, {0}, 8},
    {"empty", RK_F32, 2, {0, 4}, 0},
    {"large", RK_F32, 2, {1536, 2048}, (size_t)1536 * 2048 * 4},
};
enum { kCount = sizeof kArrays / sizeof kArrays[0] };

static int failed(const char* call) {
  fprintf(stderr, "every_type: %s: %s\n", call, rk_last_error());
  return 1;
}

static void fill(unsigned char* bytes, size_t count, unsigned char most) {
  static uint64_t value = 88172645463325252u;
  for (size_t i = 0; i < count; ++i) {
    value ^= value << 13, value ^= value >> 7, value ^= value << 17;
    bytes[i] = (unsigned char)(value % ((unsigned)most + 1));
  }
}

static int keep(const char* folder, const char* name, const void* data, size_t bytes) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE* file = fopen(path, "wb");
  const int ok = file && fwrite(data, 1, bytes, file) == bytes;
  return file && fclose(file) == 0 && ok;
}

int main(int count, char** arguments) {
  if (count != 3) return 2;
  rk_session* session = NULL;
  const rk_options options = {
      .struct_size = sizeof options, .socket_path = "", .checkpoint_dir = arguments[1], .world_size = 1};
  if (rk_open(&options, &session) != RK_OK) return failed("rk_open");
  unsigned char* data[kCount];
  for (int i = 0; i < kCount; ++i) {
    const struct array* array = &kArrays[i];
    data[i] = malloc(array->bytes + 1);
    rk_tensor tensor = {
        .struct_size = sizeof tensor, .name = array->name, .data = data[i], .dtype = array->dtype, .rank = array->rank};
    memcpy(tensor.shape, array->shape, sizeof array->shape);
    if (rk_register(session, &tensor) != RK_OK) return failed("rk_register");
  }
  unsigned char state[24];
  if (rk_register_state(session, "sampler", state, sizeof state) != RK_OK) return failed("rk_register_state");
  rk_position at = {.struct_size = sizeof at};
  if (rk_restore(session, &at) != RK_OK) return failed("rk_restore");
  if (rk_step_begin(session, 1) != RK_OK || rk_update_begin(session) != RK_OK) return failed("rk_update_begin");
  for (int i = 0; i < kCount; ++i) fill(data[i], kArrays[i].bytes, kArrays[i].dtype == RK_BOOL ? 1 : 255);
  fill(state, sizeof state, 255);
  if (rk_update_end(session) != RK_OK || rk_step_end(session) != RK_OK) return failed("rk_step_end");
  for (int i = 0; i < kCount; ++i) {
    if (!keep(arguments[2], kArrays[i].name, data[i], kArrays[i].bytes)) return failed("keeping values");
  }
  if (!keep(arguments[2], "state", state, sizeof state)) return failed("keeping values");
  if (rk_checkpoint(session) != RK_OK) return failed("rk_checkpoint");
  return rk_close(session);
}
