/* Granting: all asks of an option find their place, or nothing is taken. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sched_impl.h"

const struct pool_ask *option_ask(const struct sched_option *o, uint32_t i)
{
    uint32_t g = 0;
    while (i >= o->group[g].count)
        i -= o->group[g++].count;
    return &o->group[g].ask;
}

bool group_ask(const struct sched *s, const struct sched_group *g, uint64_t models,
               struct pool_ask *out)
{
    *out = g->ask;
    if (!out->devices || (models & s->all_models) == s->all_models)
        return true;
    out->models = out->models ? out->models & models : models;
    return out->models != 0; /* else a limit bars all that this group could use */
}

/* One after the other, from s->gang[at] on.  Where one has no place, the first ones,
 * elsewhere, might have left room if they are tied. */
static int place_alike(struct sched *s, const struct form *f, const struct sched_option *o,
                       const struct pool_ask *a, uint32_t count,
                       const struct place_filter *filter, uint32_t at)
{
    for (uint32_t end = at + count; at < end; at++) {
        int rc = ask_find(s, f, a, filter, &s->gang[at]);
        if (rc == -SL_NO_CAPACITY && s->placing && !filter && !f->tied && !a->lower)
            rc = claims_find(s, o, a, at);
        if (rc) {
            s->unproven |= at && f->ties.tie_count;
            return rc;
        }
        try_take(s, f, a, &s->gang[at]);
    }
    return 0;
}

/* The i-th of each of n groups on one node. */
static int place_bundles(struct sched *s, const struct form *f, const struct pool_ask *ask,
                         uint32_t n, uint32_t count, const struct place_filter *filter,
                         struct pool_place *out)
{
    struct pool_place place[SCHED_MAX_GROUPS];
    for (uint32_t i = 0; i < count; i++) {
        int rc = bundle_find(s, f, ask, n, filter, place);
        if (rc) {
            s->unproven |= i != 0;
            return rc;
        }
        for (uint32_t k = 0; k < n; k++) {
            out[k * count + i] = place[k];
            try_take(s, f, &ask[k], &place[k]);
        }
    }
    return 0;
}

int gang_place_by(struct sched *s, const struct form *f, const struct sched_option *o,
                  const struct pool_ask *ask, const struct place_filter *filter,
                  uint32_t *group)
{
    uint32_t at = 0;
    for (uint32_t g = 0, n; g < o->group_count; g += n) {
        uint32_t count = o->group[g].count;
        int rc = 0;
        n = bundle_size(o, g);
        if (o->group[g].split_least)
            rc = split_place(s, f, &o->group[g], &ask[g], filter, &s->gang[at]);
        else if (n > 1)
            rc = place_bundles(s, f, &ask[g], n, count, filter, &s->gang[at]);
        else
            rc = place_alike(s, f, o, &ask[g], count, filter, at);
        if (rc) {
            *group = g;
            return rc;
        }
        at += n * count;
    }
    return 0;
}

int gang_place(struct sched *s, const struct form *f, uint32_t option, uint64_t models,
               uint32_t *group)
{
    const struct sched_option *o = &f->option[option];
    struct pool_ask ask[SCHED_MAX_GROUPS];
    for (uint32_t g = 0; g < o->group_count; g++) {
        if (!group_ask(s, &o->group[g], models, &ask[g])) {
            *group = g;
            return -SL_NO_CAPACITY;
        }
    }
    int rc = -SL_NO_CAPACITY;
    if (o->within)
        rc = within_place(s, f, o, ask, group);
    if (rc == -SL_NO_CAPACITY && !o->within_required)
        rc = gang_place_by(s, f, o, ask, NULL, group);
    if (!rc)
        sort_ranks(s, o, s->gang);
    return rc;
}

int decide_reserve(struct sched *s, uint32_t more)
{
    return array_reserve(&s->decision, &s->decision_room, s->decision_count + more,
                         sizeof *s->decision);
}

void decide_grant(struct sched *s, const struct request *r)
{
    s->decision[s->decision_count++] = (struct sched_decision){
        .kind = SCHED_GRANT,
        .id = r->id,
        .option = r->option,
        .place_count = r->place_count,
        .place = r->place,
    };
}

void request_run(struct sched *s, struct request *r, uint64_t start_ms)
{
    struct tenant *t = &s->tenant[r->tenant];
    s->runs++;
    t->runs++;
    r->state = SCHED_RUNNING;
    r->start_ms = start_ms;
    r->lease_at = t->lease_count++;
    assert(t->lease_count <= t->lease_room);
    t->lease[r->lease_at] = (struct lease){
        .r = r,
        .goes_ms = r->preemptible && !option_is_lower(&r->form->option[r->option]) &&
                           r->min_run_ms < UINT64_MAX - start_ms
                       ? start_ms + r->min_run_ms
                       : UINT64_MAX,
        .models = r->models,
        .priority = r->priority,
    };
}

void lease_changed(struct sched *s, const struct request *r)
{
    struct tenant *t = &s->tenant[r->tenant];
    s->runs++;
    t->runs++;
    t->lease[r->lease_at].priority = r->priority;
}

void request_stop(struct sched *s, struct request *r)
{
    struct tenant *t = &s->tenant[r->tenant];
    t->lease[r->lease_at] = t->lease[--t->lease_count];
    t->lease[r->lease_at].r->lease_at = r->lease_at;
}

int request_hold(const struct sched *s, struct request *r, uint32_t option,
                 const struct pool_place *place)
{
    uint32_t count = r->form->place_count[option], at = 0;
    uint64_t milli[POOL_MAX_MODELS];
    place_milli(s, r->form, option, place, milli);
    r->models = 0;
    for (uint32_t m = 0; m < POOL_MAX_MODELS; m++)
        if (milli[m])
            r->models |= 1ull << m;
    r->place = malloc(count * sizeof *place);
    r->taken = calloc(count, 1);
    r->milli = malloc((size_t)(__builtin_popcountll(r->models) + 1) * sizeof *r->milli);
    r->here = malloc(count * sizeof *r->here);
    if (!r->place || !r->taken || !r->milli || !r->here) {
        request_let_go(r);
        return -SL_INTERNAL;
    }
    for (uint32_t m = 0; m < POOL_MAX_MODELS; m++)
        if (milli[m])
            r->milli[at++] = milli[m];
    memcpy(r->place, place, count * sizeof *place);
    r->place_count = count;
    r->option = option;
    return 0;
}

void request_let_go(struct request *r)
{
    free(r->place);
    free(r->taken);
    free(r->milli);
    free(r->here);
    r->place = NULL;
    r->taken = NULL;
    r->milli = NULL;
    r->here = NULL;
    r->models = 0;
    r->place_count = 0;
}

/* Grant it now, on these models; -SL_NO_CAPACITY: *group has no place. */
static int grant(struct sched *s, struct request *r, uint32_t option, uint64_t models,
                 uint32_t *group)
{
    int rc = try_begin(s, r->form, option, r->form->place_count[option]);
    if (rc)
        return rc;
    rc = claim_take(s, r, option, models);
    if (rc == -SL_NO_CAPACITY) {
        s->placing = s->claim_count ? r : NULL;
        rc = gang_place(s, r->form, option, models, group);
        s->placing = NULL;
    }
    if (!rc)
        rc = request_hold(s, r, option, s->gang);
    if (!rc)
        rc = decide_reserve(s, 1);
    if (rc) {
        try_undo(s);
        request_let_go(r);
        return rc;
    }
    try_keep(s);
    queue_leave(s, r);
    calendar_occupy(s, r);
    memset(r->taken, 1, r->place_count);
    tenant_charge(s, r, true);
    request_run(s, r, s->now_ms);
    decide_grant(s, r);
    tags_wake(s, r->form);
    return 0;
}

/* 1 + the first group that could not run if all were empty, or 0. */
static uint32_t never_fits(struct sched *s, const struct form *f,
                           const struct sched_option *o)
{
    for (uint32_t g = 0; g < o->group_count; g++) {
        uint32_t n = 0, nodes = pool_node_count(s->pool);
        while (n < nodes && !pool_ask_possible(s->pool, &o->group[g].ask, n))
            n++;
        if (n == nodes)
            return g + 1;
    }
    uint32_t group = 0;
    bool possible = true;
    if (!split_possible(s, f, o, &group))
        return group + 1;
    /* without memory it is not said: it waits for room */
    if (o->within_required && within_possible(s, o, &possible, &group))
        possible = true;
    return possible ? 0 : group + 1;
}

/* Could each group of the option run if all were empty? */
static bool option_possible(struct sched *s, struct form *f, uint32_t option,
                            uint32_t *group)
{
    if (f->known_nodes != pool_node_count(s->pool)) {
        f->known_nodes = pool_node_count(s->pool);
        for (uint32_t i = 0; i < f->option_count; i++)
            f->impossible[i] = never_fits(s, f, &f->option[i]);
    }
    *group = f->impossible[option] ? f->impossible[option] - 1 : 0;
    return !f->impossible[option];
}

/* What stands in the way of one option. */
struct obstacle {
    enum sched_verdict verdict;
    uint32_t blocked_by, group;
};

static int try_option(struct sched *s, struct request *r, uint32_t option,
                      struct obstacle *why)
{
    uint64_t models =
        tenant_models(s, r->tenant, &r->form->option[option], &why->blocked_by);
    int rc;
    if (!models) {
        why->verdict = option_possible(s, r->form, option, &why->group) ? SCHED_OVER_LIMIT
                                                                        : SCHED_IMPOSSIBLE;
        return -SL_NO_CAPACITY;
    }
    rc = grant(s, r, option, models, &why->group);
    if (rc != -SL_NO_CAPACITY)
        return rc;
    uint32_t never;
    if (option_possible(s, r->form, option, &never)) {
        why->verdict = SCHED_NO_ROOM;
    } else {
        why->verdict = SCHED_IMPOSSIBLE;
        why->group = never;
    }
    return rc;
}

/* The best news of all options: what waits for room is closer than what waits for a quota,
 * and that closer than what can never be. */
static bool better_news(enum sched_verdict a, enum sched_verdict b)
{
    return a > b;
}

int line_try(struct sched *s, struct line *l)
{
    struct request *r = l->head;
    s->unproven = false;
    struct obstacle why[SCHED_MAX_OPTIONS] = { 0 };
    uint32_t best = 0;
    for (uint32_t i = 0; i < r->form->option_count; i++) {
        int rc = try_option(s, r, i, &why[i]);
        if (rc != -SL_NO_CAPACITY)
            return rc;
        if (better_news(why[i].verdict, why[best].verdict))
            best = i;
    }
    l->verdict = why[best].verdict;
    l->blocked_by = why[best].blocked_by;
    for (uint32_t i = 0; i < r->form->option_count; i++)
        if (l->blocked_by == TENANT_NONE || why[i].blocked_by == SCHED_ROOT)
            l->blocked_by = why[i].blocked_by;
    l->option = best;
    l->group = why[best].group;
    l->unproven = s->unproven;
    if (l->verdict != SCHED_NO_ROOM)
        claim_drop(s, l);
    line_park(s, l);
    return 0;
}

int line_search(struct sched *s, struct line *l)
{
    struct request *r = l->head;
    s->unproven = false;
    for (uint32_t i = 0; i < r->form->option_count; i++) {
        bool nominated = false;
        uint32_t never;
        if (!option_possible(s, r->form, i, &never))
            continue;
        int rc = evict_for(s, r, i, &nominated);
        if (rc || nominated)
            return rc;
    }
    l->unproven |= s->unproven;
    line_searched(s, l);
    return 0;
}
