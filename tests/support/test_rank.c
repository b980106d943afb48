/* A training program for tests: a deterministic update loop over rekindle.h, in step with its peers through a barrier
 * in a shared file, and able to die where a test asks. Everything is set by environment:
 *
 *   TEST_STEPS          steps to train (20)
 *   TEST_STEP_MICROSECONDS  time that the forward pass of a step takes (1000)
 *   TEST_FOLDER         where results, marks and the barrier are kept (required)
 *   TEST_LAYOUT         who holds what: "alike" (every rank all rows), "rows" (each its rows of every tensor, as shards
 * of it), "stages" (the same rows, as tensors of its own under a name that no other rank has) TEST_LATE_MOMENTS   "1":
 * in the first life of the process moments are registered after step 1, as those of Adam are TEST_BALLAST_MIB    so
 * many MiB more of state, which every rank has and every update changes (0) TEST_MANY_TENSORS   this many small tensors
 * beside the model, as mixtures of experts have (0); every rank holds them TEST_MOVES          "1": weights move to
 * other memory between all steps TEST_FAULT          "<rank>:<step>:<where>[:<attempt>]": where is computing, updating,
 * committed, committed_by_all or before_open; the process kills itself with SIGKILL there. "<where>" exit3 leaves with
 * code 3 instead, while computing; updating waits until all others have made that update. attempt is 1 unless given
 * TEST_COLLECTIVE_SECONDS  how long the barrier waits for a peer before it counts as failed (30) TEST_HANG_RANK this
 * rank stops inside the barrier for ever at step TEST_HANG_STEP TEST_REBUILDS       "1": makes its communicators anew
 * in the process (RK_REBUILDS); "0,2": only these ranks can TEST_FLAP           "<rank>:<step>:<when>[:<times>]": that
 * rank breaks the communicators of all, instead of giving its part to this step's collective (when is "before"), or
 * after it, when all others have made this step and it has not ("after"). `times` in a row (1), in the first life of
 * the job TEST_SLOW_TO_NOTICE this rank looks no more for half a second when its communicator breaks TEST_ASK_STEP rank
 * 0 calls rk_checkpoint after this step
 *
 * Results in TEST_FOLDER: rebuilt-<rank> (how often it made its communicators anew), pid-<rank> (of each process a
 * line), weights-<rank> (weights and moments of the rows that it holds, written at the end), first-<rank>-<attempt>
 * (the first step of each attempt), step-<rank> (the last committed step). Exit code: that of rk_close, 9 when what was
 * restored is not what this step should have, 8 when the library reports an error. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "worker-sidecar/runtime/include/rekindle.h"

#define ROWS 64
#define COLUMNS 33

/* The whole model; a rank keeps up and registers rows begin to end of it. */
struct model {
  double weights[ROWS][COLUMNS], moments[ROWS][COLUMNS];
  double scale;
};

static const char* folder;
static int rank, world;
static uint64_t* ballast; /* numbers that follow from their place and the step */
static size_t ballast_count;
static int begin_row, end_row;

static long number(const char* name, long otherwise) {
  const char* text = getenv(name);
  return text && *text ? atol(text) : otherwise;
}

static void must(rk_status status, const char* call) {
  if (status >= 0) return;
  fprintf(stderr, "rank %d: %s: %s: %s\n", rank, call, rk_status_name(status), rk_last_error());
  exit(8);
}

static void note(const char* name, unsigned long long value) {
  char path[4096], temporary[4120];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  snprintf(temporary, sizeof temporary, "%s.%d", path, (int)getpid());
  FILE* file = fopen(temporary, "w");
  if (!file) return;
  fprintf(file, "%llu\n", value);
  fclose(file);
  rename(temporary, path);
}

/* A line more. */
static void append(const char* name, unsigned long long value) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE* file = fopen(path, "a");
  if (!file) return;
  fprintf(file, "%llu\n", value);
  fclose(file);
}

struct fault {
  int rank;
  unsigned long long step;
  char where[32];
  unsigned long long attempt;
} fault = {-1, 0, "", 1};

static void die_here(const char* where, unsigned long long step, unsigned long long attempt) {
  if (fault.rank != rank || fault.step != step || (attempt != 0 && fault.attempt != attempt)) return;
  if (strcmp(fault.where, "exit3") == 0 && strcmp(where, "computing") == 0) _exit(3);
  if (strcmp(fault.where, where) == 0) kill(getpid(), SIGKILL);
}

static void pause_microseconds(long microseconds) {
  struct timespec time = {microseconds / 1000000, microseconds % 1000000 * 1000};
  nanosleep(&time, NULL);
}

/* A communicator: each rank writes the step it has reached; the collective is complete when all have reached it.
 * Broken, it completes no collective any more. One is made for each attempt, and each time that the ranks rebuild. */
enum { RANKS_MAX = 1024 };
struct communicator {
  _Atomic unsigned long long broken;
  _Atomic unsigned long long arrived[RANKS_MAX];
  _Atomic unsigned long long committed[RANKS_MAX];
};
static struct communicator* communicator;
static int made;

static void open_communicator(unsigned long long attempt) {
  char path[4096];
  snprintf(path, sizeof path, "%s/communicator-%llu-%d", folder, attempt, made++);
  const size_t bytes = sizeof(struct communicator);
  int file = open(path, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, (off_t)bytes) != 0) {
    perror(path);
    exit(8);
  }
  communicator = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
}

static struct {
  int rank;
  unsigned long long step;
  char when[16];
  int times;
} flap = {-1, 0, "", 1};

static int others_are_at(const _Atomic unsigned long long* steps, unsigned long long step) {
  for (int peer = 0; peer < world; ++peer) {
    if (peer != rank && atomic_load(&steps[peer]) < step) return 0;
  }
  return 1;
}

/* All others have given their part to this step's collective. */
static int others_arrived(unsigned long long step) { return others_are_at(communicator->arrived, step); }

static void wait_for_others(const _Atomic unsigned long long* steps, unsigned long long step) {
  while (!others_are_at(steps, step)) pause_microseconds(50);
}

/* When all others have made this update: what is to be saved does not hang on who was faster. */
static void die_behind_others(const char* where, unsigned long long step, unsigned long long attempt) {
  if (strcmp(fault.where, where) != 0 || fault.rank != rank || fault.step != step || fault.attempt != attempt) return;
  wait_for_others(communicator->committed, step);
  kill(getpid(), SIGKILL);
}

/* When all others wait in it: each of them has rebuilt before it breaks again. */
static void break_communicator(unsigned long long step) {
  const int after = strcmp(flap.when, "after") == 0;
  if (after) atomic_store(&communicator->arrived[rank], step);
  wait_for_others(communicator->arrived, after ? step + 1 : step);
  atomic_store(&communicator->broken, 1);
}

static int collective(unsigned long long step) {
  if (rank == flap.rank && step == flap.step && flap.times > 0) {
    --flap.times;
    break_communicator(step);
    return -1;
  }
  atomic_store(&communicator->arrived[rank], step);
  if (rank == number("TEST_HANG_RANK", -1) && step == (unsigned long long)number("TEST_HANG_STEP", 0)) {
    for (;;) pause();
  }
  long budget = number("TEST_COLLECTIVE_SECONDS", 30) * 1000000;
  while (!others_arrived(step)) {
    pause_microseconds(50);
    if (atomic_load(&communicator->broken)) {
      if (rank == number("TEST_SLOW_TO_NOTICE", -1)) pause_microseconds(500000);
      return -1;
    }
    if ((budget -= 100) < 0) return -1;
  }
  return 0;
}

static void update_row(struct model* model, double (*weights)[COLUMNS], unsigned long long step, int row) {
  for (int column = 0; column < COLUMNS; ++column) {
    const double gradient = (double)((step * 31 + (unsigned)row * 7 + (unsigned)column) % 101) - 50.0;
    model->moments[row][column] = model->moments[row][column] * 0.9 + gradient * 0.1;
    weights[row][column] -= model->moments[row][column] * 0.01 * model->scale;
  }
}

/* Elements of the many tensors: a 2 x 2 matrix each, beginning as zeros. */
#define MANY_ELEMENTS 4
static long many_count;
static double* many;

static void update_many(double* elements, unsigned long long step) {
  for (long i = 0; i < many_count * MANY_ELEMENTS; ++i)
    elements[i] += (double)((step * 31 + (unsigned long long)i * 7) % 101);
}

static uint64_t ballast_value(unsigned long long step, size_t place) { return step * 1000003 + place; }

static void update_ballast(unsigned long long step) {
  for (size_t i = 0; i < ballast_count; ++i) ballast[i] = ballast_value(step, i);
}

/* Whether the many tensors and the ballast are those of that step. */
static int extras_are_right(unsigned long long step) {
  int right = 1;
  for (size_t i = 0; i < ballast_count; ++i) right = right && ballast[i] == ballast_value(step, i);
  if (many_count == 0) return right;
  const size_t bytes = (size_t)many_count * MANY_ELEMENTS * sizeof *many;
  double* expected = calloc(1, bytes);
  if (!expected) exit(8);
  for (unsigned long long done = 1; done <= step; ++done) update_many(expected, done);
  right = right && memcmp(expected, many, bytes) == 0;
  free(expected);
  return right;
}

static struct model model;
static double elsewhere[ROWS][COLUMNS];
static double (*weights)[COLUMNS] = model.weights; /* they may move to `elsewhere` */
static unsigned long long sampler;

/* What was restored has to be what training up to that step computes, to the last bit. */
static void check_restored(const rk_position* at) {
  if (!(at->flags & RK_STATE_MISSING) && sampler != at->step * 7) {
    fprintf(stderr, "rank %d: the sampler is %llu at step %llu\n", rank, sampler, (unsigned long long)at->step);
    exit(9);
  }
  struct model expected = {.scale = 1.0};
  for (unsigned long long done = 1; done <= at->step; ++done) {
    for (int row = begin_row; row < end_row; ++row) update_row(&expected, expected.weights, done, row);
    expected.scale *= 0.9999;
  }
  const int same = memcmp(expected.weights, weights, sizeof expected.weights) == 0 &&
                   memcmp(expected.moments, model.moments, sizeof expected.moments) == 0 &&
                   expected.scale == model.scale && extras_are_right(at->step);
  if (!same) {
    fprintf(stderr, "rank %d: what was restored is not the state of step %llu\n", rank, (unsigned long long)at->step);
    exit(9);
  }
}

static rk_tensor rows_of(const char* name, double (*data)[COLUMNS]) {
  static char names[4][64];
  static int used;
  rk_tensor tensor = {.struct_size = sizeof tensor,
                      .name = name,
                      .data = data[begin_row],
                      .dtype = RK_F64,
                      .rank = 2,
                      .shape = {end_row - begin_row, COLUMNS}};
  const char* layout = getenv("TEST_LAYOUT");
  if (layout && strcmp(layout, "rows") == 0) {
    tensor.shard = (rk_shard){.global_shape = {ROWS, COLUMNS}, .offset = {begin_row, 0}};
  } else if (layout && strcmp(layout, "stages") == 0) {
    snprintf(names[used], sizeof names[used], "%s.of_stage_%d", name, rank);
    tensor.name = names[used++];
  }
  return tensor;
}

static void register_extras(rk_session* session) {
  many_count = number("TEST_MANY_TENSORS", 0);
  many = calloc((size_t)many_count + 1, MANY_ELEMENTS * sizeof *many);
  ballast_count = (size_t)number("TEST_BALLAST_MIB", 0) * (1 << 20) / sizeof *ballast;
  ballast = malloc((ballast_count + 1) * sizeof *ballast);
  if (!many || !ballast) exit(8);
  update_ballast(0);
  for (long i = 0; i < many_count; ++i) {
    char name[128];
    snprintf(name, sizeof name, "model.layers.%ld.mlp.experts.%ld.gate_proj.weight.exp_avg_sq", i / 512, i % 512);
    must(rk_register(session, &(rk_tensor){.struct_size = sizeof(rk_tensor),
                                           .name = name,
                                           .data = many + i * MANY_ELEMENTS,
                                           .dtype = RK_F64,
                                           .rank = 2,
                                           .shape = {2, MANY_ELEMENTS / 2}}),
         "rk_register");
  }
  if (ballast_count > 0) {
    must(rk_register(session, &(rk_tensor){.struct_size = sizeof(rk_tensor),
                                           .name = "ballast",
                                           .data = ballast,
                                           .dtype = RK_U64,
                                           .rank = 2,
                                           .shape = {(int64_t)ballast_count / 1024, 1024}}),
         "rk_register");
  }
}

static int can_rebuild(void) {
  const char* ranks = getenv("TEST_REBUILDS");
  if (!ranks || strcmp(ranks, "1") == 0) return ranks != NULL;
  for (const char* at = ranks; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
    if (atoi(at) == rank) return 1;
  }
  return 0;
}

static rk_tensor weights_tensor, moments_tensor;
static int late, moves;

/* Until the last step, or what ended it before. */
static rk_status train(rk_session* session, const rk_position* at, unsigned long long steps) {
  char name[64];
  snprintf(name, sizeof name, "step-%d", rank);
  for (unsigned long long step = at->step + 1; step <= steps; ++step) {
    rk_status status = rk_step_begin(session, step);
    must(status, "rk_step_begin");
    if (status != RK_OK) return status;
    die_here("computing", step, at->attempt);
    pause_microseconds(number("TEST_STEP_MICROSECONDS", 1000));
    if (collective(step) != 0) {
      status = rk_collective_failed(session, "a peer did not answer");
      must(status, "rk_collective_failed");
      return status;
    }
    status = rk_update_begin(session);
    must(status, "rk_update_begin");
    if (status != RK_OK) return status;
    for (int row = begin_row; row < end_row; ++row) {
      if (row == (begin_row + end_row) / 2) die_behind_others("updating", step, at->attempt);
      update_row(&model, weights, step, row);
    }
    update_many(many, step);
    update_ballast(step);
    model.scale *= 0.9999;
    sampler += 7;
    must(rk_update_end(session), "rk_update_end");
    atomic_store(&communicator->committed[rank], step);
    note(name, step);
    die_here("committed", step, at->attempt);
    die_behind_others("committed_by_all", step, at->attempt);
    if (rank == 0 && step == (unsigned long long)number("TEST_ASK_STEP", 0))
      must(rk_checkpoint(session), "rk_checkpoint");
    status = rk_step_end(session);
    must(status, "rk_step_end");
    if (status != RK_OK) return status;
    if (late && step == 1) {
      status = rk_register(session, &moments_tensor);
      must(status, "rk_register");
      if (status != RK_OK) return status;
    }
    if (moves) {
      double(*to)[COLUMNS] = weights == elsewhere ? model.weights : elsewhere;
      memcpy(to, weights, sizeof elsewhere);
      status = rk_move(session, weights_tensor.name, to[begin_row]);
      must(status, "rk_move");
      if (status != RK_OK) return status;
      memset(weights, 0xff, sizeof elsewhere);
      weights = to;
    }
  }
  return RK_OK;
}

int main(void) {
  folder = getenv("TEST_FOLDER");
  rank = (int)number("REKINDLE_RANK", 0);
  world = (int)number("REKINDLE_WORLD_SIZE", 1);
  const unsigned long long steps = (unsigned long long)number("TEST_STEPS", 20);
  if (!folder) return 8;
  const char* text = getenv("TEST_FAULT");
  if (text) sscanf(text, "%d:%llu:%31[a-z_0-9]:%llu", &fault.rank, &fault.step, fault.where, &fault.attempt);
  text = getenv("TEST_FLAP");
  if (text) sscanf(text, "%d:%llu:%15[a-z]:%d", &flap.rank, &flap.step, flap.when, &flap.times);

  if (strcmp(fault.where, "before_open") == 0) {
    char mark[4096];
    snprintf(mark, sizeof mark, "%s/died-before-open", folder);
    if (fault.rank == rank && access(mark, F_OK) != 0) {
      note("died-before-open", 1);
      kill(getpid(), SIGKILL);
    }
  }

  const char* layout = getenv("TEST_LAYOUT");
  const int alike = !layout || strcmp(layout, "alike") == 0;
  begin_row = alike ? 0 : ROWS * rank / world;
  end_row = alike ? ROWS : ROWS * (rank + 1) / world;
  char name[4200];
  snprintf(name, sizeof name, "%s/step-%d", folder, rank);
  late = number("TEST_LATE_MOMENTS", 0) && access(name, F_OK) != 0;
  moves = (int)number("TEST_MOVES", 0);
  model.scale = 1.0;

  rk_session* session = NULL;
  rk_options options = {.struct_size = sizeof options, .flags = can_rebuild() ? RK_REBUILDS : 0};
  must(rk_open(&options, &session), "rk_open");
  weights_tensor = rows_of("weights", weights);
  moments_tensor = rows_of("moments", model.moments);
  must(rk_register(session, &weights_tensor), "rk_register");
  if (!late) must(rk_register(session, &moments_tensor), "rk_register");
  must(rk_register(
           session,
           &(rk_tensor){.struct_size = sizeof(rk_tensor), .name = "scale", .data = &model.scale, .dtype = RK_F64}),
       "rk_register");
  register_extras(session);
  must(rk_register_state(session, "sampler", &sampler, sizeof sampler), "rk_register_state");
  rk_position at = {.struct_size = sizeof at};
  must(rk_restore(session, &at), "rk_restore");
  snprintf(name, sizeof name, "pid-%d", rank);
  append(name, (unsigned long long)getpid());
  snprintf(name, sizeof name, "first-%d-%llu", rank, (unsigned long long)at.attempt);
  note(name, at.step + 1);
  if (at.attempt != 1) flap.times = 0;
  rk_status status;
  do {
    check_restored(&at);
    sampler = at.step * 7;
    open_communicator(at.attempt);
    status = train(session, &at, steps);
    if (status != RK_REBUILD) break;
    /* The communicator is left as it is, and its collectives with it. */
    status = rk_rebuild(session, &at);
    must(status, "rk_rebuild");
    snprintf(name, sizeof name, "rebuilt-%d", rank);
    if (status == RK_OK) note(name, (unsigned long long)made);
  } while (status == RK_OK);

  const int code = rk_close(session);
  if (code == 0) {
    char path[4096];
    snprintf(path, sizeof path, "%s/weights-%d", folder, rank);
    FILE* file = fopen(path, "wb");
    if (!file) return 8;
    const size_t bytes = (size_t)(end_row - begin_row) * sizeof weights[0];
    fwrite(weights[begin_row], bytes, 1, file);
    fwrite(model.moments[begin_row], bytes, 1, file);
    fclose(file);
  }
  return code;
}
