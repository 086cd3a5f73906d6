/* The scheduler core: events in, one after the other; then whoever is next, until nobody can. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sched_impl.h"

#define HALF_LIFE_MS (7ull * 24 * 3600 * 1000)
#define PROTECT      8
#define PATIENCE_MS  (15ull * 60 * 1000)

void sched_policy_init(struct sched_policy *policy)
{
    *policy = (struct sched_policy){ .half_life_ms = HALF_LIFE_MS,
                                     .tenancy = POOL_ISOLATED,
                                     .protect = PROTECT,
                                     .patience_ms = PATIENCE_MS };
    place_policy_init(&policy->place);
}

int sched_create(const struct sched_policy *policy, struct sched **out, struct sl_err *err)
{
    struct sched *s = calloc(1, sizeof *s);
    if (!s)
        return sl_fail(err, SL_INTERNAL, "scheduler: out of memory");
    s->policy = *policy;
    if (!s->policy.half_life_ms)
        s->policy.half_life_ms = HALF_LIFE_MS;
    if (s->policy.order != SCHED_BY_AGE)
        s->policy.patience_ms = 0; /* who is next changes as others run */
    if (s->policy.protect > SCHED_MAX_PROTECT)
        s->policy.protect = SCHED_MAX_PROTECT;
    s->tenant = calloc(SCHED_MAX_TENANTS, sizeof *s->tenant);
    s->gang = calloc(SCHED_MAX_GANG, sizeof *s->gang);
    if (!s->tenant || !s->gang || queue_create(s) || learn_create(s) || evict_create(s) ||
        pool_create(&s->pool, err) ||
        placer_create(s->pool, &s->policy.place, &s->placer, err)) {
        sched_destroy(s);
        return sl_fail(err, SL_INTERNAL, "scheduler: out of memory");
    }
    pool_set_tenancy(s->pool, s->policy.tenancy);
    s->tenant[SCHED_ROOT].exists = true;
    s->tenant_count = 1;
    for (uint32_t q = 0; q < QUOTAS; q++)
        s->tenant[SCHED_ROOT].limit_milli[q] = SCHED_NO_LIMIT;
    for (uint32_t m = 0; m < POOL_MAX_MODELS; m++) {
        s->price_permille[m] = 1000;
        s->least_mem[m] = UINT64_MAX;
    }
    *out = s;
    return 0;
}

void sched_destroy(struct sched *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->tenant_count; i++) {
        for (int t = 0; t < TURNS; t++)
            free(s->tenant[i].turn[t].line);
        free(s->tenant[i].lease);
    }
    claims_finish(s);
    queue_destroy(s);
    learn_destroy(s);
    evict_destroy(s);
    placer_destroy(s->placer);
    pool_destroy(s->pool);
    free(s->tenant);
    free(s->gang);
    free(s->hold);
    free(s->candidate);
    tags_finish(&s->tags);
    free(s->decision);
    free(s);
}

/* ---- events ---- */

static int add_node(struct sched *s, const struct pool_node *n, struct sl_err *err)
{
    uint32_t node;
    if (array_reserve(&s->hold, &s->hold_room, pool_node_count(s->pool) + 1,
                      sizeof *s->hold))
        return sl_fail(err, SL_INTERNAL, "scheduler: out of memory");
    int rc = pool_add_node(s->pool, n, &node, err);
    if (rc)
        return rc;
    s->hold[node] = (struct node_hold){ 0 };
    s->gains++;
    for (uint32_t i = 0; i < n->device_count; i++) {
        const struct pool_device *d = &n->device[i];
        s->all_models |= 1ull << d->model;
        if (d->mem_bytes < s->least_mem[d->model])
            s->least_mem[d->model] = d->mem_bytes;
    }
    queue_wake_impossible(s);
    queue_wake_node(s, node);
    return 0;
}

static int open_node(struct sched *s, uint32_t node, bool open, struct sl_err *err)
{
    if (node >= pool_node_count(s->pool))
        return sl_fail(err, SL_NOT_FOUND, "no node %u", node);
    struct node_hold *h = &s->hold[node];
    if (h->nominee && !open && queue_prepare(s, h->nominee))
        return sl_fail(err, SL_INTERNAL, "scheduler: out of memory");
    if (!open)
        claims_drop_at(s, node);
    h->closed = !open;
    s->gains++;
    if (h->nominee && !open) {
        struct request *r = h->nominee;
        nomination_drop(s, r);
        queue_wake_limited(s, r->tenant);
        queue_return(s, r);
        return 0;
    }
    if (h->nominee || h->claim)
        return 0;
    pool_set_open(s->pool, node, open);
    if (open)
        queue_wake_node(s, node);
    return 0;
}

/* Its places are free again: for whom it left, for whoever waits on these nodes, for all. */
static int give_back(struct sched *s, struct request *r)
{
    int rc = 0;
    s->gains++;
    calendar_vacate(s, r);
    for (uint32_t i = 0; i < r->place_count; i++)
        pool_give(s->pool, option_ask(&r->form->option[r->option], i), &r->place[i]);
    tags_hold(s, r, false);
    for (uint32_t i = 0; i < r->place_count; i++) {
        struct request *waits = s->hold[r->place[i].node].nominee;
        if (waits && !rc)
            rc = nomination_settle(s, waits);
        queue_wake_node(s, r->place[i].node);
    }
    tags_wake(s, r->form);
    queue_wake_limited(s, r->tenant);
    return rc;
}

static int end(struct sched *s, uint64_t id, struct sl_err *err)
{
    struct request *r = request_by_id(s, id);
    int rc = 0;
    if (!r)
        return sl_fail(err, SL_NOT_FOUND, "no request of this id");
    switch (r->state) {
    case SCHED_PENDING:
        queue_leave(s, r);
        break;
    case SCHED_NOMINATED:
        nomination_drop(s, r);
        queue_wake_limited(s, r->tenant);
        break;
    case SCHED_RUNNING:
        request_stop(s, r);
        tenant_charge(s, r, false);
        rc = give_back(s, r);
        break;
    case SCHED_LEAVING:
        rc = give_back(s, r);
        if (!rc)
            rc = nomination_left(s, r);
        break;
    }
    request_forget(s, r);
    return rc;
}

static int set_price(struct sched *s, const struct sched_price *p, struct sl_err *err)
{
    if (p->model >= POOL_MAX_MODELS)
        return sl_fail(err, SL_INVALID, "price: models are below %d", POOL_MAX_MODELS);
    if (s->tenant[SCHED_ROOT].held_milli[p->model])
        return sl_fail(err, SL_CONFLICT, "price: set it before anything of it is granted");
    s->price_permille[p->model] = p->permille;
    return 0;
}

static int take_event(struct sched *s, const struct sched_event *e, struct sl_err *err)
{
    int rc;
    switch (e->kind) {
    case SCHED_ADD_NODE:
        return add_node(s, &e->node, err);
    case SCHED_OPEN_NODE:
        return open_node(s, e->open.node, e->open.open, err);
    case SCHED_SET_TENANT:
        return tenant_set(s, &e->tenant, err);
    case SCHED_SET_QUOTA:
        return tenant_set_quota(s, &e->quota, err);
    case SCHED_SET_PRICE:
        return set_price(s, &e->price, err);
    case SCHED_SUBMIT:
        rc = queue_submit(s, &e->submit, err);
        if (!rc)
            learn(s, &e->submit);
        return rc;
    case SCHED_RESTORE:
        rc = restore(s, &e->restore, err);
        if (!rc)
            learn(s, &e->restore.request);
        return rc;
    case SCHED_END:
        return end(s, e->end, err);
    case SCHED_SET_PROFILES:
        return pool_set_profiles(s->pool, e->profiles.model, &e->profiles.profiles, err);
    case SCHED_SET_PRIORITY:
        return queue_set_priority(s, &e->priority, err);
    case SCHED_TICK:
        rc = claims_tick(s);
        queue_seek_again(s);
        return rc;
    }
    return sl_fail(err, SL_INVALID, "no such event");
}

int sched_apply(struct sched *s, const struct sched_event *e,
                const struct sched_decision **decisions, uint32_t *count,
                struct sl_err *err)
{
    struct line *l;
    s->decision_count = 0;
    *decisions = NULL;
    *count = 0;
    if (e->now_ms < s->now_ms)
        return sl_fail(err, SL_INVALID, "time goes back");
    s->now_ms = e->now_ms;
    s->seek_steps = s->seek_steps < 0 ? s->seek_steps + SEARCH_STEPS : SEARCH_STEPS;
    int rc = take_event(s, e, err);
    while (!rc)
        if ((l = tenant_next(s, TURN_TRY)))
            rc = line_try(s, l);
        else if (s->seek_steps > 0 && (l = tenant_next(s, TURN_SEARCH)))
            rc = line_search(s, l);
        else
            break;
    *decisions = s->decision;
    *count = s->decision_count;
    return rc;
}

/* ---- looking ---- */

int sched_find(const struct sched *s, uint64_t id, struct sched_view *out)
{
    const struct request *r = request_by_id(s, id);
    if (!r)
        return -SL_NOT_FOUND;
    *out = (struct sched_view){ .state = r->state,
                                .option = r->option,
                                .place_count = r->place_count,
                                .place = r->place };
    if ((r->state == SCHED_RUNNING || r->state == SCHED_LEAVING) && r->limit_ms)
        out->end_ms = calendar_bound(r);
    if (r->state == SCHED_NOMINATED)
        out->verdict = SCHED_BEING_MADE;
    if (r->state == SCHED_PENDING) {
        out->verdict = r->line->verdict;
        out->tenant = out->verdict == SCHED_OVER_LIMIT ? r->line->blocked_by : 0;
        out->option = r->line->option;
        out->group = r->line->group;
        out->unproven = r->line->unproven;
        if (r->line->claim && r == r->line->head) {
            out->start_ms = r->line->claim->start_ms;
            out->basis = r->line->claim->basis;
        }
    }
    return 0;
}

int sched_estimate(struct sched *s, uint64_t id, uint64_t *start_ms,
                   enum sched_basis *basis)
{
    const struct request *r = request_by_id(s, id);
    if (!r)
        return -SL_NOT_FOUND;
    if (r->state == SCHED_PENDING)
        return claim_estimate(s, r->line, start_ms, basis);
    *start_ms = r->state == SCHED_NOMINATED ? 0 : r->start_ms;
    *basis = r->state == SCHED_NOMINATED ? SCHED_BASIS_NONE : SCHED_BASIS_NOW;
    return 0;
}

const struct pool *sched_pool(const struct sched *s)
{
    return s->pool;
}

uint64_t sched_held_milli(const struct sched *s, uint32_t tenant, uint32_t model)
{
    return s->tenant[tenant].held_milli[model];
}

/* ---- the invariants ---- */

static void check_request(const struct sched *s, const struct request *r,
                          uint64_t (*sum)[QUOTAS])
{
    uint64_t milli[POOL_MAX_MODELS];
    uint32_t taken = 0;
    assert((r->state == SCHED_PENDING) == (r->line != NULL));
    if (r->state == SCHED_PENDING)
        return;
    for (uint32_t i = 0; i < r->place_count; i++)
        taken += r->taken[i];
    assert(r->missing + taken == r->place_count);
    assert((r->state == SCHED_NOMINATED) == (r->missing != 0));
    const struct sched_option *o = &r->form->option[r->option];
    assert(!o->within_required || r->restored ||
           within_holds(s, o->within, r->place, r->place_count));
    if (r->state == SCHED_LEAVING)
        return;
    place_milli(s, r->form, r->option, r->place, milli);
    for (uint32_t id = r->tenant;; id = s->tenant[id].parent) {
        for (uint32_t m = 0; m < POOL_MAX_MODELS; m++)
            sum[id][m] += milli[m];
        sum[id][SCHED_ALL_MODELS] += request_price(s, r);
        if (id == SCHED_ROOT)
            return;
    }
}

/* Who waits for room and was not searched for has its turn, and nobody else. */
static void check_parked(const struct sched *s)
{
    uint32_t seek = 0;
    for (const struct line *l = s->parked; l; l = l->parked_next) {
        assert(l->turn_at[TURN_TRY] == TURN_NOT);
        assert((l->turn_at[TURN_SEARCH] == TURN_NOT) == l->searched);
        assert(l->searched || l->verdict == SCHED_NO_ROOM);
        seek += !l->searched;
    }
    assert(seek == s->tenant[SCHED_ROOT].turns_below[TURN_SEARCH]);
}

void sched_check(const struct sched *s)
{
    uint64_t(*sum)[QUOTAS] = calloc(s->tenant_count, sizeof *sum);
    if (!sum) /* no memory to look with */
        return;
    pool_check(s->pool);
    tally_check(s);
    tags_check(s);
    claims_check(s);
    for (uint32_t i = 0; i <= s->request_mask; i++)
        for (const struct request *r = s->request[i]; r; r = r->chain)
            check_request(s, r, sum);
    for (uint32_t i = 0; i < s->tenant_count; i++)
        assert(!memcmp(sum[i], s->tenant[i].held_milli, sizeof sum[i]));
    for (uint32_t i = 0; i < s->tenant_count; i++)
        for (uint32_t q = 0; q < QUOTAS; q++)
            assert(s->tenant[i].limit_milli[q] >= s->tenant[i].deserved_milli[q]);
    assert(!s->tenant[SCHED_ROOT].turns_below[TURN_TRY]);
    check_parked(s);
    free(sum);
}
