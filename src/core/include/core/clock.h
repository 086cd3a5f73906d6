/*
 * The clock of everything that happens on one node: CLOCK_MONOTONIC in
 * nanoseconds (about 25 ns a call through the vDSO).  Parts that must not know
 * the time (ledger, sched) get `now_ns` as an argument instead.
 */
#ifndef CORE_CLOCK_H
#define CORE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_US 1000ull
#define NS_PER_MS 1000000ull
#define NS_PER_S  1000000000ull

static inline uint64_t clock_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

#endif
