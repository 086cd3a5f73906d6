/*
 * Explaining: what each node lacks, and the smallest change that would do, found by trying.
 */
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "sched/explain.h"
#include "sched_impl.h"

#define MIB          ((uint64_t)1 << 20)
#define LEASE_BUDGET 4096 /* places tried in search of a lease whose end would do */

/* ---- what nodes lack ---- */

static int highest_first(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x > y ? -1 : x < y;
}

/* What `n` of these have at least. */
static uint64_t nth_highest(uint64_t *value, uint32_t count, uint32_t n)
{
    qsort(value, count, sizeof *value, highest_first);
    return n && n <= count ? value[n - 1] : 0;
}

/* Would it do if the ask had no size? */
static bool sharing_suits(const struct pool *p, const struct pool_ask *a,
                          const struct class_device *d)
{
    struct pool_ask none = *a;
    none.permille = 0;
    none.mem_bytes = 0;
    return pool_device_suits(p, &none, d);
}

/* The devices of a node that pass one test after the other. */
static enum sched_lack lack_of_devices(const struct pool *p, uint32_t node,
                                       const struct pool_ask *a, uint64_t models,
                                       bool empty, uint64_t *most)
{
    const struct pool_slot *n = &p->node[node];
    uint64_t mem[POOL_MAX_DEVICES], permille[POOL_MAX_DEVICES];
    uint32_t of_model = 0, allowed = 0, shared = 0, count = 0, suits = 0;
    for (uint32_t i = 0; i < n->is.device_count; i++) {
        struct class_device d = n->device[i].now;
        if (empty)
            d = device_empty(p, &n->is.device[i]);
        bool right = !a->models || a->models >> d.model & 1;
        of_model += right;
        right &= models >> d.model & 1;
        allowed += right;
        if (!right || !sharing_suits(p, a, &d))
            continue;
        mem[shared] = a->lower ? d.lower.mem_bytes : d.mem_bytes;
        if (mem[shared++] >= a->mem_bytes)
            permille[count++] = a->lower ? d.lower.permille : d.permille;
        suits += pool_device_suits(p, a, &d);
    }
    *most = of_model;
    if (of_model < a->devices)
        return of_model ? SCHED_LACKS_DEVICES : SCHED_LACKS_MODEL;
    *most = 0;
    if (allowed < a->devices)
        return SCHED_LACKS_QUOTA;
    if (shared < a->devices)
        return SCHED_LACKS_SHARING;
    *most = nth_highest(mem, shared, a->devices);
    if (*most < a->mem_bytes)
        return SCHED_LACKS_MEMORY;
    *most = nth_highest(permille, count, a->devices);
    if (*most < a->permille)
        return SCHED_LACKS_COMPUTE;
    *most = 0;
    return suits < a->devices ? SCHED_LACKS_PROFILE : SCHED_LACKS_NOTHING;
}

/* `empty`: as if nothing were held. */
static enum sched_lack lack_of(const struct sched *s, uint32_t node,
                               const struct pool_ask *a, uint64_t models, bool empty,
                               uint64_t *most)
{
    const struct pool_slot *n = &s->pool->node[node];
    uint64_t devices_most;
    enum sched_lack lack = lack_of_devices(s->pool, node, a, models, empty, &devices_most);
    *most = 0;
    if (!pool_kind_suits(s->pool, a, n->kind))
        return SCHED_LACKS_LABEL;
    if (lack > SCHED_LACKS_QUOTA && !empty && s->hold[node].closed)
        return SCHED_IS_CLOSED;
    if (lack > SCHED_LACKS_QUOTA && !empty && s->hold[node].nominee)
        return SCHED_IS_KEPT;
    *most = devices_most;
    if (lack != SCHED_LACKS_NOTHING)
        return lack;
    if (empty)
        *most = a->lower ? n->is.over_cpu_milli : n->is.cpu_milli;
    else
        *most = slot_cpu_free(n, a);
    if (*most < a->cpu_milli)
        return SCHED_LACKS_CPU;
    if (empty)
        *most = a->lower ? n->is.over_host_mem_bytes : n->is.host_mem_bytes;
    else
        *most = slot_host_mem_free(n, a);
    if (*most < a->host_mem_bytes)
        return SCHED_LACKS_HOST_MEMORY;
    *most = 0;
    return SCHED_LACKS_NOTHING;
}

static void count_lacks(const struct sched *s, const struct request *r,
                        struct sched_explanation *x)
{
    uint32_t unused;
    const struct sched_option *o = &r->form->option[x->view.option];
    uint64_t models = tenant_models(s, r->tenant, o, &unused), most;
    bool empty = x->tier == SCHED_MISCONFIGURED;
    if (empty || !x->ask.devices)
        models = UINT64_MAX;
    for (uint32_t node = 0; node < pool_node_count(s->pool); node++) {
        struct sched_lacking *l =
            &x->lacking[lack_of(s, node, &x->ask, models, empty, &most)];
        l->nodes++;
        l->most = max_u64(l->most, most);
    }
}

/* ---- trying ---- */

/* A request that may be changed: a copy of its form. */
struct trial {
    struct sched *s;
    const struct request *r;
    struct form *form;
    uint32_t option; /* the one at hand */
    struct sched_explanation *x;
};

/* Would the option at hand start now, if `gone` (or NULL) had ended?  1, 0, or
 * -SL_INTERNAL. */
static int admits(struct trial *t, const struct request *gone)
{
    struct sched *s = t->s;
    const struct sched_option *o = &t->form->option[t->option];
    uint32_t places = 0, unused;
    for (uint32_t g = 0; g < o->group_count; g++)
        places += o->group[g].count;
    t->form->place_count[t->option] = places;
    if (try_begin(s, t->form, t->option, places + (gone ? gone->place_count : 0)))
        return -SL_INTERNAL;
    if (gone)
        tenant_count(s, gone, false);
    for (uint32_t i = 0; gone && i < gone->place_count; i++)
        try_give(s, gone->form, option_ask(&gone->form->option[gone->option], i),
                 &gone->place[i]);
    uint64_t models = tenant_models(s, t->r->tenant, o, &unused);
    int rc = models ? gang_place(s, t->form, t->option, models, &unused) : -SL_NO_CAPACITY;
    if (gone)
        tenant_count(s, gone, true);
    try_undo(s);
    return !rc ? 1 : rc == -SL_NO_CAPACITY ? 0 : rc;
}

/* A search at work: one number of an ask, or a limit, and whether a value of it would do. */
struct search {
    struct trial *t;
    uint32_t *small; /* the number … */
    uint64_t *large; /* … or this */
    uint64_t step;
};

static int does(struct search *q, uint64_t value)
{
    if (q->small)
        *q->small = (uint32_t)(value * q->step);
    else
        *q->large = value * q->step;
    return admits(q->t, NULL);
}

/* The value nearest to `bad` that does, between a bad one and a `good` one; neither is
 * tried but `good`.  1: *out; 0: not even that does. */
static int nearest(struct search *q, uint64_t bad, uint64_t good, uint64_t *out)
{
    int rc = does(q, good);
    while (rc > 0 && (bad > good ? bad - good : good - bad) > 1) {
        uint64_t half = bad > good ? good + (bad - good) / 2 : bad + (good - bad) / 2;
        int now = does(q, half);
        if (now < 0)
            return now;
        if (now)
            good = half;
        else
            bad = half;
    }
    *out = good * q->step;
    return rc;
}

/* ---- less of something ---- */

/* Which part of what is asked must go: the smaller the better. */
static bool is_smaller(const struct sched_change *a, const struct sched_change *b)
{
    if (!b->admits)
        return true;
    unsigned __int128 x = (unsigned __int128)(a->from - a->to) * b->from;
    unsigned __int128 y = (unsigned __int128)(b->from - b->to) * a->from;
    return x < y;
}

static int try_less(struct search *q, enum sched_change_kind kind, uint32_t group)
{
    struct sched_change *best = &q->t->x->change[kind];
    uint64_t from = q->small ? *q->small : *q->large;
    uint64_t units = from / q->step + (from % q->step != 0), to;
    struct sched_change c = { true, q->t->option, group, .from = from };
    if (units <= 1)
        return 0;
    int rc = nearest(q, units, 1, &to);
    c.to = to;
    if (q->small)
        *q->small = (uint32_t)from;
    else
        *q->large = from;
    if (rc > 0 && is_smaller(&c, best))
        *best = c;
    return rc < 0 ? rc : 0;
}

/* Is what is asked still a request with less of it? */
static bool is_tryable(const struct sched_option *o, uint32_t group,
                       enum sched_change_kind kind)
{
    const struct sched_group *g = &o->group[group];
    if (kind == SCHED_SMALLER_GANG) /* who lie beside each other are as many */
        return !g->beside && bundle_size(o, group) == 1;
    if (kind == SCHED_LESS_COMPUTE && g->split_least)
        return false;
    return g->ask.devices || kind > SCHED_SMALLER_GANG;
}

static int try_all_less(struct trial *t, uint32_t group)
{
    struct sched_group *g = &t->form->option[t->option].group[group];
    const struct {
        enum sched_change_kind kind;
        uint32_t *small;
        uint64_t *large;
    } parts[] = {
        { SCHED_LESS_MEMORY, .large = &g->ask.mem_bytes },
        { SCHED_LESS_COMPUTE, .small = &g->ask.permille },
        { SCHED_FEWER_DEVICES, .small = &g->ask.devices },
        { SCHED_SMALLER_GANG, .small = &g->count },
        { SCHED_LESS_CPU, .small = &g->ask.cpu_milli },
        { SCHED_LESS_HOST_MEMORY, .large = &g->ask.host_mem_bytes },
    };
    int rc = 0;
    for (size_t i = 0; i < ARRAY_LEN(parts) && !rc; i++) {
        struct search q = { t, parts[i].small, parts[i].large, parts[i].large ? MIB : 1 };
        if (is_tryable(&t->form->option[t->option], group, parts[i].kind))
            rc = try_less(&q, parts[i].kind, group);
    }
    return rc;
}

/* ---- something else ---- */

/* Keep the change if it admits, unless one of its kind is known. */
static int try_one(struct trial *t, enum sched_change_kind kind, struct sched_change c)
{
    struct sched_change *known = &t->x->change[kind];
    int rc = known->admits ? 0 : admits(t, NULL);
    c.admits = true;
    c.option = t->option;
    if (rc > 0)
        *known = c;
    return rc < 0 ? rc : 0;
}

static int try_models(struct trial *t, uint32_t group)
{
    struct pool_ask *a = &t->form->option[t->option].group[group].ask;
    uint64_t asked = a->models;
    int rc = 0;
    for (uint32_t m = 0; asked && m < POOL_MAX_MODELS && !rc; m++) {
        if (asked >> m & 1 || !(t->s->all_models >> m & 1))
            continue;
        a->models = asked | 1ull << m;
        rc = try_one(t, SCHED_OTHER_MODEL,
                     (struct sched_change){ .group = group, .model = m });
    }
    a->models = asked;
    return rc;
}

static int try_labels(struct trial *t, uint32_t group)
{
    struct pool_ask *a = &t->form->option[t->option].group[group].ask;
    int rc = 0;
    for (uint32_t l = 0; l < 64 * POOL_LABEL_WORDS && !rc; l++) {
        uint64_t *need = &a->need.bits[l / 64], *avoid = &a->avoid.bits[l / 64];
        uint64_t bit = 1ull << l % 64, had[2] = { *need, *avoid };
        if (!((*need | *avoid) & bit))
            continue;
        *need &= ~bit;
        *avoid &= ~bit;
        rc = try_one(t, SCHED_WITHOUT_LABEL,
                     (struct sched_change){ .group = group, .label = l });
        *need = had[0];
        *avoid = had[1];
    }
    return rc;
}

static int try_less_near(struct trial *t)
{
    struct sched_option *o = &t->form->option[t->option];
    if (!o->within_required)
        return 0;
    o->within_required = false;
    int rc = try_one(t, SCHED_LESS_NEAR, (struct sched_change){ 0 });
    o->within_required = true;
    return rc;
}

static int try_ties(struct trial *t)
{
    struct sched_ties *ties = &t->form->ties;
    int rc = 0;
    for (uint32_t i = 0; i < ties->tie_count && !rc; i++) {
        if (!ties->tie[i].required)
            continue;
        ties->tie[i].required = false;
        rc = try_one(t, SCHED_LESS_TIED, (struct sched_change){ .tag = ties->tie[i].tag });
        ties->tie[i].required = true;
    }
    return rc;
}

/* Each limit that there is, in the tenant and all above it, raised as little as will do. */
static int try_limits(struct trial *t)
{
    struct sched *s = t->s;
    struct sched_change *best = &t->x->change[SCHED_HIGHER_LIMIT];
    for (uint32_t id = t->r->tenant;; id = s->tenant[id].parent) {
        for (uint32_t m = 0; m < QUOTAS; m++) {
            uint64_t *limit = &s->tenant[id].limit_milli[m], had = *limit, to;
            struct search q = { t, .large = limit, .step = 1 };
            if (had == SCHED_NO_LIMIT)
                continue;
            int rc = nearest(&q, had, SCHED_NO_LIMIT - 1, &to);
            *limit = had;
            if (rc < 0)
                return rc;
            if (rc && (!best->admits || to - had < best->to - best->from))
                *best = (struct sched_change){ true,     t->option,    .from = had,
                                               .to = to, .tenant = id, .model = m };
        }
        if (id == SCHED_ROOT)
            return 0;
    }
}

/* Leases of which one's end would do; named is the one that holds least. */
static int try_leases(struct trial *t)
{
    struct sched *s = t->s;
    struct sched_change *c = &t->x->change[SCHED_A_LEASE_ENDS];
    uint32_t budget = LEASE_BUDGET, own = t->r->form->place_count[t->option];
    uint64_t least = 0;
    for (uint32_t id = 0; id < s->tenant_count && !c->more; id++)
        for (uint32_t i = 0; i < s->tenant[id].lease_count; i++) {
            const struct request *v = s->tenant[id].lease[i].r;
            c->more = v->place_count + own > budget;
            if (c->more)
                break;
            budget -= v->place_count + own;
            int rc = admits(t, v);
            if (rc < 0)
                return rc;
            if (!rc)
                continue;
            uint64_t price = request_price(s, v);
            if (!c->leases || price < least || (price == least && v->id < c->lease)) {
                least = price;
                c->lease = v->id;
            }
            c->leases++;
            c->admits = true;
            c->option = t->option;
        }
    return 0;
}

static int find_changes(struct trial *t)
{
    int rc = 0;
    for (t->option = 0; t->option < t->form->option_count && !rc; t->option++) {
        for (uint32_t g = 0; g < t->form->option[t->option].group_count && !rc; g++) {
            rc = try_all_less(t, g);
            if (!rc)
                rc = try_models(t, g);
            if (!rc)
                rc = try_labels(t, g);
        }
        if (!rc)
            rc = try_less_near(t);
        if (!rc)
            rc = try_ties(t);
        if (!rc)
            rc = try_limits(t);
        if (!rc && !t->x->change[SCHED_A_LEASE_ENDS].admits)
            rc = try_leases(t);
    }
    return rc;
}

/* ---- the limit in the way ---- */

static bool has_models(struct sched *s, const struct request *r,
                       const struct sched_option *o)
{
    uint32_t unused;
    return tenant_models(s, r->tenant, o, &unused) != 0;
}

/* Which limit of the tenant that bars it, and by how much it is too low. */
static void find_limit(struct sched *s, const struct request *r,
                       struct sched_explanation *x)
{
    struct tenant *t = &s->tenant[x->view.tenant];
    const struct sched_option *o = &r->form->option[x->view.option];
    x->limit_tenant = x->view.tenant;
    for (uint32_t m = 0; m < QUOTAS; m++) {
        uint64_t had = t->limit_milli[m], low = had, high = SCHED_NO_LIMIT - 1;
        if (had == SCHED_NO_LIMIT)
            continue;
        t->limit_milli[m] = high;
        bool helps = has_models(s, r, o);
        while (helps && high - low > 1) {
            t->limit_milli[m] = low + (high - low) / 2;
            *(has_models(s, r, o) ? &high : &low) = t->limit_milli[m];
        }
        t->limit_milli[m] = had;
        if (helps && (!x->short_milli || high - had < x->short_milli)) {
            x->limit_model = m;
            x->limit_milli = had;
            x->short_milli = high - had;
        }
    }
}

/* ---- all of it ---- */

static enum sched_tier tier_of(const struct sched_view *v)
{
    if (v->state == SCHED_RUNNING)
        return SCHED_RUNS;
    if (v->state == SCHED_LEAVING)
        return SCHED_GOES;
    if (v->verdict == SCHED_IMPOSSIBLE)
        return SCHED_MISCONFIGURED;
    return v->verdict == SCHED_OVER_LIMIT ? SCHED_BLOCKED : SCHED_WAITING;
}

int sched_explain(struct sched *s, uint64_t id, struct sched_explanation *out)
{
    struct request *r = request_by_id(s, id);
    int rc = 0;
    *out = (struct sched_explanation){ .id = id, .now_ms = s->now_ms };
    if (sched_find(s, id, &out->view))
        return -SL_NOT_FOUND;
    out->tier = tier_of(&out->view);
    out->start_ms = r->start_ms;
    out->by = r->by;
    out->rule = r->by_rule;
    out->place = r->by_place;
    out->among = r->by_among;
    if (r->state != SCHED_PENDING)
        return 0;
    const struct sched_group *g = &r->form->option[out->view.option].group[out->view.group];
    out->ask = g->ask;
    out->count = g->count;
    count_lacks(s, r, out);
    if (out->tier == SCHED_BLOCKED)
        find_limit(s, r, out);
    if (sched_estimate(s, id, &out->estimate_ms, &out->basis))
        return -SL_INTERNAL;
    size_t size = sizeof *r->form + r->form->option_count * sizeof r->form->option[0];
    struct trial t = { .s = s, .r = r, .form = malloc(size), .x = out };
    if (!t.form)
        return -SL_INTERNAL;
    memcpy(t.form, r->form, size);
    rc = find_changes(&t);
    free(t.form);
    return rc;
}
