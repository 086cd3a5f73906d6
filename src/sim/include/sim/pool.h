/*
 * A plain pool for the job simulator: nodes in a row, each with whole devices, every
 * device free or held by one job.
 *
 * Devices are numbered through, node by node.  These always hold:
 *   - node.free counts the devices of the node that nobody holds, pool.free all of them;
 *   - nobody takes a device that is held (pool_take refuses).
 */
#ifndef SIM_POOL_H
#define SIM_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"

#define POOL_FREE        UINT32_MAX /* the holder of a free device */
#define POOL_MAX_DEVICES 1000000u

struct pool_node {
    uint32_t first; /* device */
    uint32_t devices, free;
    uint32_t chosen; /* == pool.choice: taken whole by the search at hand */
};

struct pool {
    struct pool_node *nodes;
    uint32_t node_count, device_count, free;
    uint32_t largest_node; /* its devices */
    uint32_t *holder;      /* of each device: a job, or POOL_FREE */
    uint32_t *node_of;     /* of each device */
    uint32_t choice;
};

/* "8x8" (nodes x devices of each) or a file: a csv with a column `gpu`, as in openb's
 * node lists, a row per node; rows with 0 are left out.  The caller frees by _finish. */
int pool_open(const char *nodes, struct pool *out, struct sl_err *err);
void pool_finish(struct pool *p);

/*
 * Searches: `count` >= 1 free devices into device[], or false.  What fits into one node
 * of the pool is put into one node.  More takes whole free nodes in order, and the rest
 * of it from one further node.
 */
typedef bool pool_search(struct pool *p, uint32_t count, uint32_t *device);

/* The fullest node that fits, the first of equals; the rest from the emptiest node
 * (HeliosArtifact's "consolidate"). */
bool pool_find_best(struct pool *p, uint32_t count, uint32_t *device);
/* The first node that fits (Muri's). */
bool pool_find_first(struct pool *p, uint32_t count, uint32_t *device);
/* Any devices of any nodes: counting alone. */
bool pool_find_any(struct pool *p, uint32_t count, uint32_t *device);

/* False, and nothing taken, if one of them is held or named twice. */
bool pool_take(struct pool *p, uint32_t job, const uint32_t *device, uint32_t count);
void pool_give(struct pool *p, uint32_t device);

#define AUTO_POOL __attribute__((cleanup(pool_finish)))

#endif
