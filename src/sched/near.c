/* Topology: which nodes are in which rack and zone. */
#include <stdlib.h>

#include "base/array.h"
#include "pool_impl.h"

void near_finish(struct near *n)
{
    for (uint32_t i = 0; i < n->count; i++)
        free(n->vertex[i].node);
    free(n->vertex);
    *n = (struct near){ 0 };
}

static uint32_t find_vertex(const struct near *n, enum pool_level level, uint32_t number)
{
    uint32_t i = 0;
    while (i < n->count && (n->vertex[i].level != level || n->vertex[i].number != number))
        i++;
    return i < n->count ? i : VERTEX_NONE;
}

/* The vertex of this number, made if there is none, with room for one more node; 0 is no
 * number. */
static int reserve_vertex(struct near *n, enum pool_level level, uint32_t number,
                          uint32_t zone, uint32_t *out)
{
    *out = VERTEX_NONE;
    if (!number)
        return 0;
    uint32_t at = find_vertex(n, level, number);
    if (at == VERTEX_NONE) {
        if (array_reserve(&n->vertex, &n->room, n->count + 1, sizeof *n->vertex))
            return -SL_INTERNAL;
        at = n->count++;
        n->vertex[at] = (struct vertex){ .level = level, .number = number, .zone = zone };
    }
    struct vertex *v = &n->vertex[at];
    if (array_reserve(&v->node, &v->node_room, v->node_count + 1, sizeof *v->node))
        return -SL_INTERNAL;
    *out = at;
    return 0;
}

int near_reserve(struct near *n, const struct pool_node *is, struct node_near *at,
                 struct sl_err *err)
{
    uint32_t rack = find_vertex(n, POOL_RACK, is->rack);
    if (is->rack && rack != VERTEX_NONE && n->vertex[rack].node_count) {
        uint32_t is_in = n->vertex[rack].zone;
        uint32_t number = is_in == VERTEX_NONE ? 0 : n->vertex[is_in].number;
        if (number != is->zone)
            return sl_fail(err, SL_INVALID, "rack %u is in zone %u, not %u", is->rack,
                           number, is->zone);
    }
    if (reserve_vertex(n, POOL_ZONE, is->zone, VERTEX_NONE, &at->zone) ||
        reserve_vertex(n, POOL_RACK, is->rack, at->zone, &at->rack))
        return sl_fail(err, SL_INTERNAL, "pool: out of memory");
    if (at->rack != VERTEX_NONE)
        n->vertex[at->rack].zone = at->zone;
    return 0;
}

static void enter(struct near *n, uint32_t vertex, uint32_t node,
                  const struct pool_node *is)
{
    if (vertex == VERTEX_NONE)
        return;
    struct vertex *v = &n->vertex[vertex];
    v->node[v->node_count++] = node;
    for (uint32_t i = 0; i < is->device_count; i++) {
        v->whole_all[is->device[i].model]++;
        v->whole_free[is->device[i].model]++;
    }
}

void near_enter(struct near *n, const struct node_near *at, uint32_t node,
                const struct pool_node *is)
{
    enter(n, at->rack, node, is);
    enter(n, at->zone, node, is);
    n->rackless += at->rack == VERTEX_NONE;
    n->zoneless += at->rack == VERTEX_NONE && at->zone == VERTEX_NONE;
}

bool near_together(const struct pool *p, uint32_t a, uint32_t b, enum pool_level level)
{
    const struct node_near *x = &p->node[a].near, *y = &p->node[b].near;
    if (a == b || level == POOL_ANYWHERE)
        return true;
    if (level == POOL_NODE)
        return false;
    return (x->rack != VERTEX_NONE && x->rack == y->rack) ||
           (level == POOL_ZONE && x->zone != VERTEX_NONE && x->zone == y->zone);
}

uint32_t near_sum(const uint32_t count[POOL_MAX_MODELS], uint64_t models)
{
    uint32_t sum = 0;
    for (; models; models &= models - 1)
        sum += count[__builtin_ctzll(models)];
    return sum;
}
