/* rekindle.h as a program in C99 sees it: sizes, offsets, numbers, and one story that calls every function. */
#include "abi_test.h"

#include <stdio.h>
#include <string.h>

#include "rekindle.h"

#define SIZE(type) {"sizeof " #type, sizeof(type)}
#define OFFSET(type, field) {#type "." #field, offsetof(type, field)}
#define NUMBER(constant) {#constant, (size_t)(constant)}

static const struct abi_number numbers[] = {
    NUMBER(RK_ABI_VERSION),
    NUMBER(RK_DIMENSIONS_MAX),
    NUMBER(RK_OK),
    NUMBER(RK_STOP),
    NUMBER(RK_REBUILD),
    NUMBER(-RK_ERROR_ARGUMENT),
    NUMBER(-RK_ERROR_STATE),
    NUMBER(-RK_ERROR_VERSION),
    NUMBER(-RK_ERROR_UNAVAILABLE),
    NUMBER(-RK_ERROR_STORAGE),
    NUMBER(-RK_ERROR_CORRUPT),
    NUMBER(-RK_ERROR_MISMATCH),
    NUMBER(-RK_ERROR_MEMORY),
    NUMBER(-RK_ERROR_INTERNAL),
    NUMBER(RK_BOOL),
    NUMBER(RK_U8),
    NUMBER(RK_I8),
    NUMBER(RK_I16),
    NUMBER(RK_U16),
    NUMBER(RK_F16),
    NUMBER(RK_BF16),
    NUMBER(RK_I32),
    NUMBER(RK_U32),
    NUMBER(RK_F32),
    NUMBER(RK_F64),
    NUMBER(RK_I64),
    NUMBER(RK_U64),
    NUMBER(RK_F8_E4M3),
    NUMBER(RK_F8_E5M2),
    NUMBER(RK_F8_E8M0),
    NUMBER(RK_F8_E4M3FNUZ),
    NUMBER(RK_F8_E5M2FNUZ),
    NUMBER(RK_C64),
    NUMBER(RK_F4),
    NUMBER(RK_F6_E2M3),
    NUMBER(RK_F6_E3M2),
    NUMBER(RK_UPDATE),
    NUMBER(RK_ANYWHERE),
    NUMBER(RK_DERIVED),
    NUMBER(RK_NEVER_EXIT),
    NUMBER(RK_REBUILDS),
    NUMBER(RK_STATE_MISSING),
    NUMBER(RK_TRAINING),
    NUMBER(RK_EVALUATING),
    NUMBER(RK_COMPILING),
    NUMBER(RK_WAITING_FOR_DATA),
    NUMBER(RK_SWAPPED),
    SIZE(rk_status),
    SIZE(rk_dtype),
    SIZE(rk_written_in),
    SIZE(rk_phase),
    SIZE(rk_options),
    OFFSET(rk_options, struct_size),
    OFFSET(rk_options, socket_path),
    OFFSET(rk_options, checkpoint_dir),
    OFFSET(rk_options, job),
    OFFSET(rk_options, rank),
    OFFSET(rk_options, world_size),
    OFFSET(rk_options, flags),
    OFFSET(rk_options, state_bytes_max),
    OFFSET(rk_options, open_seconds_max),
    OFFSET(rk_options, reserved),
    SIZE(rk_shard),
    OFFSET(rk_shard, global_shape),
    OFFSET(rk_shard, offset),
    SIZE(rk_memory),
    OFFSET(rk_memory, struct_size),
    OFFSET(rk_memory, context),
    OFFSET(rk_memory, copy_out),
    OFFSET(rk_memory, copy_in),
    OFFSET(rk_memory, wait),
    OFFSET(rk_memory, reserved),
    SIZE(rk_tensor),
    OFFSET(rk_tensor, struct_size),
    OFFSET(rk_tensor, name),
    OFFSET(rk_tensor, data),
    OFFSET(rk_tensor, memory),
    OFFSET(rk_tensor, dtype),
    OFFSET(rk_tensor, rank),
    OFFSET(rk_tensor, shape),
    OFFSET(rk_tensor, stride),
    OFFSET(rk_tensor, shard),
    OFFSET(rk_tensor, written_in),
    OFFSET(rk_tensor, reserved),
    SIZE(rk_cursor),
    OFFSET(rk_cursor, struct_size),
    OFFSET(rk_cursor, epoch),
    OFFSET(rk_cursor, samples),
    OFFSET(rk_cursor, reserved),
    SIZE(rk_position),
    OFFSET(rk_position, struct_size),
    OFFSET(rk_position, step),
    OFFSET(rk_position, attempt),
    OFFSET(rk_position, path),
    OFFSET(rk_position, flags),
    OFFSET(rk_position, reserved),
};

const struct abi_number* abi_numbers(size_t* count) {
  *count = sizeof numbers / sizeof numbers[0];
  return numbers;
}

static char complaint[8192];

#define EXPECT(condition)                                                                                          \
  do {                                                                                                             \
    if (!(condition)) {                                                                                            \
      snprintf(complaint, sizeof complaint, "line %d: %s; last error: %s", __LINE__, #condition, rk_last_error()); \
      return complaint;                                                                                            \
    }                                                                                                              \
  } while (0)

/* A "device" whose memory this process could not use directly: every byte is kept inverted there. */
struct device {
  unsigned char bytes[8];
  int waits;
};

static int copy_out(void* context, void* to_host, const void* from, size_t bytes) {
  size_t i;
  (void)context;
  for (i = 0; i < bytes; ++i) ((unsigned char*)to_host)[i] = (unsigned char)~((const unsigned char*)from)[i];
  return 0;
}

static int copy_in(void* context, void* to, const void* from_host, size_t bytes) {
  return copy_out(context, to, from_host, bytes);
}

static int wait_for_device(void* context) {
  ++((struct device*)context)->waits;
  return 0;
}

/* A state whose length grows with the step. */
struct loader {
  char text[16];
  size_t bytes;
};

static int64_t save_loader(void* context, void* to, size_t room) {
  const struct loader* loader = context;
  if (loader->bytes > room) return -1;
  memcpy(to, loader->text, loader->bytes);
  return (int64_t)loader->bytes;
}

static int load_loader(void* context, const void* from, size_t bytes) {
  struct loader* loader = context;
  if (bytes > sizeof loader->text) return 1;
  memcpy(loader->text, from, bytes);
  loader->bytes = bytes;
  return 0;
}

struct model {
  float weights[8];
  float moments[8];
  float matrix[6]; /* registered as its transposed */
  uint64_t sampler;
  struct device device;
  struct loader loader;
  rk_cursor cursor;
};

static rk_tensor vector_of_8(const char* name, float* data) {
  rk_tensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.struct_size = sizeof tensor;
  tensor.name = name;
  tensor.data = data;
  tensor.dtype = RK_F32;
  tensor.rank = 1;
  tensor.shape[0] = 8;
  return tensor;
}

/* Up to and with rk_restore. */
static const char* begin(const char* folder, struct model* model, rk_session** run, rk_position* at) {
  rk_options options;
  rk_tensor tensor;
  rk_memory memory;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.checkpoint_dir = folder;
  options.world_size = 1;
  EXPECT(rk_open(&options, run) == RK_OK);
  tensor = vector_of_8("weights", model->weights);
  EXPECT(rk_register(*run, &tensor) == RK_OK);
  tensor = vector_of_8("moments", model->moments);
  tensor.written_in = RK_ANYWHERE;
  EXPECT(rk_register(*run, &tensor) == RK_OK);
  EXPECT(rk_register_state(*run, "sampler", &model->sampler, sizeof model->sampler) == RK_OK);
  tensor = vector_of_8("transposed", model->matrix);
  tensor.rank = 2;
  tensor.shape[0] = 3;
  tensor.shape[1] = 2;
  tensor.stride[0] = 1;
  tensor.stride[1] = 3;
  EXPECT(rk_register(*run, &tensor) == RK_OK);
  memset(&memory, 0, sizeof memory);
  memory.struct_size = sizeof memory;
  memory.context = &model->device;
  memory.copy_out = copy_out;
  memory.copy_in = copy_in;
  memory.wait = wait_for_device;
  tensor = vector_of_8("on_device", NULL);
  tensor.data = model->device.bytes;
  tensor.dtype = RK_U8;
  tensor.memory = &memory;
  EXPECT(rk_register(*run, &tensor) == RK_OK);
  tensor = vector_of_8("cache", model->weights);
  tensor.written_in = RK_DERIVED;
  EXPECT(rk_register(*run, &tensor) == RK_OK);
  EXPECT(rk_register_state_callback(*run, "loader", sizeof model->loader.text, save_loader, load_loader,
                                    &model->loader) == RK_OK);
  model->cursor.struct_size = sizeof model->cursor;
  EXPECT(rk_register_cursor(*run, &model->cursor) == RK_OK);
  memset(at, 0, sizeof *at);
  at->struct_size = sizeof *at;
  EXPECT(rk_restore(*run, at) == RK_OK);
  return NULL;
}

static const char* first_life(const char* folder) {
  struct model model;
  float elsewhere[8];
  float scratch[8] = {0};
  rk_session* run = NULL;
  rk_position at;
  rk_tensor extra;
  uint64_t step;
  int i;
  const char* failed;
  memset(&model, 0, sizeof model);
  failed = begin(folder, &model, &run, &at);
  if (failed != NULL) return failed;
  EXPECT(at.step == 0 && at.attempt == 1 && at.path == NULL && at.flags == 0);
  for (step = 1; step <= 3; ++step) {
    EXPECT(rk_step_begin(run, step) == RK_OK);
    EXPECT(rk_set_phase(run, RK_COMPILING) == RK_OK);
    EXPECT(rk_set_phase(run, RK_TRAINING) == RK_OK);
    EXPECT(rk_update_begin(run) == RK_OK);
    for (i = 0; i < 8; ++i) model.weights[i] = model.moments[i] = (float)step;
    for (i = 0; i < 6; ++i) model.matrix[i] = (float)(10 * step + (uint64_t)i);
    memset(model.device.bytes, (int)~step & 255, sizeof model.device.bytes);
    memcpy(model.loader.text, "loader", 6);
    model.loader.bytes = 2 * step;
    model.cursor.epoch = 1;
    model.cursor.samples = 32 * step;
    model.sampler = step;
    EXPECT(rk_update_end(run) == RK_OK);
    EXPECT(rk_set_phase(run, RK_SWAPPED) == RK_OK);
    EXPECT(rk_step_end(run) == RK_ERROR_STATE);
    EXPECT(rk_set_phase(run, RK_TRAINING) == RK_OK);
    EXPECT(rk_step_end(run) == RK_OK);
  }
  EXPECT(model.device.waits >= 6); /* around each update */
  EXPECT(rk_step_begin(run, 4) == RK_OK);
  EXPECT(rk_update_skip(run) == RK_OK);
  EXPECT(rk_step_end(run) == RK_OK);
  memcpy(elsewhere, model.weights, sizeof elsewhere);
  EXPECT(rk_move(run, "weights", elsewhere) == RK_OK);
  extra = vector_of_8("scratch", scratch);
  EXPECT(rk_register(run, &extra) == RK_OK);
  EXPECT(rk_unregister(run, "scratch") == RK_OK);
  EXPECT(rk_checkpoint(run) == RK_OK);
  EXPECT(rk_close(run) == 0);
  return NULL;
}

static const char* second_life(const char* folder) {
  struct model model;
  rk_session* run = NULL;
  rk_position at;
  const char* failed;
  memset(&model, 0, sizeof model);
  failed = begin(folder, &model, &run, &at);
  if (failed != NULL) return failed;
  EXPECT(at.step == 4 && at.attempt == 2 && at.path != NULL);
  EXPECT(model.weights[7] == 3.0f && model.moments[0] == 3.0f && model.sampler == 3);
  EXPECT(model.matrix[0] == 30.0f && model.matrix[5] == 35.0f);
  EXPECT(model.device.bytes[0] == (unsigned char)~3 && model.device.bytes[7] == (unsigned char)~3);
  EXPECT(model.loader.bytes == 6 && memcmp(model.loader.text, "loader", 6) == 0);
  EXPECT(model.cursor.epoch == 1 && model.cursor.samples == 96);
  EXPECT(rk_step_begin(run, 9) == RK_ERROR_ARGUMENT);
  EXPECT(strstr(rk_last_error(), "rk_step_begin(9)") != NULL);
  EXPECT(rk_rebuild(run, &at) == RK_ERROR_STATE);
  EXPECT(rk_step_begin(run, 5) == RK_OK);
  EXPECT(rk_collective_failed(run, "ring broken") == RK_STOP);
  EXPECT(rk_rebuild(run, &at) == RK_STOP);
  EXPECT(rk_close(run) == 143);
  return NULL;
}

const char* abi_use_everything(const char* folder) {
  const char* failed;
  rk_memory cuda;
  rk_status status;
  EXPECT(rk_abi_version() == RK_ABI_VERSION);
  EXPECT(strcmp(rk_version(), REKINDLE_VERSION) == 0);
  EXPECT(strcmp(rk_status_name(RK_ERROR_STORAGE), "RK_ERROR_STORAGE") == 0);
  memset(&cuda, 0, sizeof cuda);
  cuda.struct_size = sizeof cuda;
  status = rk_cuda_memory(0, &cuda);
  EXPECT(status == RK_OK ? cuda.copy_out != NULL : status == RK_ERROR_UNAVAILABLE && cuda.copy_out == NULL);
  failed = first_life(folder);
  return failed != NULL ? failed : second_life(folder);
}
