/*
 * A plain cluster for the job simulator: nodes in a row, each with whole devices, every
 * device free or held by one job.
 *
 * Devices are numbered through, node by node.  These always hold:
 *   - node.free counts the devices of the node that nobody holds, cluster.free all of them;
 *   - nobody takes a device that is held (cluster_take refuses).
 */
#ifndef SIM_CLUSTER_H
#define SIM_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"

#define CLUSTER_FREE        UINT32_MAX /* the holder of a free device */
#define CLUSTER_MAX_DEVICES 1000000u

struct cluster_node {
    uint32_t first; /* device */
    uint32_t devices, free;
    uint32_t chosen; /* == cluster.choice: taken whole by the search at hand */
};

struct cluster {
    struct cluster_node *nodes;
    uint32_t node_count, device_count, free;
    uint32_t largest_node; /* its devices */
    uint32_t *holder;      /* of each device: a job, or CLUSTER_FREE */
    uint32_t *node_of;     /* of each device */
    uint32_t choice;
};

/* "8x8" (nodes x devices of each) or a file: a csv with a column `gpu`, as in openb's
 * node lists, a row per node; rows with 0 are left out.  The caller frees by _finish. */
int cluster_open(const char *nodes, struct cluster *out, struct sl_err *err);
void cluster_finish(struct cluster *p);

/*
 * Searches: `count` >= 1 free devices into device[], or false.  What fits into one node
 * of the pool is put into one node.  More takes whole free nodes in order, and the rest
 * of it from one further node.
 */
typedef bool cluster_search(struct cluster *p, uint32_t count, uint32_t *device);

/* The fullest node that fits, the first of equals; the rest from the emptiest node
 * (HeliosArtifact's "consolidate"). */
bool cluster_find_best(struct cluster *p, uint32_t count, uint32_t *device);
/* The first node that fits (Muri's). */
bool cluster_find_first(struct cluster *p, uint32_t count, uint32_t *device);
/* Any devices of any nodes: counting alone. */
bool cluster_find_any(struct cluster *p, uint32_t count, uint32_t *device);

/* False, and nothing taken, if one of them is held or named twice. */
bool cluster_take(struct cluster *p, uint32_t job, const uint32_t *device, uint32_t count);
void cluster_give(struct cluster *p, uint32_t device);

#define AUTO_CLUSTER __attribute__((cleanup(cluster_finish)))

#endif
