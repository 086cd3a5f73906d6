/* In the tests' build of the layer only: one row of the table is turned to `pass`. */
#include <stdlib.h>
#include <string.h>

#include "opencl/layer.h"

bool ocl_test_pass(const char *name)
{
    const char *off = getenv("SLUICE_TEST_PASS");
    return off && strcmp(off, name) == 0;
}
