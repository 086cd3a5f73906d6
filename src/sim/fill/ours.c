/* Our own policy: the scheduler core's placement, the same object files that a server links. */
#include "ours.h"

#include <assert.h>
#include <stdlib.h>

#include "sched/place.h"

#define MIB     ((uint64_t)1 << 20)
#define MEM     (16 * MIB) /* a thousandth of a device's memory; any size would do */
#define SLACK_W 300u       /* what a full cluster may add above the least */
#define UNNAMED (POOL_MAX_MODELS - 1) /* models that no pod asks for by name */

static_assert((int)FILL_MAX_DEVICES == (int)POOL_MAX_DEVICES,
              "places are copied as they are");

struct ours {
    const uint32_t *tie_order;
    struct pool *pool;
    struct placer *placer;
    struct pool_ask *ask; /* by class */

    /* with power in it: */
    const struct fill_class *classes;
    struct fill_node *nodes; /* as they are, by number in the pool */
    uint32_t *allowed;       /* of these, ascending */
    uint32_t *growth_w;      /* of each that fits */
    uint32_t node_count;
    uint64_t idle_milli, all_milli;
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
    free(o->nodes);
    free(o->allowed);
    free(o->growth_w);
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

static void take(struct ours *o, uint32_t c, const struct pool_place *at,
                 struct fill_place *out)
{
    pool_take(o->pool, &o->ask[c], at);
    out->node = o->tie_order[at->node];
    out->count = at->device_count;
    for (uint32_t i = 0; i < at->device_count; i++)
        out->device[i] = at->device[i];
}

bool ours_place(void *self, uint32_t c, struct fill_place *out)
{
    struct ours *o = self;
    struct pool_place at;
    if (placer_find(o->placer, &o->ask[c], NULL, &at))
        return false;
    take(o, c, &at, out);
    return true;
}

/* ---- with power ---- */

void *ours_create_power(const struct fill_input *in, const uint32_t *tie_order,
                        uint64_t seed)
{
    struct ours *o = ours_create(in, tie_order, seed);
    if (!o)
        return NULL;
    o->classes = in->classes;
    o->node_count = in->node_count;
    o->nodes = calloc(in->node_count, sizeof *o->nodes);
    o->allowed = calloc(in->node_count, sizeof *o->allowed);
    o->growth_w = calloc(in->node_count, sizeof *o->growth_w);
    o->idle_milli = o->all_milli = in->gpu_milli;
    if (!o->nodes || !o->allowed || !o->growth_w) {
        ours_destroy(o);
        return NULL;
    }
    for (uint32_t i = 0; i < in->node_count; i++)
        o->nodes[i] = in->nodes[tie_order[i]];
    return o;
}

/* The least watts that such a pod adds to a node where it fits. */
static uint32_t least_growth_w(const struct fill_node *n, const struct fill_class *c)
{
    struct fill_node after = *n;
    uint32_t fresh = c->gpus;
    after.cpu_milli -= c->cpu_milli;
    for (unsigned d = 0; d < n->gpus && fresh; d++)
        fresh -= n->free[d] < FILL_WHOLE &&
                 fill_device_has(n, d, c->gpu_milli, c->gpu_mem_milli);
    return fill_watts(&after) - fill_watts(n) + fresh * (n->full_w - n->idle_w);
}

/* The nodes among which fragmentation decides: while the cluster is empty those that add
 * least, the fuller it is, the more watts above that. */
static uint32_t list_allowed(struct ours *o, const struct fill_class *c)
{
    uint64_t used_milli = o->all_milli - o->idle_milli;
    uint32_t limit_w = UINT32_MAX, count = 0;
    for (uint32_t i = 0; i < o->node_count; i++)
        if (fill_fits(&o->nodes[i], c)) {
            o->growth_w[count] = least_growth_w(&o->nodes[i], c);
            limit_w = o->growth_w[count] < limit_w ? o->growth_w[count] : limit_w;
            o->allowed[count++] = i;
        }
    limit_w +=
        (uint32_t)(SLACK_W * used_milli * used_milli / (o->all_milli * o->all_milli));
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (o->growth_w[i] <= limit_w)
            o->allowed[kept++] = o->allowed[i];
    return kept;
}

bool ours_place_power(void *self, uint32_t class, struct fill_place *out)
{
    struct ours *o = self;
    struct pool_place at;
    const struct fill_class *c = &o->classes[class];
    const struct place_filter filter = { .node = o->allowed,
                                         .node_count = list_allowed(o, c) };
    if (!filter.node_count || placer_find(o->placer, &o->ask[class], &filter, &at))
        return false;
    take(o, class, &at, out);
    fill_take(&o->nodes[at.node], c, out);
    o->idle_milli -= (uint64_t)c->gpus * c->gpu_milli;
    return true;
}
