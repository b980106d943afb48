/* rekindle.h: makes the state of a training process resumable.
 *
 * Conventions, valid for every function below:
 *  1. C99. Handles are opaque. Strings are UTF-8, NUL-terminated, and copied unless the text says otherwise.
 *  2. Every function that may fail returns rk_status. RK_OK is 0. RK_STOP is 1 and is not an error: the run has to end,
 * leave the loop and call rk_close. RK_REBUILD is 2 and no error either; only a program that has set RK_REBUILDS meets
 * it: what was asked for was not done, see rk_rebuild. Errors are negative. Out-parameters come last and are untouched
 * on failure. rk_last_error() has the sentence that belongs to the last error of the calling thread.
 *  3. Structs that the caller fills begin with struct_size: set it to sizeof of the struct and zero the rest. A
 *     library that is newer than the caller takes missing fields as zero; one that is older refuses non-zero fields it
 *     does not know (RK_ERROR_VERSION).
 *  4. Threads: a session belongs to one training thread, which makes all calls on it. The library has one thread of its
 *     own, which writes checkpoints while the training thread computes, waits in a collective or holds an interpreter
 * lock. Functions that may be called from any thread say so.
 *  5. Memory given to rk_register, rk_register_state and rk_register_cursor stays the caller's, must stay mapped until
 * rk_unregister or rk_close, and is changed only between rk_update_begin and rk_update_end (tensors RK_UPDATE, states,
 * the cursor) or anywhere in a step (tensors RK_ANYWHERE); or else in RK_SWAPPED, see rk_set_phase.
 *  6. A step is one completed update, counted from 1. "Step n is committed" means: everything registered is the result
 * of exactly n updates. A checkpoint of step 184 resumes with step 185.
 *  7. The library installs no signal handlers, never calls exit or abort because of something outside it, and ends the
 * process in one case only: the session is parked after a breakpoint and the sidecar says that the container is being
 * terminated (exit code 143; RK_NEVER_EXIT switches it off).
 *  8. Not promised: use after fork() in the child (every call returns RK_ERROR_STATE there), two sessions in one
 * process.
 *  9. Functions that the caller gives (rk_memory, rk_register_state_callback) are called on the thread that each says,
 * must not call functions of this header, and must not throw.
 * 10. Stand-alone (no socket): one rank. The same calls work, with these differences: rk_open opens the checkpoint
 * folder and fails with STORAGE when it cannot be used; rk_checkpoint writes in the calling thread and returns when the
 * checkpoint is durable; rk_collective_failed returns RK_STOP at once; nothing holds the gates, and the end of the
 * process saves nothing.
 */
#ifndef REKINDLE_H
#define REKINDLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RK_API __attribute__((visibility("default")))
#else
#define RK_API
#endif

#define RK_ABI_VERSION 1u
#define RK_DIMENSIONS_MAX 8

typedef enum rk_status {
  RK_OK = 0,
  RK_STOP = 1,
  RK_REBUILD = 2, /* abort the communicators, call rk_rebuild, make new ones, go on with the step that it tells */
  RK_ERROR_ARGUMENT = -1,    /* a parameter is wrong; the sentence names it */
  RK_ERROR_STATE = -2,       /* the call does not fit the moment, for example rk_update_end without rk_update_begin */
  RK_ERROR_VERSION = -3,     /* library, header and sidecar do not fit each other */
  RK_ERROR_UNAVAILABLE = -4, /* the sidecar or the storage cannot be reached; trying again may help */
  RK_ERROR_STORAGE = -5,     /* the storage refused: missing, read-only, full; the sentence says what to change */
  RK_ERROR_CORRUPT = -6,     /* every checkpoint that could be used failed verification */
  RK_ERROR_MISMATCH = -7, /* the checkpoint does not fit the registered tensors; the sentence lists the differences */
  RK_ERROR_MEMORY = -8,
  RK_ERROR_INTERNAL = -9
} rk_status;

/* Element types; names and sizes are those of safetensors. RK_C64 is two RK_F32, the real part first.
 * RK_F4 (4 bits) and the RK_F6 kinds (6 bits) stand packed without gaps, and shapes, offsets and strides count
 * elements, not bytes or pairs: the last dimension of PyTorch's float4_e2m1fn_x2, two elements a byte, is registered as
 * twice what torch says. Only 2 elements of RK_F4, or 4 of an RK_F6 kind, are whole bytes, so the last dimension of
 * shape, global_shape and offset is a multiple of that, the last stride is 1 and every other stride a multiple of that.
 * Anything else is refused (ARGUMENT), a scalar too. */
typedef enum rk_dtype {
  RK_BOOL = 1,
  RK_U8 = 2,
  RK_I8 = 3,
  RK_I16 = 4,
  RK_U16 = 5,
  RK_F16 = 6,
  RK_BF16 = 7,
  RK_I32 = 8,
  RK_U32 = 9,
  RK_F32 = 10,
  RK_F64 = 11,
  RK_I64 = 12,
  RK_U64 = 13,
  RK_F8_E4M3 = 14,
  RK_F8_E5M2 = 15,
  RK_F8_E8M0 = 16,
  RK_F8_E4M3FNUZ = 17,
  RK_F8_E5M2FNUZ = 18,
  RK_C64 = 19,
  RK_F4 = 20,
  RK_F6_E2M3 = 21,
  RK_F6_E3M2 = 22
} rk_dtype;

typedef enum rk_written_in {
  RK_UPDATE = 0,   /* changed only inside the update bracket: parameters, optimizer moments */
  RK_ANYWHERE = 1, /* changed in the forward pass too: running statistics, scales; copied at every rk_update_end */
  RK_DERIVED = 2   /* rebuilt from the others (gathered parameters, caches): never saved, restored or compared */
} rk_written_in;

enum {
  /* rk_options.flags */
  RK_NEVER_EXIT = 1u, /* a parked process is left to the caller, see convention 7 */
  RK_REBUILDS = 2u    /* this program can abort its communicators and make new ones in the process, see rk_rebuild */
};

typedef struct rk_session rk_session;

typedef struct rk_options {
  size_t struct_size;
  const char* socket_path;    /* NULL: REKINDLE_SOCKET; neither: the process runs stand-alone */
  const char* checkpoint_dir; /* NULL: REKINDLE_CHECKPOINT_DIR; used when stand-alone, the sidecar's otherwise */
  const char* job;            /* NULL: REKINDLE_JOB or "local"; names the checkpoint folder when stand-alone */
  /* With world_size == 0 each comes from the first variable that is set of REKINDLE_RANK, RANK, RANK_ID, and of
   * REKINDLE_WORLD_SIZE, WORLD_SIZE, RANK_SIZE; rank 0 of 1 without them. */
  int32_t rank;
  int32_t world_size;
  uint32_t flags;
  uint32_t state_bytes_max;  /* room for small state and RK_ANYWHERE tensors of one step; 0: 65536 */
  uint32_t open_seconds_max; /* how long rk_open may wait for the rest of the job; 0: 600 */
  uint32_t reserved[7];
} rk_options;

/* Where this tensor's part lies in the whole. All zero: the tensor is whole and every rank holds the same (data
 * parallel). */
typedef struct rk_shard {
  int64_t global_shape[RK_DIMENSIONS_MAX];
  int64_t offset[RK_DIMENSIONS_MAX];
} rk_shard;

/* How to reach memory that the processor cannot read: that of a device. copy_out and copy_in get addresses that the
 * caller registered (moved on by a number of bytes) and host memory of the library; they return 0 when all bytes have
 * been copied. copy_out takes the bytes as they are and must not wait for other work of the device: in it a collective
 * may hang whose other end has died. copy_in comes after all work that was enqueued before it, and before all that is
 * enqueued later. A copy that fails fails the save or the restore, never the process. Threads: copy_out is called on
 * the library's thread, and on the training thread (also at the same time) in rk_checkpoint (stand-alone) and, for
 * RK_ANYWHERE, at a commit; copy_in on the training thread in rk_restore and rk_rebuild, and copy_out there as well
 * where a tensor was cut otherwise when it was saved: many rows go in one call, with what lies between them fetched
 * before and put back unchanged. */
typedef struct rk_memory {
  size_t struct_size;
  void* context; /* given to each function; must live until the last tensor with it is unregistered or the session
                    closed */
  int (*copy_out)(void* context, void* to_host, const void* from, size_t bytes);
  int (*copy_in)(void* context, void* to, const void* from_host, size_t bytes);
  /* Waits until all work enqueued so far is done; not 0 when that work failed. Called on the training thread, once for
   * each different context: in rk_update_begin and rk_update_skip before the gate (the gradients are complete), in
   * rk_update_end before the commit (the update is), and where registered memory counts as that of the step again
   * (rk_set_phase out of RK_SWAPPED, late registering, the first rk_step_begin). May be NULL: the caller has waited by
   * itself before these calls. */
  int (*wait)(void* context);
  uint32_t reserved[6];
} rk_memory;

/* An array of little-endian elements. */
typedef struct rk_tensor {
  size_t struct_size;
  const char* name; /* unique in the session, at most 255 bytes, not beginning with "rekindle." */
  void* data;
  const rk_memory*
      memory; /* NULL: memory of this process; otherwise copied, and data is an address that its functions understand */
  rk_dtype dtype;
  int32_t rank; /* number of dimensions, 0 (a scalar) to RK_DIMENSIONS_MAX */
  int64_t shape[RK_DIMENSIONS_MAX];
  /* Elements from one index to the next of each dimension; all zero: dense and row-major. Views with gaps or another
   * order are gathered when they are saved and scattered when they are restored. Refused: negative strides, elements
   * that share memory (stride 0 included), and strides together with `memory`. */
  int64_t stride[RK_DIMENSIONS_MAX];
  rk_shard shard;
  rk_written_in written_in;
  uint32_t reserved[5];
} rk_tensor;

typedef struct rk_position {
  size_t struct_size;
  uint64_t step;    /* the committed step that the registered memory now holds; 0: nothing to restore */
  uint64_t attempt; /* this life of the job, from 1 */
  const char* path; /* folder that was restored, NULL if none; valid until rk_close */
  uint32_t flags;   /* RK_STATE_MISSING */
  uint32_t reserved[5];
} rk_position;

enum {
  /* The small state of this rank at this step died with its node: registered states were left untouched, derive them
   * from seed, rank and step. Tensors are complete all the same. */
  RK_STATE_MISSING = 1u
};

/* How far the job has read its data, counted over all ranks and equal on each, so that any number of ranks can go on
 * from it. */
typedef struct rk_cursor {
  size_t struct_size;
  uint64_t epoch;
  uint64_t samples; /* of this epoch, read by all ranks together */
  uint32_t reserved[6];
} rk_cursor;

/* What the training thread is doing besides a step; long silence in these is work, not a hang. */
typedef enum rk_phase {
  RK_TRAINING = 0,
  RK_EVALUATING = 1,
  RK_COMPILING = 2,
  RK_WAITING_FOR_DATA = 3,
  RK_SWAPPED = 4 /* registered memory holds something else (averaged weights for an evaluation): not to be saved until
                    the phase changes */
} rk_phase;

/* RK_ABI_VERSION that the library was built with. Any thread. */
RK_API uint32_t rk_abi_version(void);

/* Version of the library, "MAJOR.MINOR.PATCH". Static storage. Any thread. */
RK_API const char* rk_version(void);

/* Name of a status, "RK_ERROR_STORAGE". Static storage. Any thread. */
RK_API const char* rk_status_name(rk_status status);

/* The sentence for the last error of the calling thread, "" if none. Valid until this thread's next failing call. Any
 * thread. */
RK_API const char* rk_last_error(void);

/* Finds the sidecar and waits until every rank of the job has come and no process of an earlier attempt is left.
 * options may be NULL. Errors: ARGUMENT, VERSION, UNAVAILABLE (nobody came within open_seconds_max), STORAGE, MEMORY.
 */
RK_API rk_status rk_open(const rk_options* options, rk_session** session);

/* Declares a tensor. Between rk_open and rk_restore, or later between steps for tensors that appear late (Adam
 * moments); then, like rk_move and rk_unregister, it may block while a breakpoint is written, and RK_STOP means that
 * nothing was changed. Errors: ARGUMENT (name taken, sizes overflow, data NULL with elements), STATE. */
RK_API rk_status rk_register(rk_session* session, const rk_tensor* tensor);

/* The tensor now lives at another address; same type and shape. Between steps or inside the update bracket. */
RK_API rk_status rk_move(rk_session* session, const char* name, void* data);

/* The tensor is gone. Between steps. */
RK_API rk_status rk_unregister(rk_session* session, const char* name);

/* Small state of this rank alone: sampler, random generator, loss scale. Captured at every rk_update_end, survives the
 * death of this process. bytes is fixed for the session. Errors: ARGUMENT (together over state_bytes_max), STATE. */
RK_API rk_status rk_register_state(rk_session* session, const char* name, void* data, size_t bytes);

/* Small state whose size changes from step to step (a data loader's dictionary), at most bytes_max, which count toward
 * state_bytes_max. Both functions are called on the training thread. save is called at every commit: it puts the state
 * into `to`, which has room for `room` bytes, and returns how many it put there, or a negative number when it cannot.
 * Then the commit stands, this rank's small state of that step counts as missing, and rk_last_error() has the sentence.
 * load is called once, in rk_restore, with exactly the bytes that save gave, after everything else has been verified
 * and taken, and so in each rk_rebuild; not 0: they cannot be used, and that call fails with MISMATCH. Errors as
 * rk_register_state. */
RK_API rk_status rk_register_state_callback(rk_session* session, const char* name, size_t bytes_max,
                                            int64_t (*save)(void* context, void* to, size_t room),
                                            int (*load)(void* context, const void* from, size_t bytes), void* context);

/* The cursor, at most one a session. Captured with every commit like a state; restored on every rank, also when the
 * number of ranks has changed or this rank's small state was lost. A checkpoint in which the ranks' cursors differ is
 * refused. Errors as rk_register_state. */
RK_API rk_status rk_register_cursor(rk_session* session, rk_cursor* cursor);

/* Fills *memory with functions for memory of CUDA device `device` (as cuDeviceGet counts), found in libcuda.so.1 when
 * this is called. It keeps the device's primary context, which is what torch and JAX use, until the process ends. Any
 * thread. Errors: ARGUMENT (memory without struct_size, no such device), UNAVAILABLE (no driver). */
RK_API rk_status rk_cuda_memory(int32_t device, rk_memory* memory);

/* Fills all registered memory with the newest step that the whole job can verify, one decision for all ranks.
 * Called once, after registering, also on the first start. Errors: CORRUPT, MISMATCH (registered memory may be partly
 * overwritten then; the job must not train on it), STORAGE, STATE. position must have struct_size set. */
RK_API rk_status rk_restore(rk_session* session, rk_position* position);

/* Step n begins: the forward pass may start. May block while a breakpoint is written. RK_STOP: leave the loop.
 * Errors: ARGUMENT (step is not the committed step + 1), STATE (before rk_restore). */
RK_API rk_status rk_step_begin(rk_session* session, uint64_t step);

/* All gradients of this step are complete and valid: from here to rk_update_end registered memory changes. No
 * communication inside. May block before it returns; RK_STOP: the update must not be made. STATE: rk_memory.wait says
 * that the work before it failed; the update must not be made, and the step can be reported with rk_collective_failed.
 */
RK_API rk_status rk_update_begin(rk_session* session);

/* The update is complete: captures small state and RK_ANYWHERE tensors and commits the step. Passes no gate; waits for
 * devices only. STATE: rk_memory.wait says that the update failed on a device; the step is not committed, registered
 * memory is no source, rk_close answers 1. */
RK_API rk_status rk_update_end(rk_session* session);

/* Instead of the bracket, when the step changes nothing (overflow found by a loss scaler): commits the step unchanged.
 */
RK_API rk_status rk_update_skip(rk_session* session);

/* After the bracket; logging and evaluation may follow. May block like rk_step_begin. RK_STOP: leave the loop. */
RK_API rk_status rk_step_end(rk_session* session);

/* A collective of the current step failed on this rank. Asks for a breakpoint of the job and blocks until it is durable
 * or has failed. Returns RK_STOP (leave the loop) or, with RK_REBUILDS, RK_REBUILD; never RK_OK. why is for people. */
RK_API rk_status rk_collective_failed(rk_session* session, const char* why);

/* The answer to RK_REBUILD. A collective has failed and nobody has died, so the job goes on in its processes: where
 * every rank has set RK_REBUILDS, each gets RK_REBUILD, from rk_collective_failed or from the gate that it comes to
 * next (rk_step_begin, rk_update_begin, rk_update_skip, rk_step_end, rk_set_phase, late registering), and from every
 * later one until it calls this. The step in progress is not made. The program
 *   1. aborts its communicators (a collective of the old ones may hang for ever) and drops its gradients,
 *   2. calls rk_rebuild, which brings everything registered to position->step: from the checkpoint that was just
 * written where this rank is at another step, else only what the step in progress may have changed is put back
 * (RK_ANYWHERE tensors, small state, the cursor; load functions are called),
 *   3. makes new communicators, which is where the ranks meet: there is no other barrier,
 *   4. goes on with step position->step + 1. Everything is as behind rk_restore, RK_STATE_MISSING too; the attempt
 * stays. position->path is valid until the next rk_rebuild. RK_STOP: the job is stopped after all, leave the loop. When
 * making the communicators fails: rk_collective_failed. When the same step fails again and again, the answer is
 * RK_STOP. rk_close instead of this returns 143. Errors as rk_restore, and STATE (no RK_REBUILD before it;
 * rk_memory.wait says that work on a device failed: nothing was done, it may be called again). */
RK_API rk_status rk_rebuild(rk_session* session, rk_position* position);

/* Asks for a checkpoint of the whole job now and returns when the order is given; training goes on. Between steps. It
 * holds this rank's committed step or a later one; one request of a job is enough, and those of all ranks at one step
 * are one checkpoint. A rank whose part nobody else holds must not have closed its session before. What cannot be made
 * is said on standard error, and by rk_close when it is about the last step. */
RK_API rk_status rk_checkpoint(rk_session* session);

/* Says what the thread does between steps. Cheap. Into and out of RK_SWAPPED it passes a gate: it may block while a
 * breakpoint is written, and RK_STOP means leave the loop (memory was not to be changed yet, or is back as it was). In
 * RK_SWAPPED registered memory may be anything; it has to be back before the phase is set to another one, which comes
 * before the next step or update. */
RK_API rk_status rk_set_phase(rk_session* session, rk_phase phase);

/* Ends the session and frees it, NULL is allowed. Returns the exit code that the process should end with: 0 when the
 * program left its loop by itself, 143 when the run was stopped for a breakpoint (an orchestrator would take 0 for
 * "completed"), 1 when rk_restore has failed, an update was left half made, or rk_checkpoint was called at the last
 * committed step and the checkpoint is not durable (rk_last_error says why). May block while a breakpoint is written or
 * until that checkpoint is, since memory may be freed afterwards. */
RK_API int rk_close(rk_session* session);

#ifdef __cplusplus
}
#endif

#endif /* REKINDLE_H */
