/*
 * What the fuzz targets share.  Each is a libFuzzer target (tests/fuzz/run); with
 * standalone.c it is a unit test that mutates its own seeds some thousand times.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* NULL-terminated; also what tests/fuzz/run starts from. */
extern const char *const fuzz_seeds[];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(condition)                                               \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                        \
        }                                                                   \
    } while (0)

#endif
