/*
 * Chance that is the same on every machine: splitmix64 (Steele, Lea, Flood: "Fast
 * splittable pseudorandom number generators", OOPSLA 2014).  The seed is the state.
 */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdint.h>

struct random {
    uint64_t state;
};

static inline uint64_t random_next(struct random *r)
{
    uint64_t x = r->state += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

/* 0 … count - 1; the bias, below count / 2^64, is nothing. */
static inline uint32_t random_below(struct random *r, uint32_t count)
{
    return (uint32_t)((unsigned __int128)random_next(r) * count >> 64);
}

/* A seed for the `part`th of what hangs on `seed`. */
static inline uint64_t random_seed(uint64_t seed, uint64_t part)
{
    struct random r = { seed };
    r.state = random_next(&r) + part;
    return random_next(&r);
}

/* All orders are equally likely (Fisher-Yates). */
static inline void random_shuffle(struct random *r, uint32_t *items, uint32_t count)
{
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = random_below(r, i), item = items[i - 1];
        items[i - 1] = items[j];
        items[j] = item;
    }
}

#endif
