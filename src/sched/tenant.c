/* Tenants: the tree, what each holds and has used, quota, and whose turn it is. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "sched_impl.h"

/* ---- decay ---- */

/* 2^(-dt/half_life) x 2^32, by halving and a table of 2^(-i/16), linear in between
 * (error below 0.03 %). */
static uint64_t decay(uint64_t dt_ms, uint64_t half_life_ms)
{
    static const uint64_t table[17] = {
        4294967296, 4112874773, 3938502376, 3771522796, 3611622603, 3458501653,
        3311872529, 3171459999, 3037000500, 2908241642, 2784941738, 2666869345,
        2553802834, 2445529972, 2341847524, 2242560872, 2147483648,
    };
    uint64_t halves = dt_ms / half_life_ms;
    if (halves >= 32)
        return 0;
    uint64_t part = (dt_ms % half_life_ms) * 16 * 256 / half_life_ms; /* 1/256 of a step */
    uint64_t at = part / 256, between = part % 256;
    return (table[at] - (table[at] - table[at + 1]) * between / 256) >> halves;
}

static uint64_t settled(uint64_t past, uint64_t held, uint64_t factor)
{
    return (uint64_t)(((unsigned __int128)past * factor +
                       ((unsigned __int128)held << 16) * ((1ull << 32) - factor)) >>
                      32);
}

/* Bring the mean of past use up to now. */
static void settle(const struct sched *s, struct tenant *t)
{
    uint64_t dt = s->now_ms - t->settled_ms;
    if (!dt)
        return;
    uint64_t factor = decay(dt, s->policy.half_life_ms);
    t->past_price = settled(t->past_price, t->held_milli[SCHED_ALL_MODELS], factor);
    t->own_past = settled(t->own_past, t->own_price, factor);
    t->settled_ms = s->now_ms;
}

/* ---- the tree ---- */

int tenant_set(struct sched *s, const struct sched_tenant *t, struct sl_err *err)
{
    if (t->tenant >= SCHED_MAX_TENANTS || t->parent >= SCHED_MAX_TENANTS)
        return sl_fail(err, SL_INVALID, "tenant %u: numbers are below %u", t->tenant,
                       SCHED_MAX_TENANTS);
    struct tenant *n = &s->tenant[t->tenant], *parent = &s->tenant[t->parent];
    if (n->exists) {
        if (t->tenant != SCHED_ROOT && n->parent != t->parent)
            return sl_fail(err, SL_INVALID, "tenant %u: its parent is %u for ever",
                           t->tenant, n->parent);
        n->weight = t->weight;
        return 0;
    }
    if (!parent->exists)
        return sl_fail(err, SL_NOT_FOUND, "tenant %u: no tenant %u to be its parent",
                       t->tenant, t->parent);
    *n = (struct tenant){ .exists = true,
                          .parent = t->parent,
                          .depth = parent->depth + 1,
                          .weight = t->weight,
                          .next_sibling = parent->first_child,
                          .settled_ms = s->now_ms };
    for (uint32_t q = 0; q < QUOTAS; q++)
        n->limit_milli[q] = SCHED_NO_LIMIT;
    parent->first_child = t->tenant;
    if (t->tenant >= s->tenant_count)
        s->tenant_count = t->tenant + 1;
    return 0;
}

int tenant_set_quota(struct sched *s, const struct sched_quota *q, struct sl_err *err)
{
    if (q->tenant >= SCHED_MAX_TENANTS || !s->tenant[q->tenant].exists)
        return sl_fail(err, SL_NOT_FOUND, "quota: no tenant %u", q->tenant);
    if (q->model >= QUOTAS)
        return sl_fail(err, SL_INVALID, "quota: models are below %d", POOL_MAX_MODELS);
    if (q->deserved_milli > q->limit_milli)
        return sl_fail(err, SL_INVALID, "quota of tenant %u: deserves more than its limit",
                       q->tenant);
    s->tenant[q->tenant].deserved_milli[q->model] = q->deserved_milli;
    s->tenant[q->tenant].limit_milli[q->model] = q->limit_milli;
    s->gains++;
    queue_wake_tenant(s, q->tenant);
    return 0;
}

bool tenant_is_below(const struct sched *s, uint32_t tenant, uint32_t above)
{
    while (s->tenant[tenant].depth > s->tenant[above].depth)
        tenant = s->tenant[tenant].parent;
    return tenant == above;
}

/* ---- what is held ---- */

uint64_t ask_device_milli(const struct pool_ask *a, uint64_t device_mem_bytes)
{
    if (a->lower)
        return 0;
    unsigned __int128 part = (unsigned __int128)a->mem_bytes * 1000;
    uint64_t mem =
        device_mem_bytes ? (uint64_t)((part + device_mem_bytes - 1) / device_mem_bytes) : 0;
    return a->permille > mem ? a->permille : mem;
}

void place_milli(const struct sched *s, const struct form *f, uint32_t option,
                 const struct pool_place *place, uint64_t milli[POOL_MAX_MODELS])
{
    const struct sched_option *o = &f->option[option];
    memset(milli, 0, POOL_MAX_MODELS * sizeof *milli);
    for (uint32_t g = 0; g < o->group_count; g++)
        for (uint32_t i = 0; i < o->group[g].count; i++, place++) {
            const struct pool_node *n = pool_node_at(s->pool, place->node);
            for (uint32_t k = 0; k < place->device_count; k++) {
                const struct pool_device *d = &n->device[place->device[k]];
                milli[d->model] += ask_device_milli(&o->group[g].ask, d->mem_bytes);
            }
        }
}

uint64_t option_milli(const struct sched *s, const struct sched_option *o, uint32_t model)
{
    uint64_t milli = 0;
    for (uint32_t g = 0; g < o->group_count; g++)
        milli += (uint64_t)o->group[g].count * o->group[g].ask.devices *
                 ask_device_milli(&o->group[g].ask, s->least_mem[model]);
    return milli;
}

static uint64_t at_price(const struct sched *s, uint32_t model, uint64_t milli)
{
    return milli * s->price_permille[model] / 1000;
}

uint64_t request_price(const struct sched *s, const struct request *r)
{
    uint64_t price = 0;
    FOR_EACH_HELD(r, m, have)
        price += at_price(s, m, have);
    return price;
}

void tenant_count(struct sched *s, const struct request *r, bool more)
{
    uint64_t price = request_price(s, r);
    for (uint32_t id = r->tenant;; id = s->tenant[id].parent) {
        struct tenant *t = &s->tenant[id];
        FOR_EACH_HELD(r, m, have) {
            assert(more || t->held_milli[m] >= have);
            t->held_milli[m] += more ? have : -have;
        }
        t->held_milli[SCHED_ALL_MODELS] += more ? price : -price;
        if (id == SCHED_ROOT)
            return;
    }
}

void tenant_charge(struct sched *s, const struct request *r, bool more)
{
    uint64_t price = request_price(s, r);
    for (uint32_t id = r->tenant;; id = s->tenant[id].parent) {
        settle(s, &s->tenant[id]);
        if (id == SCHED_ROOT)
            break;
    }
    s->tenant[r->tenant].own_price += more ? price : -price;
    tenant_count(s, r, more);
}

/* ---- what is deserved ---- */

uint64_t tenant_owed_models(const struct sched *s, uint32_t tenant,
                            const struct sched_option *o, uint64_t models)
{
    const struct tenant *t = &s->tenant[tenant];
    uint64_t by_model = 0, by_all = 0;
    for (uint32_t m = 0; m < POOL_MAX_MODELS; m++) {
        uint64_t milli = models >> m & 1 ? option_milli(s, o, m) : 0;
        if (!milli)
            continue;
        if (t->held_milli[m] + milli <= t->deserved_milli[m])
            by_model |= 1ull << m;
        if (t->held_milli[SCHED_ALL_MODELS] + at_price(s, m, milli) <=
            t->deserved_milli[SCHED_ALL_MODELS])
            by_all |= 1ull << m;
    }
    /* one rule for all of them, as the option may be spread over several */
    return __builtin_popcountll(by_all) > __builtin_popcountll(by_model) ? by_all
                                                                         : by_model;
}

bool tenant_can_spare(const struct sched *s, uint32_t tenant, const struct request *r)
{
    const struct tenant *t = &s->tenant[tenant];
    FOR_EACH_HELD(r, m, have)
        if (t->held_milli[m] < t->deserved_milli[m] + have)
            return false;
    return t->held_milli[SCHED_ALL_MODELS] >=
           t->deserved_milli[SCHED_ALL_MODELS] + request_price(s, r);
}

uint64_t tenant_over(const struct sched *s, uint32_t tenant, uint64_t models)
{
    const struct tenant *t = &s->tenant[tenant];
    uint64_t over = 0;
    for (uint32_t m = 0; m < POOL_MAX_MODELS; m++)
        if (models >> m & 1)
            over += sub_sat_u64(t->held_milli[m], t->deserved_milli[m]);
    return min_u64(over, sub_sat_u64(t->held_milli[SCHED_ALL_MODELS],
                                     t->deserved_milli[SCHED_ALL_MODELS]));
}

/* ---- limits ---- */

static bool is_over(const struct tenant *t, uint32_t quota, uint64_t more)
{
    uint64_t limit = t->limit_milli[quota];
    return limit != SCHED_NO_LIMIT && (more > limit || t->held_milli[quota] > limit - more);
}

/* Whose limit bars so much more of the model: the tenant, one above it, or TENANT_NONE. */
static uint32_t who_bars(const struct sched *s, uint32_t tenant, uint32_t m, uint64_t more)
{
    uint64_t price = at_price(s, m, more);
    for (uint32_t id = tenant;; id = s->tenant[id].parent) {
        const struct tenant *t = &s->tenant[id];
        if (is_over(t, m, more) || is_over(t, SCHED_ALL_MODELS, price))
            return id;
        if (id == SCHED_ROOT)
            return TENANT_NONE;
    }
}

uint64_t tenant_models(const struct sched *s, uint32_t tenant, const struct sched_option *o,
                       uint32_t *blocked_by)
{
    uint64_t models = 0, all = 0;
    uint32_t devices = 0;
    *blocked_by = TENANT_NONE;
    for (uint32_t g = 0; g < o->group_count; g++) {
        devices += o->group[g].ask.lower ? 0 : o->group[g].ask.devices;
        all |= o->group[g].ask.models ? o->group[g].ask.models : UINT64_MAX;
    }
    if (!devices) /* no quota of devices concerns it */
        return UINT64_MAX;
    for (uint32_t m = 0; m < POOL_MAX_MODELS; m++) {
        if (s->least_mem[m] == UINT64_MAX || !(all >> m & 1))
            continue;
        uint32_t bars = who_bars(s, tenant, m, option_milli(s, o, m));
        if (bars == TENANT_NONE)
            models |= 1ull << m;
        else if (*blocked_by != SCHED_ROOT)
            *blocked_by = bars;
    }
    return models;
}

/* ---- whose turn ---- */

void tenant_turns(struct sched *s, uint32_t tenant, enum turn turn, int32_t more)
{
    for (;; tenant = s->tenant[tenant].parent) {
        s->tenant[tenant].turns_below[turn] += (uint32_t)more;
        if (tenant == SCHED_ROOT)
            return;
    }
}

/* One that competes: a child, or the tenant's own requests among its children's. */
struct rival {
    uint64_t use; /* priced milli-devices: held, wanted now, and the mean of the past */
    uint32_t weight;
    uint64_t age; /* of its oldest wish: decides among equals */
};

static bool rival_first(const struct rival *a, const struct rival *b)
{
    if (!a->weight != !b->weight)
        return a->weight != 0;
    unsigned __int128 x = (unsigned __int128)a->use * (b->weight ? b->weight : 1);
    unsigned __int128 y = (unsigned __int128)b->use * (a->weight ? a->weight : 1);
    return x != y ? x < y : a->age < b->age;
}

/* The whole gang is counted before comparing. */
static uint64_t wanted(const struct line *l)
{
    uint64_t milli = 0;
    const struct sched_option *o = &l->form->option[0];
    for (uint32_t g = 0; g < o->group_count; g++)
        milli += (uint64_t)o->group[g].count * o->group[g].ask.devices *
                 o->group[g].ask.permille;
    return milli;
}

/* The best line of a tenant and those below it. */
static struct line *next_below(struct sched *s, uint32_t tenant, enum turn turn)
{
    struct tenant *t = &s->tenant[tenant];
    struct line *best = NULL;
    struct rival first, r;
    settle(s, t);
    if (t->turn[turn].count) {
        best = t->turn[turn].line[0];
        first = (struct rival){ t->own_price + (t->own_past >> 16) + wanted(best), 1,
                                best->head->age };
    }
    for (uint32_t id = t->first_child; id; id = s->tenant[id].next_sibling) {
        struct tenant *c = &s->tenant[id];
        if (!c->turns_below[turn])
            continue;
        struct line *l = next_below(s, id, turn);
        r = (struct rival){ c->held_milli[SCHED_ALL_MODELS] + (c->past_price >> 16) +
                                wanted(l),
                            c->weight, l->head->age };
        if (!best || rival_first(&r, &first)) {
            best = l;
            first = r;
        }
    }
    return best;
}

struct line *tenant_next(struct sched *s, enum turn turn)
{
    return s->tenant[SCHED_ROOT].turns_below[turn] ? next_below(s, SCHED_ROOT, turn) : NULL;
}
