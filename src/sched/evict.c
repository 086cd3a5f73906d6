/*
 * Eviction: who must give way, and waiting until they have.
 *
 * The search works on the one state: candidates go in their order until the whole request
 * may fit (relief.c), then it is placed, inside a try; of those that went, each that still
 * fits beside the request is put back.
 * Most searches are in vain.  The answer is kept, for all that ask at least as much of the
 * same candidates, until room comes free or a lease begins, or is old enough to go.
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
    uint32_t place;      /* in the order, from 1 */
};

/* ---- candidates ---- */

/* If not yet, its time is kept, to ask again then. */
static bool may_go(struct sched *s, const struct lease *v)
{
    if (v->goes_ms <= s->now_ms)
        return true;
    if (v->goes_ms < s->mature_ms)
        s->mature_ms = v->goes_ms;
    return false;
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
    bool by_service = s->policy.order != SCHED_BY_AGE;
    const struct tenant *t = &s->tenant[r->tenant];
    s->seek_steps -= t->lease_count / 8;
    for (uint32_t i = 0; i < t->lease_count; i++) {
        const struct lease *v = &t->lease[i];
        bool lower = v->priority < r->priority;
        if (v->goes_ms == UINT64_MAX || v->priority > r->priority ||
            (!lower && (!by_service || service_level(s, v->r) <= level)))
            continue;
        if (may_go(s, v) &&
            add_victim(s, count, v->r, lower ? SCHED_BY_PRIORITY : SCHED_BY_SERVICE, 0))
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
        const struct tenant *t = &s->tenant[id];
        if (!t->lease_count || !tenant_is_below(s, id, above) ||
            tenant_is_below(s, id, r->tenant) || tenant_is_below(s, r->tenant, id))
            continue;
        uint32_t top = below_common(s, id, r->tenant);
        uint64_t over = tenant_over(s, top, models);
        if (!over)
            continue;
        s->seek_steps -= t->lease_count / 8;
        for (uint32_t i = 0; i < t->lease_count; i++) {
            const struct lease *v = &t->lease[i];
            if ((v->models & models) && may_go(s, v) &&
                add_victim(s, count, v->r, SCHED_BY_RECLAIM, over))
                return -SL_INTERNAL;
        }
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

#define NEAR_ENOUGH  16 /* a sixteenth too many is soon put back */
#define CHANGE_STEPS 10 /* giving or taking a place, and finding one */

static struct request *lease_of(const struct sched *s, uint32_t i)
{
    return s->victim[i].r;
}

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
    while (i < v->place_count && tags_allow(s, v->form, &v->place[i]))
        i++;
    if (i < v->place_count)
        return false;
    i = 0;
    while (i < v->place_count && pool_place_fits(s->pool, option_ask(o, i), &v->place[i])) {
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
    s->seek_steps -=
        CHANGE_STEPS * (2 * places_of(s, count) + r->form->place_count[option]);
    try_undo(s);
    return rc;
}

/* The fewest of the order that suffice; 0: not even all do.  Where the bound is exact the
 * first try fits; else they are tried in growing numbers, then by halving. */
static int fewest(struct sched *s, const struct request *r, uint32_t option,
                  uint64_t models, uint32_t count, uint32_t *enough)
{
    uint32_t some = relief_needed(s, r->form, option, models, count, lease_of);
    int rc = -SL_NO_CAPACITY;
    *enough = 0;
    if (some > count)
        return 0;
    some = some ? some : 1;
    uint32_t too_few = some - 1;
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
    s->seek_steps -= CHANGE_STEPS * (3 * places + r->form->place_count[option]);
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
        claims_drop_at(s, r->place[i].node);
        h->nominee = r;
        h->waiting++;
        pool_set_open(s->pool, r->place[i].node, false);
    }
    r->missing = r->place_count;
}

static void tell_victims(struct sched *s, struct request *r, uint32_t count, uint32_t among)
{
    r->round = ++s->rounds;
    r->leaving = count;
    for (uint32_t i = 0; i < count; i++) {
        struct request *v = s->victim[i].r;
        v->state = SCHED_LEAVING;
        v->by = r->id;
        v->round = r->round;
        v->by_rule = s->victim[i].rule;
        v->by_place = s->victim[i].place;
        v->by_among = among;
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
    if (relief_needed(s, r->form, option, models, count, lease_of) > count)
        return 0; /* in any order */
    s->seek_steps -= 2 * count;
    if (count) /* nothing: no array */
        qsort(s->victim, count, sizeof *s->victim, compare_victims);
    if (count && s->victim[0].rule == SCHED_BY_RECLAIM)
        spare(s, r, &count);
    for (uint32_t i = 0; i < count; i++)
        s->victim[i].place = i + 1;
    int rc = fewest(s, r, option, models, count, &enough);
    if (rc || !enough)
        return rc;
    rc = trim(s, r, option, models, &enough);
    if (rc)
        return rc;
    if (decide_reserve(s, enough + 1) || request_hold(s, r, option, s->gang))
        return -SL_INTERNAL;
    tell_victims(s, r, enough, count);
    queue_leave(s, r);
    r->state = SCHED_NOMINATED;
    s->runs++; /* its tenant may be over what it deserves now */
    tenant_charge(s, r, true);
    tags_hold(s, r, true);
    tags_wake(s, r->form);
    calendar_occupy(s, r);
    hold_nodes(s, r);
    *nominated = true;
    for (uint32_t i = 0; i < enough; i++)
        queue_wake_limited(s, s->victim[i].r->tenant);
    return nomination_settle(s, r);
}

/* ---- answers ---- */

#define ANSWERS      64 /* a power of 2 */
#define ANSWER_WANTS 8

/* So many of this ask had no place even without all candidates. */
struct want {
    struct pool_ask ask;
    uint32_t count;
};

/* Of one set of candidates: the tenant's own, or those below `above`. */
struct answer {
    uint32_t tenant, priority, level, above;
    uint64_t models;
    uint64_t gains, runs; /* as of when */
    uint64_t until_ms;    /* before then nothing more may go */
    uint32_t count;       /* of wants that there is no place for */
    struct want want[ANSWER_WANTS];
};

int evict_create(struct sched *s)
{
    s->answer = calloc(ANSWERS, sizeof *s->answer);
    return s->answer ? 0 : -SL_INTERNAL;
}

void evict_destroy(struct sched *s)
{
    free(s->answer);
    free(s->victim);
}

static uint64_t runs_of(const struct sched *s, const struct request *r, uint32_t above)
{
    return above == r->tenant ? s->tenant[r->tenant].runs : s->runs;
}

/* The answers for these candidates, forgotten if they may be others by now. */
static struct answer *answers(struct sched *s, const struct request *r, uint32_t above,
                              uint64_t models)
{
    uint32_t level = service_level(s, r);
    uint64_t h = hash_mix(hash_mix(models, (uint64_t)r->tenant << 32 | above),
                          (uint64_t)r->priority << 32 | level);
    struct answer *a = &s->answer[h & (ANSWERS - 1)];
    if (a->tenant != r->tenant || a->priority != r->priority || a->level != level ||
        a->above != above || a->models != models || a->gains != s->gains ||
        a->runs != runs_of(s, r, above) || s->now_ms >= a->until_ms) {
        a->tenant = r->tenant;
        a->priority = r->priority;
        a->level = level;
        a->above = above;
        a->models = models;
        a->count = 0;
    }
    return a;
}

static bool labels_within(const struct pool_labels *a, const struct pool_labels *b)
{
    for (int i = 0; i < POOL_LABEL_WORDS; i++)
        if (a->bits[i] & ~b->bits[i])
            return false;
    return true;
}

/* Does b want all that a wants?  Devices that are cut need not have a small profile where
 * they have a large one: there only the same will do. */
static bool wants_as_much(const struct sched *s, const struct sched_group *b,
                          const struct want *a)
{
    const struct pool_ask *x = &a->ask, *y = &b->ask;
    bool cut = memchr(s->pool->cut_models, true, sizeof s->pool->cut_models);
    if (cut && (y->permille != x->permille || y->mem_bytes != x->mem_bytes))
        return false;
    return b->count >= a->count && y->devices >= x->devices && y->permille >= x->permille &&
           y->mem_bytes >= x->mem_bytes && y->cpu_milli >= x->cpu_milli &&
           y->host_mem_bytes >= x->host_mem_bytes && y->owner == x->owner &&
           (!x->models || (y->models && !(y->models & ~x->models))) &&
           (!x->sharing || (y->sharing && !(y->sharing & ~x->sharing))) &&
           labels_within(&x->need, &y->need) && labels_within(&x->avoid, &y->avoid);
}

static bool is_in_vain(const struct sched *s, const struct answer *a,
                       const struct sched_option *o)
{
    for (uint32_t g = 0; g < o->group_count; g++)
        for (uint32_t i = 0; i < a->count; i++)
            if (wants_as_much(s, &o->group[g], &a->want[i]))
                return true;
    return false;
}

static void note_vain(struct sched *s, struct answer *a, const struct request *r,
                      uint32_t above, const struct sched_option *o)
{
    /* of several groups it is not known which has no place; ties, a rack and a split bar more
     * than the ask says */
    if (o->group_count > 1 || r->form->tied || o->within_required ||
        o->group[0].split_least > 1)
        return;
    a->gains = s->gains;
    a->runs = runs_of(s, r, above);
    a->until_ms = s->policy.order == SCHED_BY_AGE ? s->mature_ms : s->now_ms + 1;
    a->want[a->count < ANSWER_WANTS ? a->count++ : ANSWER_WANTS - 1] =
        (struct want){ o->group[0].ask, o->group[0].count };
}

/* Among one set of candidates. */
static int evict_some(struct sched *s, struct request *r, uint32_t option, uint64_t models,
                      uint32_t above, bool *nominated)
{
    const struct sched_option *o = &r->form->option[option];
    struct answer *a = answers(s, r, above, models);
    uint32_t count = 0;
    s->seek_steps--;
    if (is_in_vain(s, a, o))
        return 0;
    s->mature_ms = UINT64_MAX;
    int rc = above == r->tenant ? gather_lower(s, r, &count)
                                : gather_over(s, r, above, models, &count);
    if (!rc && count)
        rc = evict(s, r, option, models, count, nominated);
    if (!rc && !*nominated)
        note_vain(s, a, r, above, o);
    return rc;
}

int evict_for(struct sched *s, struct request *r, uint32_t option, bool *nominated)
{
    uint32_t unused;
    if (option_is_lower(&r->form->option[option]))
        return 0;
    uint64_t limit = tenant_models(s, r->tenant, &r->form->option[option], &unused);
    claims_step_aside(s, r, false);
    int rc = limit ? evict_some(s, r, option, limit, r->tenant, nominated) : 0;
    if (!rc && !*nominated)
        claims_step_aside(s, r, true);
    for (uint32_t above = r->tenant; !rc && !*nominated && above != SCHED_ROOT;) {
        above = s->tenant[above].parent;
        uint64_t models = owed_models(s, r, option, limit, above);
        if (!models)
            break;
        rc = evict_some(s, r, option, models, above, nominated);
    }
    claims_step_back(s);
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
    s->gains++;
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
    request_run(s, r, s->now_ms);
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
    s->gains++;
    tenant_charge(s, r, false);
    tags_hold(s, r, false);
    calendar_vacate(s, r);
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
