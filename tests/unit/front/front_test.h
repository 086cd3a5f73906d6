/* What the tests of src/front/common share: cmocka and waiting without a clock
 * in the assertion. */
#ifndef FRONT_TEST_H
#define FRONT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <unistd.h>

#include "broker.h"

/* True soon (10 s, for a loaded machine), or the row fails. */
#define eventually(condition)                              \
    do {                                                   \
        int tries_ = 10000;                                \
        while (!(condition) && tries_-- > 0)               \
            usleep(1000);                                  \
        if (!(condition))                                  \
            fail_msg("never became true: %s", #condition); \
    } while (0)

/* A row that starts from the test file's setup(). */
#define row(label, function)                   \
    {                                          \
        label, function, setup, teardown, NULL \
    }

#endif
