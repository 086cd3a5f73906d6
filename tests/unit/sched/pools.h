/* Pools, asks and random events for the tests of src/sched. */
#ifndef TESTS_SCHED_POOLS_H
#define TESTS_SCHED_POOLS_H

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "sched/place.h"

#define GIB ((uint64_t)1 << 30)

/* xorshift64: the same numbers everywhere */
struct rng {
    uint64_t state;
};

static inline uint32_t rng_below(struct rng *r, uint32_t n)
{
    r->state ^= r->state << 13;
    r->state ^= r->state >> 7;
    r->state ^= r->state << 17;
    return (uint32_t)((r->state * 0x2545f4914f6cdd1dull) >> 33) % n;
}

static inline struct pool *pool_of(const struct pool_node *nodes, uint32_t count)
{
    struct pool *p;
    uint32_t node;
    if (pool_create(&p, NULL))
        abort();
    for (uint32_t i = 0; i < count; i++)
        if (pool_add_node(p, &nodes[i], &node, NULL))
            abort();
    return p;
}

static inline struct pool_node node_of(uint32_t devices, uint32_t model, uint64_t mem_gib,
                                       uint32_t cpus)
{
    struct pool_node n = { .cpu_milli = cpus * 1000,
                           .host_mem_bytes = cpus * 4 * GIB,
                           .device_count = devices };
    for (uint32_t i = 0; i < devices; i++)
        n.device[i] = (struct pool_device){ .model = model, .mem_bytes = mem_gib * GIB };
    return n;
}

/* As an A100's and an A30's, in the order that the driver numbers them in. */
static inline const struct pool_profiles *profiles_of(uint32_t model)
{
    static const struct pool_profiles a100 = { 7,
                                               8,
                                               6,
                                               { { 1, 1, 0x7f, 7 },
                                                 { 2, 2, 0x15, 3 },
                                                 { 3, 4, 0x11, 2 },
                                                 { 4, 4, 0x01, 1 },
                                                 { 7, 8, 0x01, 1 },
                                                 { 1, 2, 0x55, 4 } } };
    static const struct pool_profiles a30 = {
        4, 4, 3, { { 1, 1, 0xf, 4 }, { 2, 2, 0x5, 2 }, { 4, 4, 0x1, 1 } }
    };
    return model == 1 ? &a30 : &a100;
}

/* Half of what can be lent above capacity is. */
static inline void random_over(struct rng *r, struct pool_node *n)
{
    if (rng_below(r, 2))
        return;
    n->over_cpu_milli = n->cpu_milli / 2;
    n->over_host_mem_bytes = n->host_mem_bytes / 2;
    for (uint32_t i = 0; i < n->device_count; i++)
        if (n->device[i].sharing == POOL_TIME || n->device[i].sharing == POOL_SPATIAL) {
            n->device[i].over_permille = (uint16_t)(500 * (1 + rng_below(r, 3)));
            n->device[i].over_mem_bytes = n->device[i].mem_bytes / 2;
        }
}

/* Most are shared by time. */
static inline uint8_t random_sharing(struct rng *r)
{
    uint32_t dice = rng_below(r, 8);
    return dice > POOL_PROFILE ? POOL_TIME : (uint8_t)dice;
}

/* A pool of three models, some labels, and, if nodes are odd, some with devices of two models;
 * of nodes that are a multiple of three, devices are shared in several ways. */
static inline struct pool *mixed_pool(struct rng *r, uint32_t nodes, uint32_t tenancy)
{
    struct pool *p = pool_of(NULL, 0);
    pool_set_tenancy(p, tenancy);
    for (uint32_t m = 0; m < 3; m++)
        if (pool_set_profiles(p, m, profiles_of(m), NULL))
            abort();
    for (uint32_t i = 0; i < nodes; i++) {
        uint32_t model = rng_below(r, 3), node;
        struct pool_node n =
            node_of(1u << rng_below(r, 4), model, 16u << model, 8 + 24 * rng_below(r, 4));
        uint8_t sharing = random_sharing(r);
        for (uint32_t k = 0; k < n.device_count; k++)
            n.device[k].sharing = nodes % 3 ? sharing : random_sharing(r);
        if (nodes % 2 && i % 7 == 3)
            n.device[0] = (struct pool_device){ .model = 2, .mem_bytes = 64 * GIB };
        n.rack = i % 5; /* 0: not known */
        n.zone = n.rack % 3;
        random_over(r, &n);
        n.labels.bits[i % POOL_LABEL_WORDS] = 1ull << rng_below(r, 3);
        if (pool_add_node(p, &n, &node, NULL))
            abort();
    }
    return p;
}

static inline struct pool_ask random_ask(struct rng *r)
{
    struct pool_ask a = { .devices = 1,
                          .permille = 50 + 50 * rng_below(r, 20),
                          .mem_bytes = (1 + rng_below(r, 24)) * GIB / 2,
                          .cpu_milli = 500 * rng_below(r, 12),
                          .host_mem_bytes = rng_below(r, 16) * GIB };
    uint32_t dice = rng_below(r, 20);
    if (dice == 0)
        a.devices = a.permille = 0, a.mem_bytes = 0;
    else if (dice < 4)
        a.devices = 1u << (1 + rng_below(r, 3));
    if (dice == 5)
        a.models = 1 + rng_below(r, 7);
    if (dice == 6)
        a.need.bits[rng_below(r, POOL_LABEL_WORDS)] = 1;
    if (dice == 7)
        a.avoid.bits[rng_below(r, POOL_LABEL_WORDS)] = 2;
    a.lower = dice > 9 && dice < 13;
    if (dice == 8)
        a.sharing = (uint8_t)(1 + rng_below(r, POOL_ALL_SHARING));
    if (dice > 16)
        a.owner = 1 + rng_below(r, 2);
    return a;
}

#endif
