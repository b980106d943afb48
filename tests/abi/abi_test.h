/* What the C side of the ABI test offers to the program that runs it. */
#ifndef REKINDLE_TESTS_ABI_TEST_H
#define REKINDLE_TESTS_ABI_TEST_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A line of tests/abi/structs.txt. */
struct abi_number {
  const char* name;
  size_t value;
};

/* Every size, offset and constant of rekindle.h, as the C compiler sees it. */
const struct abi_number* abi_numbers(size_t* count);

/* Calls every function of rekindle.h, saves a checkpoint in `folder` and restores it. NULL, or what went wrong. */
const char* abi_use_everything(const char* folder);

#ifdef __cplusplus
}
#endif

#endif /* REKINDLE_TESTS_ABI_TEST_H */
