/* A training program for tests: a deterministic update loop over rekindle.h, in step with its peers through a barrier in a shared
 * file, and able to die where a test asks. Everything is set by environment:
 *
 *   TEST_STEPS          steps to train (20)
 *   TEST_STEP_MICROSECONDS  time that the forward pass of a step takes (1000)
 *   TEST_FOLDER         where results, marks and the barrier are kept (required)
 *   TEST_FAULT          "<rank>:<step>:<where>[:<attempt>]": where is computing, updating, committed or before_open; the process kills itself with
 *                       SIGKILL there. "<where>" exit3 leaves with code 3 instead, while computing. attempt is 1 unless given
 *   TEST_COLLECTIVE_SECONDS  how long the barrier waits for a peer before it counts as failed (30)
 *   TEST_HANG_RANK      this rank stops inside the barrier for ever at step TEST_HANG_STEP
 *   TEST_ASK_STEP       rank 0 calls rk_checkpoint after this step
 *
 * Results in TEST_FOLDER: weights-<rank> (written at the end), first-<rank>-<attempt> (the first step of each attempt), step-<rank>
 * (the last committed step). Exit code: that of rk_close, 9 when what was restored is not what this step should have, 8 when the
 * library reports an error. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "worker-sidecar/runtime/include/rekindle.h"

#define ROWS 64
#define COLUMNS 33

static const char* folder;
static int rank, world;

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

/* Each rank writes the step it has reached; the collective is complete when all have reached it. */
static _Atomic unsigned long long* arrived;

static void open_barrier(unsigned long long attempt) {
  char path[4096];
  snprintf(path, sizeof path, "%s/barrier-%llu", folder, attempt);
  const size_t bytes = sizeof(unsigned long long) * 4096;
  int file = open(path, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, (off_t)bytes) != 0) {
    perror(path);
    exit(8);
  }
  arrived = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
}

static int collective(unsigned long long step) {
  atomic_store(&arrived[rank], step);
  if (rank == number("TEST_HANG_RANK", -1) && step == (unsigned long long)number("TEST_HANG_STEP", 0)) {
    for (;;) pause();
  }
  long budget = number("TEST_COLLECTIVE_SECONDS", 30) * 1000000;
  for (int peer = 0; peer < world; ++peer) {
    while (atomic_load(&arrived[peer]) < step) {
      pause_microseconds(50);
      if ((budget -= 100) < 0) return -1;
    }
  }
  return 0;
}

int main(void) {
  folder = getenv("TEST_FOLDER");
  rank = (int)number("REKINDLE_RANK", 0);
  world = (int)number("REKINDLE_WORLD_SIZE", 1);
  const unsigned long long steps = (unsigned long long)number("TEST_STEPS", 20);
  if (!folder) return 8;
  const char* text = getenv("TEST_FAULT");
  if (text) sscanf(text, "%d:%llu:%31[a-z_0-9]:%llu", &fault.rank, &fault.step, fault.where, &fault.attempt);

  if (strcmp(fault.where, "before_open") == 0) {
    char mark[4096];
    snprintf(mark, sizeof mark, "%s/died-before-open", folder);
    if (fault.rank == rank && access(mark, F_OK) != 0) {
      note("died-before-open", 1);
      kill(getpid(), SIGKILL);
    }
  }

  static double weights[ROWS][COLUMNS], moments[ROWS][COLUMNS];
  double scale = 1.0;
  unsigned long long sampler = 0;

  rk_session* session = NULL;
  rk_options options = {.struct_size = sizeof options};
  must(rk_open(&options, &session), "rk_open");
  must(rk_register(session, &(rk_tensor){.struct_size = sizeof(rk_tensor), .name = "weights", .data = weights, .dtype = RK_F64,
                                         .rank = 2, .shape = {ROWS, COLUMNS}}), "rk_register");
  must(rk_register(session, &(rk_tensor){.struct_size = sizeof(rk_tensor), .name = "moments", .data = moments, .dtype = RK_F64,
                                         .rank = 2, .shape = {ROWS, COLUMNS}}), "rk_register");
  must(rk_register(session, &(rk_tensor){.struct_size = sizeof(rk_tensor), .name = "scale", .data = &scale, .dtype = RK_F64}),
       "rk_register");
  must(rk_register_state(session, "sampler", &sampler, sizeof sampler), "rk_register_state");
  rk_position at = {.struct_size = sizeof at};
  must(rk_restore(session, &at), "rk_restore");
  open_barrier(at.attempt);
  if (!(at.flags & RK_STATE_MISSING) && sampler != at.step * 7) {
    fprintf(stderr, "rank %d: the sampler is %llu at step %llu\n", rank, sampler, (unsigned long long)at.step);
    return 9;
  }
  sampler = at.step * 7;
  char name[64];
  snprintf(name, sizeof name, "first-%d-%llu", rank, (unsigned long long)at.attempt);
  note(name, at.step + 1);
  snprintf(name, sizeof name, "step-%d", rank);

  for (unsigned long long step = at.step + 1; step <= steps; ++step) {
    rk_status status = rk_step_begin(session, step);
    must(status, "rk_step_begin");
    if (status == RK_STOP) break;
    die_here("computing", step, at.attempt);
    pause_microseconds(number("TEST_STEP_MICROSECONDS", 1000));
    if (collective(step) != 0) {
      must(rk_collective_failed(session, "a peer did not answer"), "rk_collective_failed");
      break;
    }
    status = rk_update_begin(session);
    must(status, "rk_update_begin");
    if (status == RK_STOP) break;
    for (int row = 0; row < ROWS; ++row) {
      if (row == ROWS / 2) die_here("updating", step, at.attempt);
      for (int column = 0; column < COLUMNS; ++column) {
        const double gradient = (double)((step * 31 + (unsigned)row * 7 + (unsigned)column) % 101) - 50.0;
        moments[row][column] = moments[row][column] * 0.9 + gradient * 0.1;
        weights[row][column] -= moments[row][column] * 0.01 * scale;
      }
    }
    scale *= 0.9999;
    sampler += 7;
    must(rk_update_end(session), "rk_update_end");
    note(name, step);
    die_here("committed", step, at.attempt);
    if (rank == 0 && step == (unsigned long long)number("TEST_ASK_STEP", 0)) must(rk_checkpoint(session), "rk_checkpoint");
    status = rk_step_end(session);
    must(status, "rk_step_end");
    if (status == RK_STOP) break;
  }

  const int code = rk_close(session);
  if (code == 0) {
    char path[4096];
    snprintf(path, sizeof path, "%s/weights-%d", folder, rank);
    FILE* file = fopen(path, "wb");
    if (!file) return 8;
    fwrite(weights, sizeof weights, 1, file);
    fwrite(moments, sizeof moments, 1, file);
    fclose(file);
  }
  return code;
}
