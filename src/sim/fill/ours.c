/* Our own policy: the scheduler core's placement, the same object files that a server links. */
#include "ours.h"

#include <assert.h>
#include <stdlib.h>

#include "sched/place.h"

#define MIB     ((uint64_t)1 << 20)
#define MEM     (16 * MIB) /* a thousandth of a device's memory; any size would do */
#define UNNAMED (POOL_MAX_MODELS - 1) /* models that no pod asks for by name */

static_assert((int)FILL_MAX_DEVICES == (int)POOL_MAX_DEVICES,
              "places are copied as they are");

struct ours {
    const uint32_t *tie_order;
    struct pool *pool;
    struct placer *placer;
    struct pool_ask *ask; /* by class */
};

static struct pool_ask ask_of(const struct fill_class *c)
{
    return (struct pool_ask){ .devices = c->gpus,
                              .permille = c->gpus ? c->gpu_milli : 0,
                              .mem_bytes = c->gpu_mem_milli * MEM,
                              .cpu_milli = c->cpu_milli,
                              .host_mem_bytes = c->memory_mib * MIB,
                              .models = c->models };
}

static struct pool_node node_of(const struct fill_node *from)
{
    struct pool_node n = { .cpu_milli = from->cpu_milli,
                           .host_mem_bytes = from->memory_mib * MIB,
                           .device_count = from->gpus };
    for (uint32_t d = 0; d < from->gpus; d++) {
        n.device[d].model = from->model ? (uint32_t)__builtin_ctzll(from->model) : UNNAMED;
        n.device[d].mem_bytes = FILL_WHOLE * MEM;
    }
    return n;
}

/* Nodes are numbered in the tie order: the lowest of equals is preferred. */
static int add_nodes(struct ours *o, const struct fill_input *in)
{
    for (uint32_t i = 0; i < in->node_count; i++) {
        struct pool_node n = node_of(&in->nodes[o->tie_order[i]]);
        uint32_t node;
        if (pool_add_node(o->pool, &n, &node, NULL))
            return -SL_INTERNAL;
    }
    return 0;
}

/* The target is the whole list, each sort as often as it is in it. */
static int set_target(struct ours *o, const struct fill_input *in)
{
    struct place_shape *shape = calloc(in->class_count, sizeof *shape);
    if (!shape)
        return -SL_INTERNAL;
    for (uint32_t c = 0; c < in->class_count; c++)
        shape[c].ask = o->ask[c] = ask_of(&in->classes[c]);
    for (uint32_t i = 0; i < in->pod_count; i++)
        shape[in->class_of[i]].popularity++;
    int rc = placer_set_target(o->placer, shape, in->class_count, NULL);
    free(shape);
    return rc == -SL_INVALID ? 0 : rc; /* no pod wants a GPU: best fit */
}

void ours_destroy(void *self)
{
    struct ours *o = self;
    if (!o)
        return;
    placer_destroy(o->placer);
    pool_destroy(o->pool);
    free(o->ask);
    free(o);
}

void *ours_create(const struct fill_input *in, const uint32_t *tie_order, uint64_t seed)
{
    struct place_policy policy;
    struct ours *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    place_policy_init(&policy);
    o->tie_order = tie_order;
    o->ask = calloc(in->class_count, sizeof *o->ask);
    if (!o->ask || pool_create(&o->pool, NULL) ||
        placer_create(o->pool, &policy, &o->placer, NULL) || add_nodes(o, in) ||
        set_target(o, in)) {
        ours_destroy(o);
        return NULL;
    }
    return o;
}

bool ours_place(void *self, uint32_t c, struct fill_place *out)
{
    struct ours *o = self;
    struct pool_place at;
    if (placer_find(o->placer, &o->ask[c], NULL, &at))
        return false;
    pool_take(o->pool, &o->ask[c], &at);
    out->node = o->tie_order[at.node];
    out->count = at.device_count;
    for (uint32_t i = 0; i < at.device_count; i++)
        out->device[i] = at.device[i];
    return true;
}
