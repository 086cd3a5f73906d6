/*
 * Uneven splits: groups beside each other on one node, and a number of devices over as few
 * nodes as can be.
 */
#include <assert.h>

#include "sched_impl.h"

/* ---- beside each other ---- */

uint32_t bundle_size(const struct sched_option *o, uint32_t g)
{
    uint32_t n = 1;
    while (g + n < o->group_count && o->group[g + n].beside)
        n++;
    return n;
}

static bool fuller(const struct class_device *a, const struct class_device *b, bool lower)
{
    if (lower && a->lower.permille != b->lower.permille)
        return a->lower.permille < b->lower.permille;
    if (lower)
        return a->lower.mem_bytes < b->lower.mem_bytes;
    if (a->permille != b->permille)
        return a->permille < b->permille;
    return a->mem_bytes < b->mem_bytes;
}

/* Devices, the fullest first. */
static void sort_devices(const struct room *r, bool lower, uint8_t order[POOL_MAX_DEVICES])
{
    for (uint32_t i = 0; i < r->device_count; i++) {
        uint32_t at = i;
        for (; at && fuller(&r->device[i], &r->device[order[at - 1]], lower); at--)
            order[at] = order[at - 1];
        order[at] = (uint8_t)i;
    }
}

/* Asks for devices, one by one, and who has which: a matching, grown by chains of exchanges
 * (Kuhn 1955), so that one is found if there is one. */
struct matching {
    const struct room *room;
    const struct pool_ask *ask;
    const uint32_t *ok; /* devices that will do, by ask */
    uint8_t order[POOL_MAX_DEVICES];
    uint8_t ask_of[POOL_MAX_DEVICES];    /* of a wanted device */
    uint8_t wanted_by[POOL_MAX_DEVICES]; /* 1 + who has the device, or 0 */
};

static bool match_one(struct matching *m, uint32_t want, uint32_t *seen)
{
    for (uint32_t i = 0; i < m->room->device_count; i++) {
        uint32_t d = m->order[i];
        if (!(m->ok[m->ask_of[want]] >> d & 1) || *seen >> d & 1)
            continue;
        *seen |= 1u << d;
        if (!m->wanted_by[d] || match_one(m, m->wanted_by[d] - 1u, seen)) {
            m->wanted_by[d] = (uint8_t)(want + 1);
            return true;
        }
    }
    return false;
}

/* Host CPU and memory for all together. */
static bool host_suffices(const struct room *r, const struct pool_ask *ask, uint32_t n)
{
    uint64_t cpu = 0, mem = 0;
    for (uint32_t k = 0; k < n; k++) {
        cpu += ask[k].cpu_milli;
        if (__builtin_add_overflow(mem, ask[k].host_mem_bytes, &mem))
            return false;
    }
    return cpu <= r->cpu_milli && mem <= r->host_mem_bytes;
}

bool bundle_match(const struct room *r, const struct pool_ask *ask, const uint32_t *ok,
                  uint32_t n, struct pool_place *out)
{
    struct matching m = { .room = r, .ask = ask, .ok = ok };
    uint32_t wants = 0;
    if (!host_suffices(r, ask, n))
        return false;
    sort_devices(r, ask->lower, m.order);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < ask[k].devices; i++) {
            uint32_t seen = 0;
            if (wants == POOL_MAX_DEVICES)
                return false;
            m.ask_of[wants] = (uint8_t)k;
            if (!match_one(&m, wants++, &seen))
                return false;
        }
    for (uint32_t k = 0; out && k < n; k++) {
        out[k].device_count = 0;
        for (uint32_t d = 0; d < r->device_count; d++)
            if (m.wanted_by[d] && m.ask_of[m.wanted_by[d] - 1] == k)
                out[k].device[out[k].device_count++] = (uint8_t)d;
    }
    return true;
}

/* ---- over as few nodes as can be ---- */

/* How many nodes can take so many devices, by that number. */
struct supply {
    uint32_t nodes[POOL_MAX_DEVICES + 1];
};

static uint32_t node_devices(struct sched *s, const struct form *f,
                             const struct pool_ask *a, uint32_t node, bool empty)
{
    struct room room;
    if (!pool_kind_suits(s->pool, a, s->pool->node[node].kind))
        return 0;
    if (empty) {
        room_empty(s->pool, a, node, &room);
    } else {
        if (!s->pool->node[node].open || !ties_suit(s, f, a, node))
            return 0;
        room_now(s->pool, a, node, &room);
    }
    return (uint32_t)asks_in(s->pool, &room, a, POOL_MAX_DEVICES);
}

/* From each node all it can take, from the largest on; of the last as much as is left, and
 * that the smallest that has it. */
struct plan {
    uint32_t all[POOL_MAX_DEVICES + 1]; /* nodes that give all, by what they have */
    uint32_t last;                      /* what the last one has at least, and gives */
    uint32_t last_has;
    uint32_t spare; /* which others give less, so that the last has the least */
};

static bool make_plan(const struct supply *have, uint32_t count, uint32_t least,
                      struct plan *p)
{
    uint32_t nodes = 0, left = count, has = POOL_MAX_DEVICES;
    *p = (struct plan){ 0 };
    for (; has >= least && has; has--) {
        for (; left > has && p->all[has] < have->nodes[has]; nodes++) {
            p->all[has]++;
            left -= has;
        }
        if (left <= has && p->all[has] < have->nodes[has])
            break; /* one more will do */
    }
    p->last = left > least ? left : least;
    p->spare = p->last - left;
    for (has = p->last; has <= POOL_MAX_DEVICES; has++)
        if (p->all[has] < have->nodes[has]) {
            p->last_has = has;
            return (uint64_t)(nodes + 1) * least <= count;
        }
    return false;
}

static uint32_t part_of(struct plan *p, uint32_t has, uint32_t least)
{
    if (p->all[has]) {
        uint32_t less = p->spare < has - least ? p->spare : has - least;
        p->all[has]--;
        p->spare -= less;
        return has - less;
    }
    if (p->last_has != has)
        return 0;
    p->last_has = 0;
    return p->last;
}

static uint32_t node_of_filter(const struct place_filter *f, uint32_t i)
{
    return f ? f->node[i] : i;
}

static void count_supply(struct sched *s, const struct form *f, const struct pool_ask *a,
                         const struct place_filter *filter, bool empty, struct supply *have)
{
    uint32_t nodes = filter ? filter->node_count : s->pool->node_count;
    *have = (struct supply){ 0 };
    for (uint32_t i = 0; i < nodes; i++)
        have->nodes[node_devices(s, f, a, node_of_filter(filter, i), empty)]++;
}

/* Who is apart from itself has less after each place: it may be refused though others would
 * do. */
int split_place(struct sched *s, const struct form *f, const struct sched_group *g,
                const struct pool_ask *a, const struct place_filter *filter,
                struct pool_place *out)
{
    uint32_t nodes = filter ? filter->node_count : s->pool->node_count;
    const struct pool_place *end = out + g->count;
    struct supply have;
    struct plan plan;
    count_supply(s, f, a, filter, false, &have);
    if (!make_plan(&have, g->count, g->split_least, &plan))
        return -SL_NO_CAPACITY;
    for (uint32_t i = 0; i < nodes; i++) {
        uint32_t node = node_of_filter(filter, i), has = node_devices(s, f, a, node, false);
        struct place_filter only = { .node = &node, .node_count = 1 };
        for (uint32_t part = has < g->split_least ? 0 : part_of(&plan, has, g->split_least);
             part; part--, out++) {
            int rc = ask_find(s, f, a, &only, out);
            if (rc) {
                s->unproven = true;
                return rc;
            }
            try_take(s, f, a, out);
        }
    }
    s->unproven |= out != end;
    return out == end ? 0 : -SL_NO_CAPACITY;
}

/* ---- when empty ---- */

static bool bundle_possible(struct sched *s, const struct sched_option *o, uint32_t g,
                            uint32_t n)
{
    struct pool_ask ask[SCHED_MAX_GROUPS];
    for (uint32_t k = 0; k < n; k++)
        ask[k] = o->group[g + k].ask;
    for (uint32_t node = 0; node < s->pool->node_count; node++) {
        struct room room;
        uint32_t ok[SCHED_MAX_GROUPS] = { 0 };
        bool suits = true;
        room_empty(s->pool, ask, node, &room);
        for (uint32_t k = 0; k < n; k++) {
            suits &= pool_kind_suits(s->pool, &ask[k], s->pool->node[node].kind);
            for (uint32_t d = 0; d < room.device_count; d++)
                ok[k] |= (uint32_t)pool_device_suits(s->pool, &ask[k], &room.device[d])
                         << d;
        }
        if (suits && bundle_match(&room, ask, ok, n, NULL))
            return true;
    }
    return false;
}

bool split_possible(struct sched *s, const struct form *f, const struct sched_option *o,
                    uint32_t *group)
{
    for (*group = 0; *group < o->group_count; ++*group) {
        const struct sched_group *g = &o->group[*group];
        uint32_t n = bundle_size(o, *group);
        struct supply have;
        struct plan plan;
        if (n > 1 && !g->beside && !bundle_possible(s, o, *group, n))
            return false;
        if (!g->split_least)
            continue;
        count_supply(s, f, &g->ask, NULL, true, &have);
        if (!make_plan(&have, g->count, g->split_least, &plan))
            return false;
    }
    return true;
}

int split_check(const struct sched_option *o, struct sl_err *err)
{
    for (uint32_t g = 0; g < o->group_count; g++) {
        const struct sched_group *x = &o->group[g];
        if (x->beside && (!g || x->count != x[-1].count || x[-1].split_least))
            return sl_fail(err, SL_INVALID,
                           "request: a group lies beside one before it, of as many");
        if (x->split_least &&
            (x->beside || x->ask.devices != 1 || x->ask.permille != 1000 || x->ask.lower))
            return sl_fail(err, SL_INVALID, "request: only whole devices are split freely");
    }
    return 0;
}
