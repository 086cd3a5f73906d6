/* Placement: the shortlist by fragmentation, the choice by expected waste. */
#include "sched/place.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "shape.h"
#include "worth.h"

#define PLACE_SHORTLIST 8
#define PLACE_SHAPES    512   /* orders kept; the one unused longest makes room */
#define WASTE_MEMORY    32768 /* states whose waste is remembered; a power of 2 */
#define SHAPE_BUCKETS   1024
#define SHAPE_NONE      UINT32_MAX
/* Classes seen, after which an ask gets an order of its own: found what it looked for, or not. */
#define WALK_LONG 2048
#define WALK_VAIN 64

/* What is known of a class's worth; valid for one birth and one target. */
struct class_worth {
    uint64_t birth, generation;
    struct worth_frag frag;
};

struct waste_memory {
    uint64_t hash, generation;
    int32_t waste;
};

struct placer {
    const struct pool *pool;
    struct place_policy policy;
    const struct worth_table *worth;
    struct target *target;
    uint64_t generation; /* of target and kinds; from 1 */
    uint32_t kinds;
    struct class_worth *class;
    uint32_t class_room;
    struct waste_memory *memory;
    struct shape *shape;
    uint32_t shape_count;
    uint32_t *chain, *bucket; /* shapes by hash of the ask */
    uint32_t *front;          /* scratch of a walk */
    uint32_t front_room;
    uint64_t finds;
    bool scans; /* always */
};

void place_policy_init(struct place_policy *policy)
{
    *policy = (struct place_policy){ .bucket_permille = 10, .scarcity_permille = 200 };
}

int placer_create(const struct pool *p, const struct place_policy *policy,
                  struct placer **out, struct sl_err *err)
{
    struct placer *pl = calloc(1, sizeof *pl);
    if (pl) {
        pl->memory = calloc(WASTE_MEMORY, sizeof *pl->memory);
        pl->shape = calloc(PLACE_SHAPES, sizeof *pl->shape);
        pl->chain = malloc(PLACE_SHAPES * sizeof *pl->chain);
        pl->bucket = malloc(SHAPE_BUCKETS * sizeof *pl->bucket);
    }
    if (!pl || !pl->memory || !pl->shape || !pl->chain || !pl->bucket) {
        placer_destroy(pl);
        return sl_fail(err, SL_INTERNAL, "placement: out of memory");
    }
    memset(pl->bucket, 0xff, SHAPE_BUCKETS * sizeof *pl->bucket);
    pl->pool = p;
    pl->policy = *policy;
    if (!pl->policy.bucket_permille)
        pl->policy.bucket_permille = 10;
    pl->worth = worth_table();
    pl->generation = 1;
    *out = pl;
    return 0;
}

void placer_destroy(struct placer *pl)
{
    if (!pl)
        return;
    for (uint32_t i = 0; pl->shape && i < pl->shape_count; i++)
        shape_finish(&pl->shape[i]);
    target_destroy(pl->target);
    free(pl->class);
    free(pl->memory);
    free(pl->shape);
    free(pl->chain);
    free(pl->bucket);
    free(pl->front);
    free(pl);
}

int placer_set_target(struct placer *pl, const struct place_shape *shapes, uint32_t count,
                      struct sl_err *err)
{
    struct target *t = NULL;
    if (count) {
        int rc = target_create(pl->pool, shapes, count, &t, err);
        if (rc)
            return rc;
    }
    target_destroy(pl->target);
    pl->target = t;
    pl->generation++;
    return 0;
}

/* ---- devices of a node for an ask ---- */

/* An ask on a class: devices by their place in the sorted state. */
struct choice {
    uint32_t count;
    uint8_t device[POOL_MAX_DEVICES];
};

static bool class_has_room(const struct pool *p, const struct pool_ask *a,
                           const struct class_state *s)
{
    uint32_t suits = 0;
    if ((a->lower ? s->lower_cpu_milli : s->cpu_milli) < a->cpu_milli ||
        (a->lower ? s->lower_host_mem_bytes : s->host_mem_bytes) < a->host_mem_bytes ||
        !pool_kind_suits(p, a, s->kind))
        return false;
    for (uint32_t i = 0; i < s->device_count && suits < a->devices; i++)
        suits += pool_device_suits(p, a, &s->device[i]);
    return suits >= a->devices;
}

/* Several devices: of one model if one has enough, those with least free. */
static void choose_several(const struct pool *p, const struct pool_ask *a,
                           const struct class_state *s, struct choice *out)
{
    uint32_t begin = 0, end = 0;
    for (; begin < s->device_count; begin = end) {
        uint32_t suits = 0;
        for (end = begin;
             end < s->device_count && s->device[end].model == s->device[begin].model; end++)
            suits += pool_device_suits(p, a, &s->device[end]);
        if (suits >= a->devices)
            break;
    }
    if (begin == s->device_count)
        begin = 0;
    out->count = 0;
    for (uint32_t i = begin; out->count < a->devices; i++)
        if (pool_device_suits(p, a, &s->device[i]))
            out->device[out->count++] = (uint8_t)i;
}

static struct class_device device_after(const struct pool *p, const struct class_device *d,
                                        const struct pool_ask *a)
{
    struct class_device after = *d;
    device_put(p, a, &after);
    return after;
}

/* The state that a node of the class is in with the ask on it: by its content only,
 * the devices are not sorted again. */
static void state_after(const struct pool *p, const struct class_state *s,
                        const struct pool_ask *a, const struct choice *c,
                        struct class_state *out)
{
    *out = *s;
    out->cpu_milli -= a->cpu_milli;
    out->host_mem_bytes -= a->host_mem_bytes;
    for (uint32_t i = 0; i < c->count; i++) {
        struct class_device *d = &out->device[c->device[i]];
        out->idle_permille -= d->permille;
        *d = device_after(p, d, a);
        out->idle_permille += d->permille;
    }
}

/* ---- ranks ---- */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* The compute that the device loses, at the price of its model x 1000. */
static int64_t price_of_device(const struct placer *pl, const struct class_device *d,
                               const struct class_device *after)
{
    return (int64_t)pl->target->price_permille[d->model] * (d->permille - after->permille);
}

/* What that costs beyond the growth, permille: models that others need. */
static int64_t weighed_price(const struct placer *pl, int64_t price)
{
    return price * pl->policy.scarcity_permille / 1000000;
}

/* Growth of fragmentation on the best devices for the ask, x LANE_WEIGHT_SUM. */
static int32_t frag_growth(const struct placer *pl, const struct pool_ask *a,
                           const struct class_state *s, const struct worth_frag *w,
                           struct choice *out)
{
    const struct pool *p = pl->pool;
    uint32_t cpu = s->cpu_milli - a->cpu_milli;
    uint64_t host = s->host_mem_bytes - a->host_mem_bytes;
    *out = (struct choice){ 0 };
    if (!a->devices)
        return pl->worth->frag_after(pl->target, s, w, UINT32_MAX, NULL, cpu, host) -
               w->frag;
    if (a->devices > 1) {
        struct class_state after;
        struct worth_frag then;
        choose_several(p, a, s, out);
        state_after(p, s, a, out, &after);
        pl->worth->frag(pl->target, &after, &then);
        return then.frag - w->frag;
    }
    int64_t best_bucket = INT64_MAX,
            bucket_size = (int64_t)pl->policy.bucket_permille * LANE_WEIGHT_SUM;
    int32_t best = 0;
    for (uint32_t i = 0; i < s->device_count; i++) {
        const struct class_device *d = &s->device[i];
        if (!pool_device_suits(p, a, d) || (i && !memcmp(d, d - 1, sizeof *d)))
            continue;
        struct class_device after = device_after(p, d, a);
        int32_t growth =
            pl->worth->frag_after(pl->target, s, w, i, &after, cpu, host) - w->frag;
        int64_t bucket = floor_div(
            growth + weighed_price(pl, price_of_device(pl, d, &after)) * LANE_WEIGHT_SUM,
            bucket_size);
        /* devices are sorted by what they have free: the first of equals is fuller */
        if (bucket < best_bucket) {
            best_bucket = bucket;
            best = growth;
            *out = (struct choice){ .count = 1, .device = { (uint8_t)i } };
        }
    }
    return best;
}

/* What the choice costs so. */
static int64_t price_of(const struct placer *pl, const struct pool_ask *a,
                        const struct class_state *s, const struct choice *c)
{
    int64_t price = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        const struct class_device *d = &s->device[c->device[i]];
        if (!pl->target->price_permille[d->model])
            continue;
        struct class_device after = device_after(pl->pool, d, a);
        price += price_of_device(pl, d, &after);
    }
    return weighed_price(pl, price);
}

#define RANK_CPU_BITS  24
#define RANK_IDLE_BITS 16
#define RANK_ZERO      (1 << 23)

/* Smaller first: the bucket, then the fuller node, then the one with less CPU. */
static uint64_t rank_key(int64_t bucket, const struct class_state *s)
{
    uint64_t high = (uint64_t)(bucket + RANK_ZERO);
    uint64_t cpu = s->cpu_milli >> RANK_CPU_BITS ? (1u << RANK_CPU_BITS) - 1 : s->cpu_milli;
    return high << (RANK_CPU_BITS + RANK_IDLE_BITS) |
           (uint64_t)s->idle_permille << RANK_CPU_BITS | cpu;
}

static int64_t left_of(const struct pool_ask *a, const struct class_device *d)
{
    uint32_t permille = a->lower ? d->lower.permille : d->permille;
    uint64_t mem_bytes = a->lower ? d->lower.mem_bytes : d->mem_bytes;
    return permille - (int64_t)a->permille + (int64_t)((mem_bytes - a->mem_bytes) >> 26);
}

/* Best fit and its opposite: what would be left free of the devices, compute and
 * memory, in permille and 64 MiB. */
static int64_t left_free(const struct pool *p, const struct pool_ask *a,
                         const struct class_state *s, bool most, struct choice *out)
{
    int64_t best = 0, sum = 0;
    *out = (struct choice){ 0 };
    if (a->devices > 1) {
        choose_several(p, a, s, out);
        for (uint32_t i = 0; i < out->count; i++)
            sum += left_of(a, &s->device[out->device[i]]);
        return sum;
    }
    for (uint32_t i = 0; i < s->device_count && a->devices; i++) {
        const struct class_device *d = &s->device[i];
        if (!pool_device_suits(p, a, d))
            continue;
        int64_t left = left_of(a, d);
        if (!out->count || (most ? left > best : left < best)) {
            best = left;
            *out = (struct choice){ .count = 1, .device = { (uint8_t)i } };
        }
    }
    return best;
}

/* The lower class has no target: what is lent above capacity is filled by best fit. */
static enum place_rule rule_of(const struct placer *pl, const struct pool_ask *a)
{
    return pl->policy.rule == PLACE_FILL && (!pl->target || a->lower) ? PLACE_BEST_FIT
                                                                      : pl->policy.rule;
}

/* The rank of a state for an ask that fits it, and the devices. */
static struct shape_rank rank_state(const struct placer *pl, const struct pool_ask *a,
                                    const struct class_state *s, uint64_t hash,
                                    const struct worth_frag *w, struct choice *choice)
{
    struct shape_rank r = { .hash = hash };
    switch (rule_of(pl, a)) {
    case PLACE_FILL: {
        int64_t growth = frag_growth(pl, a, s, w, choice);
        r.key = rank_key(floor_div(growth + price_of(pl, a, s, choice) * LANE_WEIGHT_SUM,
                                   (int64_t)pl->policy.bucket_permille * LANE_WEIGHT_SUM),
                         s);
        break;
    }
    case PLACE_BEST_FIT:
        r.key = rank_key(left_free(pl->pool, a, s, false, choice), s);
        break;
    case PLACE_SPREAD:
        left_free(pl->pool, a, s, true, choice);
        r.key = rank_key(-(int64_t)s->idle_permille, s);
        break;
    }
    return r;
}

static const struct worth_frag *class_frag(struct placer *pl, const struct pool_ask *a,
                                           uint32_t class)
{
    struct class_worth *w = &pl->class[class];
    const struct class *k = &pl->pool->classes.class[class];
    uint64_t birth = pl->pool->classes.birth[class];
    if (rule_of(pl, a) == PLACE_FILL &&
        (w->birth != birth || w->generation != pl->generation)) {
        w->birth = birth;
        w->generation = pl->generation;
        pl->worth->frag(pl->target, &k->state, &w->frag);
    }
    return &w->frag;
}

static bool rank_class(void *ctx, const struct pool_ask *a, uint32_t class,
                       struct shape_rank *out)
{
    struct placer *pl = ctx;
    const struct class *k = &pl->pool->classes.class[class];
    struct choice choice;
    if (!class_has_room(pl->pool, a, &k->state))
        return false;
    *out = rank_state(pl, a, &k->state, k->hash, class_frag(pl, a, class), &choice);
    return true;
}

/* ---- waste ---- */

/* The state is known by its content; which class it is does not matter. */
static int32_t waste_of(struct placer *pl, const struct class_state *s)
{
    uint64_t h =
        hash_mix(hash_mix(0, s->host_mem_bytes), (uint64_t)s->cpu_milli << 32 | s->kind);
    for (uint32_t i = 0; i < s->device_count; i++)
        h = hash_mix(hash_mix(h, s->device[i].mem_bytes),
                     (uint64_t)s->device[i].permille << 8 | s->device[i].model);
    struct waste_memory *m = &pl->memory[h & (WASTE_MEMORY - 1)];
    if (m->hash != h || m->generation != pl->generation)
        *m = (struct waste_memory){ h, pl->generation, pl->worth->waste(pl->target, s) };
    return m->waste;
}

static int64_t waste_bucket(struct placer *pl, const struct pool_ask *a,
                            const struct class_state *s, const struct choice *c)
{
    struct class_state after;
    state_after(pl->pool, s, a, c, &after);
    int64_t growth = waste_of(pl, &after) - waste_of(pl, s);
    return floor_div(growth + price_of(pl, a, s, c) * WASTE_LANES,
                     (int64_t)pl->policy.bucket_permille * WASTE_LANES);
}

/* ---- from a class to a place ---- */

/* Find the chosen devices on a node of the class: equal ones in order of index. */
static void locate(const struct pool *p, const struct pool_ask *a, uint32_t node,
                   const struct class_state *s, const struct choice *c,
                   struct pool_place *out)
{
    const struct pool_slot *n = &p->node[node];
    uint32_t used = 0;
    *out = (struct pool_place){ .node = node, .device_count = c->count };
    for (uint32_t i = 0; i < c->count; i++)
        for (uint32_t k = 0; k < n->is.device_count; k++)
            if (!(used >> k & 1) && !memcmp(&n->device[k].now, &s->device[c->device[i]],
                                            sizeof n->device[k].now)) {
                used |= 1u << k;
                break;
            }
    for (uint32_t k = 0, at = 0; k < n->is.device_count; k++)
        if (used >> k & 1)
            out->device[at++] = (uint8_t)k;
    pool_place_cut(p, a, out);
}

static bool filter_ok(const struct place_filter *f, uint32_t node)
{
    return !f || !f->node_ok || f->node_ok(f->ctx, node);
}

/* … of which its list is a part. */
static bool filter_lists(void *ctx, uint32_t node)
{
    const struct place_filter *f = ctx;
    uint32_t low = 0, high = f->node_count;
    while (low < high) {
        uint32_t half = low + (high - low) / 2;
        if (f->node[half] < node)
            low = half + 1;
        else
            high = half;
    }
    return low < f->node_count && f->node[low] == node && filter_ok(f, node);
}

/* Ranks follow the target and the kinds: both are one generation. */
static int catch_up(struct placer *pl)
{
    const struct classes *c = &pl->pool->classes;
    if (c->room > pl->class_room) {
        struct class_worth *class = realloc(pl->class, c->room * sizeof *class);
        if (!class)
            return -SL_INTERNAL;
        pl->class = class;
        memset(pl->class + pl->class_room, 0,
               (c->room - pl->class_room) * sizeof *pl->class);
        pl->class_room = c->room;
    }
    if (pl->target && pl->kinds != pl->pool->kind_count) {
        if (target_add_kinds(pl->target, pl->pool))
            return -SL_INTERNAL;
        pl->kinds = pl->pool->kind_count;
    }
    return 0;
}

/* ---- shapes ---- */

static uint32_t ask_bucket(const struct pool_ask *a)
{
    return (uint32_t)(ask_hash(a) & (SHAPE_BUCKETS - 1));
}

static uint32_t unused_longest(struct placer *pl)
{
    uint32_t oldest = 0;
    for (uint32_t i = 1; i < PLACE_SHAPES; i++)
        if (pl->shape[i].used < pl->shape[oldest].used)
            oldest = i;
    uint32_t *link = &pl->bucket[ask_bucket(&pl->shape[oldest].ask)];
    while (*link != oldest)
        link = &pl->chain[*link];
    *link = pl->chain[oldest];
    return oldest;
}

static uint32_t shape_known(const struct placer *pl, const struct pool_ask *a,
                            uint32_t bucket)
{
    uint32_t i = pl->bucket[bucket];
    while (i != SHAPE_NONE && !ask_equal(&pl->shape[i].ask, a))
        i = pl->chain[i];
    return i;
}

static struct shape *shape_of(struct placer *pl, const struct pool_ask *a)
{
    uint32_t bucket = ask_bucket(a), i = shape_known(pl, a, bucket);
    if (i == SHAPE_NONE) {
        i = pl->shape_count < PLACE_SHAPES ? pl->shape_count++ : unused_longest(pl);
        struct shape *s = &pl->shape[i];
        s->ask = *a; /* the heap's memory is used again */
        s->count = 0;
        s->generation = 0;
        pl->chain[i] = pl->bucket[bucket];
        pl->bucket[bucket] = i;
    }
    pl->shape[i].used = ++pl->finds;
    return &pl->shape[i];
}

/*
 * Asks that differ only in the nodes they may use share an order: labels are no part
 * of a rank, nor are models and ways to share where each node has only one.  Who is choosy
 * passes over many, and gets an order of its own in the end.
 */
static struct shape *shape_for(struct placer *pl, const struct pool_ask *a)
{
    if (shape_known(pl, a, ask_bucket(a)) != SHAPE_NONE)
        return shape_of(pl, a);
    struct pool_ask common = *a;
    common.need = common.avoid = (struct pool_labels){ 0 };
    if (!pl->pool->mixed)
        common.models = 0;
    if (!pl->pool->mixed_sharing)
        common.sharing = 0;
    return shape_of(pl, &common);
}

/* May the ask use the class, which the shape's order has? */
static bool class_is_for(const struct pool *p, const struct pool_ask *a,
                         const struct shape *shape, const struct class_state *s)
{
    return pool_kind_suits(p, a, s->kind) &&
           (a->models == shape->ask.models || !a->devices ||
            a->models >> s->device[0].model & 1) &&
           (a->sharing == shape->ask.sharing || !a->devices ||
            a->sharing >> class_sharing(&s->device[0]) & 1);
}

/* ---- the decision ---- */

static int find_among(struct placer *pl, const struct pool_ask *a,
                      const struct place_filter *filter, struct pool_place *out);

/* Ranking each of n nodes costs about n looks, finding eight of them in the order of all
 * classes about classes / n: with 10,000 nodes they are equal at about 130. */
static bool are_few(const struct classes *c, uint32_t nodes)
{
    return (uint64_t)nodes * nodes <= 2ull * c->live;
}

int placer_find(struct placer *pl, const struct pool_ask *a,
                const struct place_filter *filter, struct pool_place *out)
{
    const struct classes *c = &pl->pool->classes;
    struct shape *shape;
    struct shape_walk walk;
    uint32_t class, listed = 0, node = CLASS_NONE;
    uint32_t enough = rule_of(pl, a) == PLACE_FILL ? PLACE_SHORTLIST : 1;
    int64_t best = INT64_MAX;
    struct choice chosen;
    const struct class_state *state = NULL;

    if (pl->scans)
        return placer_scan(pl, a, filter, out);
    if (filter && filter->node && are_few(c, filter->node_count))
        return find_among(pl, a, filter, out);
    bool (*ok)(void *, uint32_t) = filter ? filter->node_ok : NULL;
    void *ctx = filter ? filter->ctx : NULL;
    struct place_filter list;
    if (filter && filter->node) {
        list = *filter;
        ok = filter_lists;
        ctx = &list;
    }
    if (catch_up(pl))
        return -SL_INTERNAL;
    shape = shape_for(pl, a);
    if (shape_catch_up(shape, c, pl->generation, rank_class, pl) ||
        array_reserve(&pl->front, &pl->front_room, shape->count + 1, sizeof *pl->front))
        return -SL_INTERNAL;
    shape_walk_begin(&walk, shape, c, pl->front);
    while (listed < enough && (class = shape_walk_next(&walk)) != CLASS_NONE) {
        const struct class_state *s = &c->class[class].state;
        if (!class_is_for(pl->pool, a, shape, s))
            continue;
        uint32_t first = classes_first(c, class, ok, ctx);
        if (first == CLASS_NONE)
            continue;
        listed++;
        struct choice choice;
        rank_state(pl, a, s, 0, class_frag(pl, a, class), &choice);
        int64_t bucket = enough > 1 ? waste_bucket(pl, a, s, &choice) : 0;
        if (bucket < best) {
            best = bucket;
            node = first;
            chosen = choice;
            state = s;
        }
    }
    shape_walk_end(&walk);
    if (walk.seen > (listed < enough ? WALK_VAIN : WALK_LONG) && !ask_equal(&shape->ask, a))
        shape_of(pl, a);
    if (node == CLASS_NONE)
        return -SL_NO_CAPACITY;
    locate(pl->pool, a, node, state, &chosen, out);
    return 0;
}

/* ---- the same by looking at every node ---- */

struct scanned {
    struct shape_rank rank;
    uint32_t node;
    struct choice choice;
};

/* Keep the best in order; one node, the first, for each state. */
static uint32_t keep_best(struct scanned *list, uint32_t count, uint32_t enough,
                          const struct scanned *s)
{
    uint32_t at = count;
    for (uint32_t i = 0; i < count; i++)
        if (list[i].rank.hash == s->rank.hash)
            return count;
    while (at && rank_less(&s->rank, &list[at - 1].rank))
        at--;
    if (at == enough)
        return count;
    count += count < enough;
    memmove(list + at + 1, list + at, (count - at - 1) * sizeof *list);
    list[at] = *s;
    return count;
}

/* Of the list, by waste. */
static int choose_of(struct placer *pl, const struct pool_ask *a,
                     const struct scanned *list, uint32_t count, struct pool_place *out)
{
    struct class_state state, chosen;
    const struct scanned *best_at = NULL;
    int64_t best = INT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        pool_state(pl->pool, list[i].node, &state);
        int64_t bucket =
            rule_of(pl, a) == PLACE_FILL ? waste_bucket(pl, a, &state, &list[i].choice) : 0;
        if (bucket < best) {
            best = bucket;
            best_at = &list[i];
            chosen = state;
        }
    }
    if (!best_at)
        return -SL_NO_CAPACITY;
    locate(pl->pool, a, best_at->node, &chosen, &best_at->choice, out);
    return 0;
}

int placer_scan(struct placer *pl, const struct pool_ask *a,
                const struct place_filter *filter, struct pool_place *out)
{
    struct scanned list[PLACE_SHORTLIST], s;
    struct class_state state;
    const uint32_t *only = filter ? filter->node : NULL;
    bool fill = rule_of(pl, a) == PLACE_FILL;
    uint32_t count = 0, nodes = only ? filter->node_count : pl->pool->node_count;
    if (catch_up(pl))
        return -SL_INTERNAL;
    for (uint32_t i = 0; i < nodes; i++) {
        struct worth_frag w;
        s.node = only ? only[i] : i;
        if (!pool_ask_fits(pl->pool, a, s.node) || !filter_ok(filter, s.node))
            continue;
        pool_state(pl->pool, s.node, &state);
        if (fill)
            pl->worth->frag(pl->target, &state, &w);
        s.rank = rank_state(pl, a, &state, class_hash(&state), &w, &s.choice);
        count = keep_best(list, count, fill ? PLACE_SHORTLIST : 1, &s);
    }
    return choose_of(pl, a, list, count, out);
}

/* Among a few nodes: each by its class, without an order. */
static int find_among(struct placer *pl, const struct pool_ask *a,
                      const struct place_filter *filter, struct pool_place *out)
{
    struct scanned list[PLACE_SHORTLIST], s;
    const struct classes *c = &pl->pool->classes;
    uint32_t count = 0, ranked = CLASS_NONE;
    if (catch_up(pl))
        return -SL_INTERNAL;
    for (uint32_t i = 0; i < filter->node_count; i++) {
        const struct pool_slot *n = &pl->pool->node[filter->node[i]];
        if (!n->open || n->class == ranked ||
            !class_has_room(pl->pool, a, &c->class[n->class].state) ||
            !filter_ok(filter, filter->node[i]))
            continue;
        ranked = n->class; /* the next is often in the same state */
        s.node = filter->node[i];
        s.rank = rank_state(pl, a, &c->class[ranked].state, c->class[ranked].hash,
                            class_frag(pl, a, ranked), &s.choice);
        count =
            keep_best(list, count, rule_of(pl, a) == PLACE_FILL ? PLACE_SHORTLIST : 1, &s);
    }
    return choose_of(pl, a, list, count, out);
}

void placer_scan_always(struct placer *pl, bool on)
{
    pl->scans = on;
}
