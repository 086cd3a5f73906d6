/* Which of the compilations of worth_kernel.c this CPU runs. */
#include "worth.h"

const struct worth_table *worth_table(void)
{
#ifdef SCHED_HAVE_AVX2
    if (__builtin_cpu_supports("avx2"))
        return &worth_avx2;
#endif
    return &worth_any;
}
