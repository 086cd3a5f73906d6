/*
 * What the unit tests share: cmocka's preamble, a main that runs one test by
 * name, and a failure that names the row.
 */
#ifndef TESTS_UNIT_ROWS_H
#define TESTS_UNIT_ROWS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "core/macros.h"

/* The row's label is a sentence; a false condition fails with it. */
#define ROW(label, condition)                              \
    do {                                                   \
        if (!(condition))                                  \
            fail_msg("row \"%s\": %s", label, #condition); \
    } while (0)

#define ROW_STR(label, have, want)                                                 \
    do {                                                                           \
        const char *have_ = (have), *want_ = (want);                               \
        if (strcmp(have_, want_))                                                  \
            fail_msg("row \"%s\": have \"%s\", want \"%s\"", label, have_, want_); \
    } while (0)

/* `test-part` runs all, `test-part NAME` those that match (with * and ?). */
#define ROWS_MAIN(tests)                                  \
    int main(int argc, char **argv)                       \
    {                                                     \
        if (argc > 1)                                     \
            cmocka_set_test_filter(argv[1]);              \
        return cmocka_run_group_tests(tests, NULL, NULL); \
    }

#endif
