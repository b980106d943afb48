/* A libcuda.so.1 for tests: the functions that librekindle uses, and those with which a program gets memory. Addresses
 * of its memory cannot be read by the processor. Copies are refused when no context is current. What it was asked for
 * is counted in stand_in_counts. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BASE 0x100u /* the first page is never mapped */
#define BYTES 32768u

static unsigned char memory[BYTES];
static size_t used;
static __thread void* current;
static int context_token;

struct counts {
  int retained, copies_out, copies_in, synchronized, fail_with;
};
struct counts stand_in_counts;

int cuInit(unsigned flags) { return flags == 0 ? stand_in_counts.fail_with : 1; }
int cuDeviceGetCount(int* count) { return *count = 2, 0; }
int cuDeviceGet(int* device, int ordinal) { return *device = 40 + ordinal, 0; }
int cuDevicePrimaryCtxRetain(void** context, int device) {
  if (device < 40 || device > 41) return 101;
  ++stand_in_counts.retained;
  *context = &context_token;
  return 0;
}
int cuCtxGetCurrent(void** context) { return *context = current, 0; }
int cuCtxSetCurrent(void* context) { return current = context, 0; }
int cuCtxSynchronize(void) {
  if (current == NULL) return 201;
  ++stand_in_counts.synchronized;
  return stand_in_counts.fail_with;
}
int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  if (bytes > BYTES - used) return 2;
  *address = BASE + used;
  used += bytes;
  return 0;
}
static int outside(uint64_t address, size_t bytes) {
  return current == NULL || address < BASE || address - BASE > BYTES || bytes > BYTES - (address - BASE);
}
static int stream_token;
int cuStreamCreate(void** stream, unsigned flags) {
  return current == NULL || flags != 1 ? 1 : (*stream = &stream_token, 0);
}
int cuStreamSynchronize(void* stream) { return current == NULL || stream != &stream_token ? 400 : 0; }
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* stream) {
  if (outside(from, bytes) || stream != &stream_token) return 1;
  ++stand_in_counts.copies_out;
  memcpy(to, memory + (from - BASE), bytes);
  return 0;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream) {
  if (outside(to, bytes) || stream != &stream_token) return 1;
  ++stand_in_counts.copies_in;
  memcpy(memory + (to - BASE), from, bytes);
  return 0;
}
int cuGetErrorName(int error, const char** name) {
  return *name = error == 719 ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR_OTHER", 0;
}
