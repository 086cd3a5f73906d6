/* Small helpers that every part shares; each is one expression. */
#ifndef CORE_MACROS_H
#define CORE_MACROS_H

#include <stdint.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}
static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* a - b, but never below zero: a counter must not wrap (field failure 3). */
static inline uint64_t sub_sat_u64(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

#endif
