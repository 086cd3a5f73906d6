/*
 * Topology: the racks and zones of a pool, and what each has free.  Private to sched.
 *
 * A *vertex* is a rack or a zone; a node's place is its vertices.  A node whose rack is not
 * known counts as a rack of its own, a rack whose zone is not known as a zone of its own:
 * these have no vertex, or a pool without topology would pay for one per node.
 *
 * Kept up to date by the pool: per vertex and model the devices that nobody uses, on nodes
 * that take work.  A slice of a whole device needs one of these, so that "not within this
 * rack" is known without trying.
 */
#ifndef SCHED_NEAR_H
#define SCHED_NEAR_H

#include "sched/pool.h"

#define VERTEX_NONE UINT32_MAX

struct vertex {
    enum pool_level level; /* a rack or a zone */
    uint32_t number;       /* the caller's */
    uint32_t zone;         /* of a rack: its vertex, or VERTEX_NONE */
    uint32_t *node;        /* ascending; a zone's: of all its racks */
    uint32_t node_count, node_room;
    uint32_t whole_free[POOL_MAX_MODELS]; /* devices nobody uses, of open nodes */
    uint32_t whole_all[POOL_MAX_MODELS];
};

/* Where a node is: vertices, or VERTEX_NONE. */
struct node_near {
    uint32_t rack, zone;
};

struct near {
    struct vertex *vertex;
    uint32_t count, room;
    uint32_t rackless, zoneless; /* nodes without a rack; without rack and zone */
};

void near_finish(struct near *n);

/* The new node's place, with room for it in its vertices; nothing is counted yet.
 * -SL_INVALID: its rack is in another zone.  -SL_INTERNAL: no memory. */
int near_reserve(struct near *n, const struct pool_node *is, struct node_near *at,
                 struct sl_err *err);
void near_enter(struct near *n, const struct node_near *at, uint32_t node,
                const struct pool_node *is);

/* So many devices of the model are free more or less, where the node is. */
static inline void near_count(struct near *n, const struct node_near *at, uint32_t model,
                              int32_t more)
{
    if (at->rack != VERTEX_NONE)
        n->vertex[at->rack].whole_free[model] += (uint32_t)more;
    if (at->zone != VERTEX_NONE)
        n->vertex[at->zone].whole_free[model] += (uint32_t)more;
}

/* Of the models, all together. */
uint32_t near_sum(const uint32_t count[POOL_MAX_MODELS], uint64_t models);

#endif
