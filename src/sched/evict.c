/*
 * Eviction: who must give way, and waiting until they have.
 *
 * The search works on the one state, inside a try: candidates go, more and more in their
 * order, until the whole request fits; the shortest beginning that suffices is sought by
 * halving; of those, each that still fits beside the request is put back.
 * The request is then nominated: its nodes take nothing else until what it waits for
 * has gone, so that no other can slip in.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sched_impl.h"

struct victim {
    struct request *r;
    uint64_t age; /* of it, here for the sort */
    uint32_t priority;
    bool gang;
    enum sched_rule rule;
    uint32_t level;      /* of its service */
    uint64_t over_milli; /* how far its tenant is above what it deserves */
    uint64_t lost;       /* work: milli-devices x milliseconds */
};

/* ---- candidates ---- */

static bool may_go(const struct sched *s, const struct request *v)
{
    return v->preemptible && !option_is_lower(&v->form->option[v->option]) &&
           s->now_ms - v->start_ms >= v->min_run_ms;
}

static uint64_t held_of(const struct request *v)
{
    uint64_t sum = 0;
    for (int i = __builtin_popcountll(v->models); i-- > 0;)
        sum += v->milli[i];
    return sum;
}

static int add_victim(struct sched *s, uint32_t *count, struct request *v,
                      enum sched_rule rule, uint64_t over_milli)
{
    if (array_reserve(&s->victim, &s->victim_room, *count + 1, sizeof *s->victim))
        return -SL_INTERNAL;
    s->victim[(*count)++] = (struct victim){
        .r = v,
        .age = v->age,
        .priority = v->priority,
        .gang = v->place_count > 1,
        .rule = rule,
        .level = rule == SCHED_BY_RECLAIM ? 0 : service_level(s, v),
        .over_milli = over_milli,
        .lost = held_of(v) * (s->now_ms - v->start_ms),
    };
    return 0;
}

/* Fewest gangs broken, lowest priority, last in the order of service, largest over-share,
 * least work lost, youngest. */
static int compare_victims(const void *x, const void *y)
{
    const struct victim *a = x, *b = y;
    if (a->gang != b->gang)
        return a->gang - b->gang;
    if (a->priority != b->priority)
        return a->priority < b->priority ? -1 : 1;
    if (a->level != b->level)
        return a->level > b->level ? -1 : 1;
    if (a->over_milli != b->over_milli)
        return a->over_milli > b->over_milli ? -1 : 1;
    if (a->lost != b->lost)
        return a->lost < b->lost ? -1 : 1;
    return a->age > b->age ? -1 : 1;
}

/* Leases of the same tenant that matter less, or come later in the order of service. */
static int gather_lower(struct sched *s, const struct request *r, uint32_t *count)
{
    uint32_t level = service_level(s, r);
    for (struct request *v = s->tenant[r->tenant].leases; v; v = v->next) {
        bool lower = v->priority < r->priority;
        if (!lower && (v->priority > r->priority || service_level(s, v) <= level))
            continue;
        if (may_go(s, v) &&
            add_victim(s, count, v, lower ? SCHED_BY_PRIORITY : SCHED_BY_SERVICE, 0))
            return -SL_INTERNAL;
    }
    return 0;
}

/* The last of the tenants from `tenant` up that is not above `other`. */
static uint32_t below_common(const struct sched *s, uint32_t tenant, uint32_t other)
{
    while (!tenant_is_below(s, other, s->tenant[tenant].parent))
        tenant = s->tenant[tenant].parent;
    return tenant;
}

/* Of these models, those of which all tenants from the request's up to below `above` would
 * hold no more than they deserve, however the option is spread over them. */
static uint64_t owed_models(const struct sched *s, const struct request *r, uint32_t option,
                            uint64_t models, uint32_t above)
{
    for (uint32_t id = r->tenant; models && id != above; id = s->tenant[id].parent)
        models = tenant_owed_models(s, id, &r->form->option[option], models);
    return models;
}

/* Would each tenant from the lease's up to `top` still hold what it deserves without
 * it?  Then it counts as gone. */
static bool would_spare(const struct sched *s, const struct request *v, uint32_t top)
{
    for (uint32_t id = v->tenant;; id = s->tenant[id].parent) {
        if (!tenant_can_spare(s, id, v))
            return false;
        if (id == top)
            return true;
    }
}

/* Leases of tenants below `above` that hold more than they deserve. */
static int gather_over(struct sched *s, const struct request *r, uint32_t above,
                       uint64_t models, uint32_t *count)
{
    for (uint32_t id = 1; id < s->tenant_count; id++) {
        if (!s->tenant[id].leases || !tenant_is_below(s, id, above) ||
            tenant_is_below(s, id, r->tenant) || tenant_is_below(s, r->tenant, id))
            continue;
        uint32_t top = below_common(s, id, r->tenant);
        uint64_t over = tenant_over(s, top, models);
        if (!over)
            continue;
        for (struct request *v = s->tenant[id].leases; v; v = v->next)
            if (may_go(s, v) && (v->models & models) &&
                add_victim(s, count, v, SCHED_BY_RECLAIM, over))
                return -SL_INTERNAL;
    }
    return 0;
}

/* Drop those whose tenant would fall below what it deserves; who goes earlier in the order
 * counts as gone for the others. */
static void spare(struct sched *s, const struct request *r, uint32_t *count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *count; i++) {
        struct victim *v = &s->victim[i];
        if (!would_spare(s, v->r, below_common(s, v->r->tenant, r->tenant)))
            continue;
        tenant_count(s, v->r, false);
        s->victim[kept++] = *v;
    }
    for (uint32_t i = 0; i < kept; i++)
        tenant_count(s, s->victim[i].r, true);
    *count = kept;
}

/* ---- the search ---- */

#define NEAR_ENOUGH 16 /* a sixteenth too many is soon put back */

static void give_all(struct sched *s, const struct request *v)
{
    for (uint32_t i = 0; i < v->place_count; i++)
        try_give(s, v->form, option_ask(&v->form->option[v->option], i), &v->place[i]);
}

/* Take all its places again, or none. */
static bool take_again(struct sched *s, const struct request *v)
{
    const struct sched_option *o = &v->form->option[v->option];
    uint32_t i = 0;
    while (i < v->place_count && pool_place_fits(s->pool, option_ask(o, i), &v->place[i]) &&
           tags_allow(s, v->form, &v->place[i])) {
        try_take(s, v->form, option_ask(o, i), &v->place[i]);
        i++;
    }
    if (i == v->place_count)
        return true;
    while (i--)
        try_give(s, v->form, option_ask(o, i), &v->place[i]);
    return false;
}

static uint32_t places_of(const struct sched *s, uint32_t count)
{
    uint32_t places = 0;
    for (uint32_t i = 0; i < count; i++)
        places += s->victim[i].r->place_count;
    return places;
}

/* Inside a try: the first `count` victims go, the option is placed. */
static int place_without(struct sched *s, const struct request *r, uint32_t option,
                         uint64_t models, uint32_t count)
{
    uint32_t group;
    for (uint32_t i = 0; i < count; i++)
        give_all(s, s->victim[i].r);
    return gang_place(s, r->form, option, models, &group);
}

static int fits_without(struct sched *s, const struct request *r, uint32_t option,
                        uint64_t models, uint32_t count)
{
    int rc =
        try_begin(s, r->form, option, places_of(s, count) + r->form->place_count[option]);
    if (rc)
        return rc;
    rc = place_without(s, r, option, models, count);
    try_undo(s);
    return rc;
}

/* The fewest of the order that suffice; 0: not even all do.  Tried in growing numbers, as
 * giving back is what costs; then by halving. */
static int fewest(struct sched *s, const struct request *r, uint32_t option,
                  uint64_t models, uint32_t count, uint32_t *enough)
{
    uint32_t too_few = 0, some = r->form->place_count[option];
    int rc = -SL_NO_CAPACITY;
    *enough = 0;
    while (rc == -SL_NO_CAPACITY && too_few < count) {
        some = some < count ? some : count;
        rc = fits_without(s, r, option, models, some);
        if (rc == -SL_NO_CAPACITY) {
            too_few = some;
            some *= 4;
        }
    }
    if (rc)
        return rc == -SL_NO_CAPACITY ? 0 : rc;
    *enough = some;
    while (*enough - too_few > 1 && *enough - too_few > *enough / NEAR_ENOUGH) {
        uint32_t half = too_few + (*enough - too_few) / 2;
        rc = fits_without(s, r, option, models, half);
        if (rc == -SL_NO_CAPACITY)
            too_few = half;
        else if (rc)
            return rc;
        else
            *enough = half;
    }
    return 0;
}

/* Put back who can stay beside the request, the last in the order first; the places of
 * the request are in s->gang. */
static int trim(struct sched *s, const struct request *r, uint32_t option, uint64_t models,
                uint32_t *count)
{
    uint32_t places = places_of(s, *count);
    int rc = try_begin(s, r->form, option, 3 * places + r->form->place_count[option]);
    if (rc)
        return rc;
    rc = place_without(s, r, option, models, *count);
    assert(!rc);
    for (uint32_t i = *count; i-- > 0;)
        s->victim[i].r->chosen = !take_again(s, s->victim[i].r);
    try_undo(s);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *count; i++)
        if (s->victim[i].r->chosen)
            s->victim[kept++] = s->victim[i];
    *count = kept;
    return 0;
}

static void hold_nodes(struct sched *s, struct request *r)
{
    for (uint32_t i = 0; i < r->place_count; i++) {
        struct node_hold *h = &s->hold[r->place[i].node];
        h->nominee = r;
        h->waiting++;
        pool_set_open(s->pool, r->place[i].node, false);
    }
    r->missing = r->place_count;
}

static void tell_victims(struct sched *s, struct request *r, uint32_t count)
{
    r->round = ++s->rounds;
    r->leaving = count;
    for (uint32_t i = 0; i < count; i++) {
        struct request *v = s->victim[i].r;
        v->state = SCHED_LEAVING;
        v->by = r->id;
        v->round = r->round;
        request_stop(s, v);
        tenant_charge(s, v, false);
        s->decision[s->decision_count++] = (struct sched_decision){
            .kind = SCHED_EVICT, .id = v->id, .by = r->id, .rule = s->victim[i].rule
        };
    }
}

static int evict(struct sched *s, struct request *r, uint32_t option, uint64_t models,
                 uint32_t count, bool *nominated)
{
    uint32_t enough;
    qsort(s->victim, count, sizeof *s->victim, compare_victims);
    if (count && s->victim[0].rule == SCHED_BY_RECLAIM)
        spare(s, r, &count);
    int rc = fewest(s, r, option, models, count, &enough);
    if (rc || !enough)
        return rc;
    rc = trim(s, r, option, models, &enough);
    if (rc)
        return rc;
    if (decide_reserve(s, enough + 1) || request_hold(s, r, option, s->gang))
        return -SL_INTERNAL;
    tell_victims(s, r, enough);
    queue_leave(s, r);
    r->state = SCHED_NOMINATED;
    tenant_charge(s, r, true);
    tags_hold(s, r, true);
    tags_wake(s, r->form);
    hold_nodes(s, r);
    *nominated = true;
    for (uint32_t i = 0; i < enough; i++)
        queue_wake_limited(s, s->victim[i].r->tenant);
    return nomination_settle(s, r);
}

int evict_for(struct sched *s, struct request *r, uint32_t option, bool *nominated)
{
    uint32_t count = 0, unused;
    if (option_is_lower(&r->form->option[option]))
        return 0;
    uint64_t limit = tenant_models(s, r->tenant, &r->form->option[option], &unused);
    int rc = gather_lower(s, r, &count);
    if (!rc && count)
        rc = evict(s, r, option, limit, count, nominated);
    for (uint32_t above = r->tenant; !rc && !*nominated && above != SCHED_ROOT;) {
        above = s->tenant[above].parent;
        uint64_t models = owed_models(s, r, option, limit, above);
        if (!models)
            break;
        count = 0;
        rc = gather_over(s, r, above, models, &count);
        if (!rc && count)
            rc = evict(s, r, option, models, count, nominated);
    }
    return rc;
}

/* ---- nominated ---- */

static void release_node(struct sched *s, uint32_t node)
{
    struct node_hold *h = &s->hold[node];
    if (--h->waiting)
        return;
    h->nominee = NULL;
    if (h->closed)
        return;
    pool_set_open(s->pool, node, true);
    queue_wake_node(s, node);
}

int nomination_settle(struct sched *s, struct request *r)
{
    /* who is tied to others waits for all that it makes go */
    if (r->form->tied && r->leaving)
        return 0;
    if (decide_reserve(s, 1))
        return -SL_INTERNAL;
    for (uint32_t i = 0; i < r->place_count; i++) {
        const struct pool_ask *a = option_ask(&r->form->option[r->option], i);
        if (r->taken[i] || !pool_place_fits(s->pool, a, &r->place[i]))
            continue;
        pool_take(s->pool, a, &r->place[i]);
        r->taken[i] = 1;
        r->missing--;
        release_node(s, r->place[i].node);
    }
    if (r->missing)
        return 0;
    request_run(s, r);
    decide_grant(s, r);
    return 0;
}

int nomination_left(struct sched *s, const struct request *v)
{
    struct request *r = request_by_id(s, v->by);
    if (!r || r->state != SCHED_NOMINATED || r->round != v->round)
        return 0;
    r->leaving--;
    return r->form->tied ? nomination_settle(s, r) : 0;
}

void nomination_drop(struct sched *s, struct request *r)
{
    tenant_charge(s, r, false);
    tags_hold(s, r, false);
    for (uint32_t i = 0; i < r->place_count; i++) {
        if (r->taken[i])
            pool_give(s->pool, option_ask(&r->form->option[r->option], i), &r->place[i]);
        else
            release_node(s, r->place[i].node);
    }
    for (uint32_t i = 0; i < r->place_count; i++)
        if (r->taken[i])
            queue_wake_node(s, r->place[i].node);
    tags_wake(s, r->form);
    request_let_go(r);
    r->missing = 0;
}
