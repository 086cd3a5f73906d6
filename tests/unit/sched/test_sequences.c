/*
 * Random events on random pools, tenants and quotas.  After each: the core's own
 * invariants; that what waits could not start; that evictions were by rule; that a
 * second core, fed the same, says the same.  At the end, evicted work that is submitted
 * again and again comes to rest.
 * SLUICE_SEQUENCES=100000 runs that many.
 */
#include "../rows.h"

#include "pools.h"
#include "sched/log.h"

#define TENANTS  7 /* 0; 1 2 below it; 3 4 below 1; 5 6 below 2 */
#define MODELS   3
#define REQUESTS 400

static const uint32_t parent_of[TENANTS] = { 0, 0, 0, 1, 1, 2, 2 };

struct known {
    struct sched_request q;
    struct sched_option option[2];
    enum sched_state state;
    bool over; /* ended, or never accepted */
    uint64_t start_ms, ran_ms;
    uint32_t place_option, place_count;
    struct pool_place place[8];
    uint64_t by;
    uint64_t promised_ms; /* it starts by then, by what has limits; 0: nothing is */
};

struct run {
    struct rng rng;
    struct sched *s, *twin;
    struct sched_policy policy;
    struct buf log; /* of the event at hand */
    uint64_t now_ms;
    struct known known[REQUESTS + 1]; /* by id */
    uint32_t submitted;
    /* [MODELS] is of all models, at their prices */
    uint64_t held[TENANTS][MODELS + 1], deserved[TENANTS][MODELS + 1],
        limit[TENANTS][MODELS + 1];
    uint64_t most[TENANTS][MODELS + 1]; /* the limit, or what was restored above it */
    uint32_t price[MODELS];
    uint32_t evictions, restored, promises;
    enum sched_order order;
};

/* ---- the accounts, kept the plain way ---- */

static void charge(struct run *r, const struct known *k, bool more)
{
    const struct sched_option *o = &k->option[k->place_option];
    const struct pool_place *at = k->place;
    uint64_t milli[MODELS + 1] = { 0 };
    for (uint32_t g = 0; g < o->group_count; g++)
        for (uint32_t i = 0; i < o->group[g].count; i++, at++)
            for (uint32_t d = 0; d < at->device_count; d++) {
                const struct pool_device *dev =
                    &pool_node_at(sched_pool(r->s), at->node)->device[at->device[d]];
                uint64_t mem = (o->group[g].ask.mem_bytes * 1000 + dev->mem_bytes - 1) /
                               dev->mem_bytes;
                if (o->group[g].ask.lower)
                    continue;
                milli[dev->model] +=
                    o->group[g].ask.permille > mem ? o->group[g].ask.permille : mem;
            }
    for (uint32_t m = 0; m < MODELS; m++)
        milli[MODELS] += milli[m] * r->price[m] / 1000;
    for (uint32_t t = k->q.tenant;; t = parent_of[t]) {
        for (uint32_t m = 0; m <= MODELS; m++)
            r->held[t][m] += more ? milli[m] : -milli[m];
        if (!t)
            break;
    }
}

static bool below(uint32_t tenant, uint32_t above)
{
    while (tenant && tenant != above)
        tenant = parent_of[tenant];
    return tenant == above;
}

static void check_within(struct run *r, const struct sched_option *o,
                         const struct sched_view *v)
{
    const struct pool_node *first = pool_node_at(sched_pool(r->s), v->place[0].node);
    for (uint32_t i = 1; i < v->place_count && o->within_required; i++) {
        const struct pool_node *n = pool_node_at(sched_pool(r->s), v->place[i].node);
        bool rack = n->rack && n->rack == first->rack;
        bool zone = n->zone && n->zone == first->zone;
        ROW("what must lie within does", n == first || (o->within == POOL_RACK && rack) ||
                                             (o->within == POOL_ZONE && (rack || zone)));
    }
}

static void check_split(const struct sched_option *o, const struct sched_view *v)
{
    const struct pool_place *at = v->place;
    for (uint32_t g = 0; g < o->group_count; at += o->group[g++].count) {
        const struct sched_group *x = &o->group[g];
        for (uint32_t i = 0; x->beside && i < x->count; i++) {
            const struct pool_place *one = &at[i], *other = &at[i] - x->count;
            ROW("who lies beside is on the node", one->node == other->node);
            for (uint32_t d = 0; d < one->device_count; d++)
                for (uint32_t k = 0; k < other->device_count; k++)
                    ROW("… on other devices", one->device[d] != other->device[k]);
        }
        for (uint32_t i = 0; x->split_least && i < x->count; i++) {
            uint32_t there = 0;
            for (uint32_t k = 0; k < x->count; k++)
                there += at[k].node == at[i].node;
            ROW("a split gives the least or more", there >= x->split_least);
        }
    }
}

static void hold(struct run *r, struct known *k)
{
    struct sched_view v;
    ROW("who holds is known", !sched_find(r->s, k->q.id, &v) && v.place_count <= 8);
    k->place_option = v.option;
    k->place_count = v.place_count;
    memcpy(k->place, v.place, v.place_count * sizeof *v.place);
    check_within(r, &k->option[v.option], &v);
    check_split(&k->option[v.option], &v);
    charge(r, k, true);
}

/* ---- decisions are by rule ---- */

static void check_victim(struct run *r, const struct known *v, const struct known *by,
                         const struct sched_decision *d)
{
    ROW("only who runs and may be evicted is",
        v->state == SCHED_RUNNING && v->q.preemptible);
    ROW("… after its time", r->now_ms - v->start_ms >= v->q.min_run_ms);
    if (d->rule == SCHED_BY_PRIORITY) {
        ROW("priority counts inside a tenant", v->q.tenant == by->q.tenant);
        ROW("… and must be higher", v->q.priority < by->q.priority);
    } else if (d->rule == SCHED_BY_SERVICE) {
        ROW("service counts inside a tenant and priority",
            v->q.tenant == by->q.tenant && v->q.priority == by->q.priority);
    } else {
        ROW("reclaim is from another branch",
            !below(v->q.tenant, by->q.tenant) && !below(by->q.tenant, v->q.tenant));
    }
}

/* After the evictions for it: the reclaimer at or below, each victim at or above. */
static void check_shares(struct run *r, const struct known *v, const struct known *by)
{
    for (uint32_t i = 0; i < v->place_count; i++) {
        uint32_t node = v->place[i].node;
        for (uint32_t k = 0; k < v->place[i].device_count; k++) {
            uint32_t m =
                pool_node_at(sched_pool(r->s), node)->device[v->place[i].device[k]].model;
            for (uint32_t t = v->q.tenant; !below(by->q.tenant, t); t = parent_of[t])
                ROW("the victim is at or above its share",
                    r->held[t][m] >= r->deserved[t][m] &&
                        r->held[t][MODELS] >= r->deserved[t][MODELS]);
        }
    }
    for (uint32_t i = 0; i < by->place_count; i++)
        for (uint32_t k = 0; k < by->place[i].device_count; k++) {
            uint32_t m = pool_node_at(sched_pool(r->s), by->place[i].node)
                             ->device[by->place[i].device[k]]
                             .model;
            for (uint32_t t = by->q.tenant; !below(v->q.tenant, t); t = parent_of[t])
                ROW("the reclaimer is at or below its share",
                    r->held[t][m] <= r->deserved[t][m] ||
                        r->held[t][MODELS] <= r->deserved[t][MODELS]);
        }
}

static void forget_promises(struct run *r)
{
    for (uint32_t id = 1; id <= r->submitted; id++)
        r->known[id].promised_ms = 0;
}

static void take_decisions(struct run *r, const struct sched_decision *d, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct known *k = &r->known[d[i].id];
        if (d[i].kind == SCHED_GRANT) {
            if (k->state == SCHED_PENDING)
                hold(r, k);
            ROW("granted once", k->state == SCHED_PENDING || k->state == SCHED_NOMINATED);
            ROW("who was promised a start has it",
                !k->promised_ms || r->now_ms <= k->promised_ms);
            k->state = SCHED_RUNNING;
            k->start_ms = r->now_ms;
            continue;
        }
        struct known *by = &r->known[d[i].by];
        uint32_t first = i;
        for (; i < count && d[i].kind == SCHED_EVICT && d[i].by == d[first].by; i++) {
            struct known *v = &r->known[d[i].id];
            check_victim(r, v, by, &d[i]);
            charge(r, v, false);
            forget_promises(r); /* who makes room by right may break them */
            v->state = SCHED_LEAVING;
            v->ran_ms = r->now_ms - v->start_ms;
            v->by = d[i].by;
            r->evictions++;
        }
        ROW("who evicts waits", by->state == SCHED_PENDING);
        hold(r, by);
        by->state = SCHED_NOMINATED;
        for (uint32_t k2 = first; k2 < i; k2++)
            if (d[k2].rule == SCHED_BY_RECLAIM)
                check_shares(r, &r->known[d[k2].id], by);
        i--;
    }
}

/* ---- what waits could not start ---- */

static uint64_t most_milli(const struct sched_option *o)
{
    uint64_t milli = 0;
    for (uint32_t g = 0; g < o->group_count; g++) {
        const struct pool_ask *a = &o->group[g].ask;
        uint64_t mem = (a->mem_bytes * 1000 + 16 * GIB - 1) / (16 * GIB);
        milli += (uint64_t)o->group[g].count * (a->lower ? 0 : a->devices) *
                 (a->permille > mem ? a->permille : mem);
    }
    return milli;
}

static bool near_each_other(struct run *r, uint32_t a, uint32_t b, enum pool_level level)
{
    const struct pool_node *x = pool_node_at(sched_pool(r->s), a);
    const struct pool_node *y = pool_node_at(sched_pool(r->s), b);
    return a == b || (level != POOL_NODE && x->rack && x->rack == y->rack) ||
           (level == POOL_ZONE && x->zone && x->zone == y->zone);
}

static bool carries(const struct known *k, uint32_t tag)
{
    for (uint32_t i = 0; i < k->q.ties.tag_count; i++)
        if (k->q.ties.tag[i] == tag)
            return true;
    return false;
}

/* How many places there, and anywhere, carry the tag. */
static uint32_t carriers(struct run *r, uint32_t tag, enum pool_level level, uint32_t node,
                         uint32_t *anywhere)
{
    uint32_t there = 0;
    *anywhere = 0;
    for (uint32_t id = 1; id <= r->submitted; id++) {
        const struct known *o = &r->known[id];
        if (o->over || o->state == SCHED_PENDING || !carries(o, tag))
            continue;
        for (uint32_t i = 0; i < o->place_count; i++, ++*anywhere)
            there += near_each_other(r, node, o->place[i].node, level);
    }
    return there;
}

static bool is_barred(struct run *r, const struct known *k, uint32_t node)
{
    for (uint32_t id = 1; id <= r->submitted; id++) {
        const struct known *o = &r->known[id];
        if (o->over || o->state == SCHED_PENDING)
            continue;
        for (uint32_t t = 0; t < o->q.ties.tie_count; t++) {
            const struct sched_tie *tie = &o->q.ties.tie[t];
            if (!tie->required || !tie->apart || !carries(k, tie->tag))
                continue;
            if (tie->level == POOL_DEVICE)
                return true;
            for (uint32_t i = 0; i < o->place_count; i++)
                if (near_each_other(r, node, o->place[i].node, tie->level))
                    return true;
        }
    }
    return false;
}

/* Ties of whole nodes, kept the plain way; those of devices count as in the way. */
static bool ties_allow(struct run *r, const struct known *k, uint32_t node)
{
    if (is_barred(r, k, node))
        return false;
    for (uint32_t t = 0; t < k->q.ties.tie_count; t++) {
        const struct sched_tie *tie = &k->q.ties.tie[t];
        uint32_t anywhere, there = carriers(r, tie->tag, tie->level, node, &anywhere);
        if (!tie->required)
            continue;
        if (tie->level == POOL_DEVICE)
            return false;
        if (tie->apart ? there : !there && (anywhere || !carries(k, tie->tag)))
            return false;
    }
    return true;
}

static bool could_start(struct run *r, const struct known *k, const struct sched_option *o)
{
    const struct pool *p = sched_pool(r->s);
    struct pool_ask a = o->group[0].ask;
    uint64_t models = 0;
    a.owner = k->q.tenant;
    if (o->group_count > 1 || o->group[0].count > 1 || o->group[0].split_least > 1)
        return false; /* gangs: rows say it */
    for (uint32_t m = 0; m < MODELS; m++) {
        bool ok = true;
        for (uint32_t t = k->q.tenant;; t = parent_of[t]) {
            ok &= r->held[t][m] + most_milli(o) <= r->limit[t][m] &&
                  r->held[t][MODELS] + most_milli(o) * r->price[m] / 1000 <=
                      r->limit[t][MODELS];
            if (!t)
                break;
        }
        if (ok && (!a.models || a.models >> m & 1))
            models |= 1ull << m;
    }
    if (a.devices && !a.lower && !models)
        return false;
    if (a.devices && !a.lower)
        a.models = models;
    for (uint32_t n = 0; n < pool_node_count(p); n++)
        if (pool_ask_fits(p, &a, n) && ties_allow(r, k, n))
            return true;
    return false;
}

static void check_waiting(struct run *r)
{
    for (uint32_t id = 1; id <= r->submitted; id++) {
        const struct known *k = &r->known[id];
        struct sched_view v;
        int rc = sched_find(r->s, id, &v);
        ROW("what is over is unknown", k->over == (rc == -SL_NOT_FOUND));
        if (rc)
            continue;
        ROW("states agree", v.state == k->state);
        if (v.state != SCHED_PENDING)
            continue;
        if (!rng_below(&r->rng, 20)) { /* asked of one of the two, they decide the same */
            uint64_t start_ms;
            enum sched_basis basis;
            ROW("an estimate is given", !sched_estimate(r->s, id, &start_ms, &basis));
            ROW("… and by limits it is to come",
                basis != SCHED_BASIS_LIMITS || start_ms >= r->now_ms);
        }
        ROW("who waits is told why", v.verdict != SCHED_NOT_WAITING);
        for (uint32_t i = 0; i < k->q.option_count; i++)
            ROW("who could start does not wait", !could_start(r, k, &k->option[i]));
    }
}

static uint32_t quota_model(uint32_t m)
{
    return m == MODELS ? SCHED_ALL_MODELS : m;
}

/* The twin is fed by the log, and what it decides is compared as the log has it. */
static void apply_to_twin(struct run *r, int rc, const struct sched_decision *d,
                          uint32_t count)
{
    struct sched_log_reader reader;
    struct sched_log_record event, outcome;
    struct sched_policy policy;
    const struct sched_decision *twin;
    uint32_t twins;
    AUTO_BUF struct buf body = { 0 };
    sched_log_outcome(&r->log, rc, d, count);
    ROW("the log is whole",
        !buf_failed(&r->log) &&
            !sched_log_open(&reader, r->log.text, r->log.len, &policy, NULL) &&
            !sched_log_next(&reader, &event, NULL));
    rc = sched_apply(r->twin, &event.event, &twin, &twins, NULL);
    sched_log_outcome_body(&body, rc, twin, twins);
    ROW("the outcome is there", !sched_log_next(&reader, &outcome, NULL));
    ROW("the twin decides the same",
        body.len == outcome.body_size && !memcmp(body.text, outcome.body, body.len));
    sched_log_close(&reader);
}

/* A start that rests on limits only gets better. */
static void check_promises(struct run *r)
{
    for (uint32_t id = 1; id <= r->submitted; id++) {
        struct known *k = &r->known[id];
        struct sched_view v;
        bool firm = !sched_find(r->s, id, &v) && v.basis == SCHED_BASIS_LIMITS;
        if (firm && v.start_ms < r->now_ms)
            fprintf(stderr, "DBG id %u start %lu now %lu\n", id, v.start_ms, r->now_ms);
        ROW("a promised start is still to come", !firm || v.start_ms >= r->now_ms);
        ROW("… and no later than it was",
            !firm || !k->promised_ms || v.start_ms <= k->promised_ms);
        k->promised_ms = firm ? v.start_ms : 0;
        r->promises += firm;
    }
}

static void apply(struct run *r, struct sched_event *e)
{
    const struct sched_decision *d;
    uint32_t count;
    e->now_ms = r->now_ms;
    r->log.len = 0;
    sched_log_begin(&r->log, &r->policy);
    sched_log_event(&r->log, e);
    int rc = sched_apply(r->s, e, &d, &count, NULL);
    ROW("no event is refused", rc == 0);
    apply_to_twin(r, rc, d, count);
    take_decisions(r, d, count);
    check_promises(r);
    sched_check(r->s);
    for (uint32_t t = 0; t < TENANTS; t++)
        for (uint32_t m = 0; m <= MODELS; m++) {
            uint64_t had = r->most[t][m], has = r->held[t][m], limit = r->limit[t][m];
            ROW("the accounts agree", has == sched_held_milli(r->s, t, quota_model(m)));
            ROW("no tenant is over its limit, nor goes further above it", has <= had);
            r->most[t][m] = has > limit ? has : limit;
        }
}

/* ---- random events ---- */

static void random_split(struct rng *rng, struct sched_option *o)
{
    struct sched_group *g = o->group;
    if (o->group_count > 1 && g[0].ask.devices == 1 && rng_below(rng, 2)) {
        g[1].count = g[0].count;
        g[1].beside = true;
    } else if (o->group_count == 1 && !g[0].ask.lower && rng_below(rng, 12) == 0) {
        g[0].count = 1 + rng_below(rng, 5);
        g[0].split_least = 1 + rng_below(rng, 2);
        g[0].ask.devices = 1;
        g[0].ask.permille = 1000;
    }
}

static void random_ties(struct rng *rng, struct sched_ties *t)
{
    if (rng_below(rng, 3))
        return;
    t->tag_count = rng_below(rng, 3);
    t->tie_count = rng_below(rng, 3);
    for (uint32_t i = 0; i < t->tag_count; i++)
        t->tag[i] = rng_below(rng, 4);
    for (uint32_t i = 0; i < t->tie_count; i++)
        t->tie[i] = (struct sched_tie){ .tag = rng_below(rng, 4),
                                        .level = POOL_NODE + rng_below(rng, 4),
                                        .apart = rng_below(rng, 3) != 0,
                                        .required = rng_below(rng, 2) };
}

static void make_request(struct run *r, struct known *k)
{
    uint32_t groups = 1 + (rng_below(&r->rng, 8) == 0);
    k->q = (struct sched_request){ .id = ++r->submitted,
                                   .tenant = rng_below(&r->rng, TENANTS),
                                   .priority = 10 * rng_below(&r->rng, 4),
                                   .preemptible = rng_below(&r->rng, 5) != 0,
                                   .min_run_ms = 1000 * rng_below(&r->rng, 3),
                                   .work_ms = 1000 * rng_below(&r->rng, 100),
                                   .attained_ms = 1000 * rng_below(&r->rng, 20),
                                   .limit_ms = 10000 * rng_below(&r->rng, 4),
                                   .option_count = 1 + (rng_below(&r->rng, 6) == 0) };
    for (uint32_t i = 0; i < k->q.option_count; i++) {
        k->option[i].group_count = groups;
        k->option[i].within =
            rng_below(&r->rng, 4) ? POOL_ANYWHERE : POOL_NODE + rng_below(&r->rng, 3);
        k->option[i].within_required = k->option[i].within && rng_below(&r->rng, 2);
        for (uint32_t g = 0; g < groups; g++) {
            k->option[i].group[g].ask = random_ask(&r->rng);
            k->option[i].group[g].ask.lower = k->option[i].group[0].ask.lower;
            k->option[i].group[g].ask.mem_bytes %= 16 * GIB;
            k->option[i].group[g].count =
                1 + (rng_below(&r->rng, 6) == 0) * rng_below(&r->rng, 3);
        }
    }
    random_ties(&r->rng, &k->q.ties);
    for (uint32_t i = 0; i < k->q.option_count; i++)
        random_split(&r->rng, &k->option[i]);
    k->q.option = k->option;
}

static void submit(struct run *r, struct known *k)
{
    struct sched_event e = { .kind = SCHED_SUBMIT };
    make_request(r, k);
    e.submit = k->q;
    apply(r, &e);
}

/* The first devices that do, from a random node on; false: there are none. */
static bool somewhere(struct run *r, const struct pool_ask *a, struct pool_place *out)
{
    const struct pool *p = sched_pool(r->s);
    uint32_t nodes = pool_node_count(p), from = rng_below(&r->rng, nodes);
    for (uint32_t i = 0; i < nodes; i++) {
        *out = (struct pool_place){ .node = (from + i) % nodes };
        for (uint8_t d = 0; d < pool_node_at(p, out->node)->device_count; d++) {
            struct pool_place one = { .node = out->node,
                                      .device_count = 1,
                                      .device = { d } };
            struct pool_ask single = *a;
            single.devices = 1;
            pool_place_cut(p, &single, &one);
            if (out->device_count < a->devices && pool_place_fits(p, &single, &one))
                out->device[out->device_count++] = d;
        }
        pool_place_cut(p, a, out);
        if (pool_place_fits(p, a, out))
            return true;
    }
    return false;
}

static bool is_kept(struct run *r, uint32_t node)
{
    struct sched_view v;
    for (uint32_t id = 1; id <= r->submitted; id++)
        if (!sched_find(r->s, id, &v) && v.state == SCHED_NOMINATED)
            for (uint32_t i = 0; i < v.place_count; i++)
                if (v.place[i].node == node)
                    return true;
    return false;
}

/* One place, wherever there is room, whatever the limits say. */
static void restore(struct run *r, struct known *k)
{
    struct sched_event e = { .kind = SCHED_RESTORE };
    struct pool_place at;
    make_request(r, k);
    k->option[0].group_count = k->option[0].group[0].count = 1;
    k->q.option_count = 1;
    k->option[0].group[0].ask.owner = k->q.tenant;
    k->over = !somewhere(r, &k->option[0].group[0].ask, &at) || is_kept(r, at.node);
    if (k->over)
        return;
    k->start_ms = r->now_ms - rng_below(&r->rng, (uint32_t)r->now_ms + 1);
    k->state = SCHED_RUNNING;
    k->place_count = 1;
    k->place[0] = at;
    charge(r, k, true);
    for (uint32_t t = 0; t < TENANTS; t++)
        for (uint32_t m = 0; m <= MODELS; m++)
            if (r->held[t][m] > r->most[t][m])
                r->most[t][m] = r->held[t][m];
    e.restore = (struct sched_restore){ k->q, 0, k->start_ms, 1, &at };
    apply(r, &e);
    r->restored++;
}

static void end_one(struct run *r, struct known *k)
{
    struct sched_event e = { .kind = SCHED_END, .end = k->q.id };
    if (k->state == SCHED_NOMINATED || k->state == SCHED_RUNNING)
        charge(r, k, false);
    k->over = true;
    apply(r, &e);
}

static void set_quota(struct run *r)
{
    uint32_t t = 1 + rng_below(&r->rng, TENANTS - 1), m = rng_below(&r->rng, MODELS + 1);
    struct sched_event e = { .kind = SCHED_SET_QUOTA,
                             .quota = { t, quota_model(m), 500 * rng_below(&r->rng, 9),
                                        SCHED_NO_LIMIT } };
    /* a limit below what is held would only hold from then on */
    if (rng_below(&r->rng, 2))
        e.quota.limit_milli = r->held[t][m] + e.quota.deserved_milli + 1000;
    r->deserved[t][m] = e.quota.deserved_milli;
    r->limit[t][m] = e.quota.limit_milli;
    r->most[t][m] = r->held[t][m] > r->limit[t][m] ? r->held[t][m] : r->limit[t][m];
    apply(r, &e);
}

static void set_priority(struct run *r, struct known *k)
{
    struct sched_event e = { .kind = SCHED_SET_PRIORITY };
    if (k->over)
        return;
    k->q.priority = 10 * rng_below(&r->rng, 4);
    e.priority = (struct sched_priority){ k->q.id, k->q.priority };
    apply(r, &e);
}

static void begin(struct run *r, uint64_t seed)
{
    *r = (struct run){ .rng = { seed } };
    sched_policy_init(&r->policy);
    r->policy.order = r->order = rng_below(&r->rng, 3);
    if (rng_below(&r->rng, 3) < 2)
        r->policy.tenancy = rng_below(&r->rng, POOL_ALL_SHARING + 1);
    r->policy.protect = rng_below(&r->rng, 9);
    r->policy.patience_ms = 3000 * rng_below(&r->rng, 3);
    if (sched_create(&r->policy, &r->s, NULL) || sched_create(&r->policy, &r->twin, NULL))
        abort();
    memset(r->limit, 0xff, sizeof r->limit);
    memset(r->most, 0xff, sizeof r->most);
    for (uint32_t m = 0; m < MODELS; m++) {
        struct sched_event e = { .kind = SCHED_SET_PROFILES };
        e.profiles = (struct sched_profiles){ m, *profiles_of(m) };
        apply(r, &e);
    }
    for (uint32_t i = 1 + rng_below(&r->rng, 8); i--;) {
        struct sched_event e = { .kind = SCHED_ADD_NODE };
        e.node = node_of(1u << rng_below(&r->rng, 4), rng_below(&r->rng, MODELS), 16, 32);
        for (uint32_t k = 0; k < e.node.device_count; k++)
            e.node.device[k].sharing = random_sharing(&r->rng);
        random_over(&r->rng, &e.node);
        e.node.labels.bits[rng_below(&r->rng, POOL_LABEL_WORDS)] = 1ull
                                                                   << rng_below(&r->rng, 3);
        e.node.rack = rng_below(&r->rng, 4);
        e.node.zone = e.node.rack % 3;
        apply(r, &e);
    }
    for (uint32_t t = 1; t < TENANTS; t++) {
        struct sched_event e = { .kind = SCHED_SET_TENANT,
                                 .tenant = { t, parent_of[t], rng_below(&r->rng, 4) } };
        apply(r, &e);
    }
    for (uint32_t m = 0; m < MODELS; m++) {
        struct sched_event e = { .kind = SCHED_SET_PRICE };
        r->price[m] = 500 * (1 + rng_below(&r->rng, 4));
        e.price = (struct sched_price){ m, r->price[m] };
        apply(r, &e);
    }
    for (int i = 0; i < 12; i++)
        set_quota(r);
}

/* Time passes; whose limit it reaches is ended. */
static void pass(struct run *r, uint64_t ms)
{
    uint64_t until = r->now_ms + ms;
    for (;;) {
        struct known *next = NULL;
        for (uint32_t id = 1; id <= r->submitted; id++) {
            struct known *k = &r->known[id];
            if (!k->over && (k->state == SCHED_RUNNING || k->state == SCHED_LEAVING) &&
                k->q.limit_ms && k->start_ms + k->q.limit_ms <= until &&
                (!next || k->start_ms + k->q.limit_ms < next->start_ms + next->q.limit_ms))
                next = k;
        }
        if (!next)
            break;
        if (next->start_ms + next->q.limit_ms > r->now_ms)
            r->now_ms = next->start_ms + next->q.limit_ms;
        end_one(r, next);
    }
    r->now_ms = until;
}

static void one_event(struct run *r)
{
    uint32_t dice = rng_below(&r->rng, 100);
    pass(r, rng_below(&r->rng, 500));
    if (dice < 3 && r->submitted < REQUESTS) {
        restore(r, &r->known[r->submitted + 1]);
    } else if (dice < 45 && r->submitted < REQUESTS) {
        submit(r, &r->known[r->submitted + 1]);
    } else if (dice < 90 && r->submitted) {
        struct known *k = &r->known[1 + rng_below(&r->rng, r->submitted)];
        if (!k->over)
            end_one(r, k);
    } else if (dice < 93) {
        struct sched_event e = { .kind = SCHED_OPEN_NODE };
        e.open.node = rng_below(&r->rng, pool_node_count(sched_pool(r->s)));
        e.open.open = rng_below(&r->rng, 3) != 0;
        struct sched_view v;
        /* who waited for that node is back in the queue */
        for (uint32_t id = 1; id <= r->submitted && !e.open.open; id++)
            if (r->known[id].state == SCHED_NOMINATED && !r->known[id].over &&
                !sched_find(r->s, id, &v))
                for (uint32_t i = 0; i < v.place_count; i++)
                    e.open.open |= v.place[i].node == e.open.node;
        apply(r, &e);
    } else if (dice < 96) {
        set_quota(r);
    } else if (dice < 97 && r->submitted) {
        set_priority(r, &r->known[1 + rng_below(&r->rng, r->submitted)]);
    } else {
        struct sched_event e = { .kind = SCHED_TICK };
        apply(r, &e);
    }
}

/* Who was told to go goes, and asks for the same again: no new work, so it must rest. */
static void comes_to_rest(struct run *r)
{
    if (r->order == SCHED_BY_ATTAINED)
        return; /* taking turns is what it is for */
    for (int round = 0; round < 200; round++) {
        struct sched_event tick = { .kind = SCHED_TICK };
        uint32_t gone = 0, last = r->submitted;
        pass(r, 10000);
        for (uint32_t id = 1; id <= last; id++) {
            struct known *k = &r->known[id];
            if (k->over || k->state != SCHED_LEAVING)
                continue;
            end_one(r, k);
            gone++;
            if (r->submitted == REQUESTS)
                return; /* it had its chance; the rounds are the test of longer runs */
            struct known *again = &r->known[++r->submitted];
            struct sched_event e = { .kind = SCHED_SUBMIT };
            *again = (struct known){ .q = k->q };
            again->q.attained_ms += k->ran_ms;
            memcpy(again->option, k->option, sizeof k->option);
            again->q.id = r->submitted;
            again->q.option = again->option;
            e.submit = again->q;
            apply(r, &e);
        }
        apply(r, &tick);
        if (!gone)
            return;
    }
    ROW("evictions end", false);
}

static void random_sequences(void **state)
{
    const char *more = getenv("SLUICE_SEQUENCES");
    int rounds = more ? atoi(more) : 60;
    uint32_t evictions = 0, restored = 0, promises = 0;
    static struct run r;
    for (int i = 0; i < rounds; i++) {
        begin(&r, 7000 + (uint64_t)i);
        for (int k = 0; k < 150; k++) {
            one_event(&r);
            check_waiting(&r);
        }
        comes_to_rest(&r);
        evictions += r.evictions;
        restored += r.restored;
        promises += r.promises;
        sched_destroy(r.s);
        sched_destroy(r.twin);
        buf_finish(&r.log);
    }
    ROW("the sequences evict, restore and promise", evictions && restored && promises);
    print_message("%d sequences, %u evictions, %u restored, %u promises looked at\n",
                  rounds, evictions, restored, promises);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(random_sequences),
};
ROWS_MAIN(tests)
