/*
 * Claims: who has waited too long for room gets a planned place.
 *
 * A claim is places and a start: where what runs now will have ended first.  Its nodes leave
 * the classes.  They take new work only if that is gone before the claim begins, or leaves
 * what the claim needs (calendar.c): the few claimed nodes are looked at one by one, and
 * nobody else pays.  Claims respect each other whatever their order, so a start that rests
 * on limits is kept; a better place replaces one that is worse.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "device.h"
#include "sched_impl.h"

#define TICK_STEPS 50000 /* places given back to search, at one tick */

static struct wanted wanted_of(const struct claim *c)
{
    return (struct wanted){ &c->line->form->option[c->option], c->place, c->place_count, c,
                            CLAIMS_PLANNED };
}

static uint64_t lasts(const struct request *r)
{
    return r->limit_ms ? r->limit_ms : UINT64_MAX;
}

/* ---- recording ---- */

static void claim_free(struct claim *c)
{
    if (!c)
        return;
    free(c->place);
    free(c->here);
    free(c);
}

static struct claim *claim_new(struct line *l, uint32_t option,
                               const struct pool_place *place)
{
    struct claim *c = calloc(1, sizeof *c);
    uint32_t count = l->form->place_count[option];
    if (!c)
        return NULL;
    *c = (struct claim){ .line = l, .option = option, .place_count = count };
    c->place = malloc(count * sizeof *c->place);
    c->here = malloc(count * sizeof *c->here);
    if (!c->place || !c->here) {
        claim_free(c);
        return NULL;
    }
    memcpy(c->place, place, count * sizeof *c->place);
    return c;
}

static void attach(struct sched *s, struct claim *c, uint32_t at)
{
    calendar_enter(s, c);
    for (uint32_t i = 0; i < c->place_count; i++)
        pool_set_open(s->pool, c->place[i].node, false);
    memmove(&s->claim[at + 1], &s->claim[at], (s->claim_count - at) * sizeof s->claim[0]);
    s->claim[at] = c;
    s->claim_count++;
    c->line->claim = c;
}

/* Its nodes may be tried as any again, if nobody else has them. */
static uint32_t detach(struct sched *s, struct claim *c)
{
    uint32_t at = 0;
    while (s->claim[at] != c)
        at++;
    s->claim_count--;
    s->gains++;
    memmove(&s->claim[at], &s->claim[at + 1], (s->claim_count - at) * sizeof s->claim[0]);
    calendar_leave(s, c);
    c->line->claim = NULL;
    for (uint32_t i = 0; i < c->place_count; i++) {
        const struct node_hold *h = &s->hold[c->place[i].node];
        if (!h->claim && !h->closed && !h->nominee)
            pool_set_open(s->pool, c->place[i].node, true);
    }
    return at;
}

static void wake_nodes(struct sched *s, const struct claim *c)
{
    for (uint32_t i = 0; i < c->place_count; i++)
        if (!i || c->place[i].node != c->place[i - 1].node)
            queue_wake_node(s, c->place[i].node);
}

void claim_drop(struct sched *s, struct line *l)
{
    struct claim *c = l->claim;
    if (!c)
        return;
    detach(s, c);
    s->claims_dropped++;
    wake_nodes(s, c);
    claim_free(c);
}

void claims_drop_at(struct sched *s, uint32_t node)
{
    while (s->hold[node].claim) {
        struct line *l = s->hold[node].claim->claim->line;
        claim_drop(s, l);
        line_wake(s, l);
    }
}

void claims_finish(struct sched *s)
{
    while (s->claim_count)
        claim_free(s->claim[--s->claim_count]);
    free(s->due);
}

/* ---- new work on claimed nodes ---- */

/* Beside what the gang has already, would `at` be free for as long as it runs? */
static bool may_be(struct sched *s, const struct sched_option *o, uint32_t count,
                   uint32_t node)
{
    struct wanted w = { o, s->gang, count, s->placing->line->claim, CLAIMS_BEGUN };
    return calendar_holds(s, &w, node, s->now_ms, calendar_until(s->placing, s->now_ms),
                          SCHED_BASIS_UNKNOWN);
}

static bool is_claimed(const struct sched *s, uint32_t node, uint32_t device)
{
    for (const struct occupant *o = s->hold[node].claim; o; o = o->next) {
        const struct pool_place *at = &o->claim->place[o->place];
        for (uint32_t i = 0; i < at->device_count; i++)
            if (at->device[i] == device)
                return true;
    }
    return false;
}

/* Devices of the node for the ask, those that nobody claims first. */
static bool choose_devices(struct sched *s, const struct sched_option *o,
                           const struct pool_ask *a, uint32_t at, uint32_t node)
{
    struct pool_place *place = &s->gang[at];
    uint32_t chosen = 0;
    uint32_t devices = pool_node_at(s->pool, node)->device_count;
    for (int claimed = 0; claimed < 2; claimed++)
        for (uint32_t i = 0;
             i < devices && a->devices > (uint32_t)__builtin_popcount(chosen); i++) {
            if ((int)is_claimed(s, node, i) != claimed ||
                !pool_device_suits(s->pool, a, &s->pool->node[node].device[i].now))
                continue;
            *place = (struct pool_place){ .node = node,
                                          .device_count = 1,
                                          .device = { (uint8_t)i } };
            pool_place_cut(s->pool, a, place);
            if (may_be(s, o, at + 1, node))
                chosen |= 1u << i;
        }
    *place = (struct pool_place){ .node = node };
    for (uint32_t i = 0; i < devices; i++)
        if (chosen >> i & 1)
            place->device[place->device_count++] = (uint8_t)i;
    if (chosen)
        pool_place_cut(s->pool, a, place);
    return pool_place_fits(s->pool, a, place) && may_be(s, o, at + 1, node);
}

int claims_find(struct sched *s, const struct sched_option *o, const struct pool_ask *a,
                uint32_t at)
{
    for (uint32_t c = 0; c < s->claim_count; c++)
        for (uint32_t i = 0; i < s->claim[c]->place_count; i++) {
            uint32_t node = s->claim[c]->place[i].node;
            if ((i && node == s->claim[c]->place[i - 1].node) || s->hold[node].nominee ||
                s->hold[node].closed || !pool_ask_has_room(s->pool, a, node))
                continue;
            if (choose_devices(s, o, a, at, node))
                return 0;
        }
    return -SL_NO_CAPACITY;
}

int claim_take(struct sched *s, const struct request *r, uint32_t option, uint64_t models)
{
    const struct claim *c = r->line->claim;
    if (!c || c->option != option)
        return -SL_NO_CAPACITY;
    struct wanted w = wanted_of(c);
    if (c->basis <= SCHED_BASIS_LIMITS && c->start_ms <= s->now_ms) /* as promised */
        w.others = CLAIMS_FIRM;
    uint64_t until = calendar_until(r, s->now_ms);
    uint32_t mark = pool_mark(s->pool);
    for (uint32_t i = 0; i < c->place_count; i++) /* before any counts */
        if (!tags_allow(s, r->form, &c->place[i]))
            return -SL_NO_CAPACITY;
    for (uint32_t i = 0; i < c->place_count; i++) {
        const struct pool_place *at = &c->place[i];
        const struct pool_node *n = pool_node_at(s->pool, at->node);
        const struct pool_ask *a = option_ask(w.option, i);
        bool ok = !s->hold[at->node].nominee && pool_place_fits(s->pool, a, at) &&
                  ((i && at->node == at[-1].node) ||
                   calendar_holds(s, &w, at->node, s->now_ms, until, SCHED_BASIS_UNKNOWN));
        for (uint32_t k = 0; k < at->device_count; k++)
            ok &= models >> n->device[at->device[k]].model & 1;
        if (!ok) {
            try_undo_to(s, mark);
            return -SL_NO_CAPACITY;
        }
        try_take(s, r->form, a, at);
        s->gang[i] = *at;
    }
    return 0;
}

/* ---- who may pass ---- */

/* By priority inside a tenant; by what is owed between tenants. */
static bool gives_way(const struct claim *c, const struct request *r, bool reclaim)
{
    return c->line->tenant == r->tenant ? c->line->priority < r->priority : reclaim;
}

void claims_step_aside(struct sched *s, const struct request *r, bool reclaim)
{
    for (uint32_t c = 0; c < s->claim_count; c++)
        for (uint32_t i = 0; i < s->claim[c]->place_count; i++) {
            uint32_t node = s->claim[c]->place[i].node;
            const struct node_hold *h = &s->hold[node];
            bool all = !h->closed && !h->nominee;
            for (const struct occupant *o = h->claim; o; o = o->next)
                all &= o->claim->line == r->line || gives_way(o->claim, r, reclaim);
            if (all)
                pool_set_open(s->pool, node, true);
        }
}

void claims_step_back(struct sched *s)
{
    for (uint32_t c = 0; c < s->claim_count; c++)
        for (uint32_t i = 0; i < s->claim[c]->place_count; i++)
            pool_set_open(s->pool, s->claim[c]->place[i].node, false);
}

/* ---- planning ---- */

/* A lease or (no request) a claim, by when it is gone. */
struct due {
    struct ending end;
    uint64_t age;
    const struct request *r;
};

static int compare_due(const void *x, const void *y)
{
    const struct due *a = x, *b = y;
    if (a->end.ms != b->end.ms)
        return a->end.ms < b->end.ms ? -1 : 1;
    return a->age < b->age ? -1 : 1;
}

static int add_due(struct sched *s, struct ending end, uint64_t age,
                   const struct request *r)
{
    if (array_reserve(&s->due, &s->due_room, s->due_count + 1, sizeof *s->due))
        return -SL_INTERNAL;
    s->due[s->due_count++] = (struct due){ end, age, r };
    return 0;
}

/* What runs, or is planned, and will have ended, in that order. */
static int gather_due(struct sched *s)
{
    int rc = 0;
    s->due_count = 0;
    for (uint32_t i = 0; !rc && i < s->claim_count; i++) {
        const struct claim *c = s->claim[i];
        rc = add_due(s, (struct ending){ calendar_claim_ends(s, c), c->basis }, i, NULL);
    }
    for (uint32_t i = 0; i <= s->request_mask; i++)
        for (const struct request *r = s->request[i]; !rc && r; r = r->chain)
            if (r->state == SCHED_RUNNING || r->state == SCHED_LEAVING)
                rc = add_due(s, calendar_ending(s, r), r->age, r);
    if (s->due_count) /* nothing: no array */
        qsort(s->due, s->due_count, sizeof *s->due, compare_due);
    return rc;
}

/* What is sought: the best plan of one line so far. */
struct search {
    struct line *line;
    uint32_t option;
    uint64_t models;
    uint64_t before_ms; /* no later start is of use */
    enum sched_basis trust;
    struct claim *found;
};

/* Claimed nodes as they are from `ms` on, as long as the request runs: with what others
 * claim taken; a node where that is not free yet stays closed. */
static void open_claimed(struct sched *s, uint64_t ms, uint64_t until_ms)
{
    for (uint32_t c = 0; c < s->claim_count; c++) {
        const struct claim *x = s->claim[c];
        for (uint32_t i = 0; i < x->place_count; i++) {
            struct node_hold *h = &s->hold[x->place[i].node];
            const struct pool_ask *a = option_ask(&x->line->form->option[x->option], i);
            if (!calendar_overlaps(s, x, ms, until_ms))
                continue;
            if (pool_place_fits(s->pool, a, &x->place[i]))
                try_take(s, x->line->form, a, &x->place[i]);
            else
                h->shut = true;
        }
    }
    for (uint32_t c = 0; c < s->claim_count; c++)
        for (uint32_t i = 0; i < s->claim[c]->place_count; i++) {
            const struct node_hold *h = &s->hold[s->claim[c]->place[i].node];
            if (!h->shut && !h->closed && !h->nominee)
                pool_set_open(s->pool, s->claim[c]->place[i].node, true);
        }
}

static void close_claimed(struct sched *s)
{
    for (uint32_t c = 0; c < s->claim_count; c++)
        for (uint32_t i = 0; i < s->claim[c]->place_count; i++) {
            s->hold[s->claim[c]->place[i].node].shut = false;
            pool_set_open(s->pool, s->claim[c]->place[i].node, false);
        }
}

/* Where would it go when the first `gone` have ended?  Into s->gang. */
static int place_after(struct sched *s, const struct search *q, uint32_t gone)
{
    const struct form *f = q->line->form;
    uint64_t ms = gone ? s->due[gone - 1].end.ms : s->now_ms;
    uint32_t places = f->place_count[q->option], group;
    for (uint32_t i = 0; i < gone; i++)
        places += s->due[i].r ? s->due[i].r->place_count : 0;
    for (uint32_t c = 0; c < s->claim_count; c++)
        places += s->claim[c]->place_count;
    int rc = try_begin(s, f, q->option, places);
    if (rc)
        return rc;
    s->plan_steps = sub_sat_u64(s->plan_steps, places);
    for (uint32_t i = 0; i < gone; i++) {
        const struct request *v = s->due[i].r;
        if (!v || s->due[i].end.basis > q->trust)
            continue;
        for (uint32_t k = 0; k < v->place_count; k++)
            try_give(s, v->form, option_ask(&v->form->option[v->option], k), &v->place[k]);
    }
    open_claimed(s, ms, calendar_until(q->line->head, ms));
    rc = gang_place(s, f, q->option, q->models, &group);
    close_claimed(s);
    try_undo(s);
    return rc;
}

/* The fewest that must end, in growing numbers and then by halving; NONE: not even all. */
#define NONE UINT32_MAX
static int fewest(struct sched *s, const struct search *q, uint32_t count, uint32_t *enough)
{
    uint32_t too_few = 0, some = q->line->form->place_count[q->option];
    int rc = place_after(s, q, 0);
    *enough = rc ? NONE : 0;
    while (rc == -SL_NO_CAPACITY && too_few < count) {
        some = some < count ? some : count;
        rc = place_after(s, q, some);
        if (rc)
            too_few = some;
        else
            *enough = some;
        some *= 4;
    }
    while (!rc && *enough > too_few + 1) {
        uint32_t half = too_few + (*enough - too_few) / 2;
        rc = place_after(s, q, half);
        if (rc == -SL_NO_CAPACITY) {
            too_few = half;
            rc = 0;
        } else if (!rc) {
            *enough = half;
        }
    }
    return rc == -SL_NO_CAPACITY ? 0 : rc;
}

/* When its places are free for it, and by what that is known. */
static void settle_start(const struct sched *s, struct claim *c, enum sched_basis trust)
{
    struct wanted w = wanted_of(c);
    uint64_t lasts_ms = lasts(c->line->head);
    c->start_ms = calendar_earliest(s, &w, lasts_ms, trust);
    c->basis = SCHED_BASIS_NOW;
    if (c->start_ms == UINT64_MAX)
        c->basis = SCHED_BASIS_NONE;
    else if (c->start_ms > s->now_ms)
        for (c->basis = SCHED_BASIS_LIMITS; c->basis < SCHED_BASIS_UNKNOWN; c->basis++) {
            bool holds = true;
            for (uint32_t i = 0; i < c->place_count && holds; i++)
                holds =
                    calendar_holds(s, &w, c->place[i].node, c->start_ms,
                                   calendar_until(c->line->head, c->start_ms), c->basis);
            if (holds)
                break;
        }
    if (c->basis == SCHED_BASIS_LIMITS &&
        c->line->form->tied) /* the calendar knows no tags */
        c->basis = SCHED_BASIS_UNKNOWN;
}

/* The best of one option replaces what was found, if it starts before that. */
static int plan_option(struct sched *s, struct search *q)
{
    uint32_t count = 0, enough, unused;
    struct line *l = q->line;
    if (option_is_lower(&l->form->option[q->option]))
        return 0;
    q->models = tenant_models(s, l->tenant, &l->form->option[q->option], &unused);
    if (!q->models)
        return 0;
    while (count < s->due_count && s->due[count].end.ms < q->before_ms)
        count++;
    int rc = fewest(s, q, count, &enough);
    if (!rc && enough != NONE)
        rc = place_after(s, q, enough);
    if (rc || enough == NONE)
        return rc;
    struct claim *c = claim_new(l, q->option, s->gang);
    if (!c)
        return -SL_INTERNAL;
    settle_start(s, c, q->trust);
    if (c->basis == SCHED_BASIS_NONE || c->start_ms >= q->before_ms ||
        c->basis > q->trust) {
        claim_free(c);
        return 0;
    }
    claim_free(q->found);
    q->found = c;
    q->before_ms = c->start_ms;
    return 0;
}

static int plan(struct sched *s, struct search *q)
{
    int rc = gather_due(s);
    for (q->option = 0; !rc && q->option < q->line->form->option_count; q->option++)
        rc = plan_option(s, q);
    if (rc) {
        claim_free(q->found);
        q->found = NULL;
    }
    return rc;
}

/* By known ends, if there is a place by these; else by predictions; else by guesses. */
static int plan_by_best(struct sched *s, struct search *q)
{
    int rc = 0;
    for (q->trust = SCHED_BASIS_LIMITS; !rc && !q->found && q->trust <= SCHED_BASIS_UNKNOWN;
         q->trust++)
        rc = plan(s, q);
    return rc;
}

static int plan_new(struct sched *s, struct line *l)
{
    struct search q = { .line = l, .before_ms = UINT64_MAX };
    int rc = plan_by_best(s, &q);
    if (q.found)
        attach(s, q.found, s->claim_count);
    else
        l->plan_after_ms = s->now_ms + s->policy.patience_ms;
    return rc;
}

int claim_estimate(struct sched *s, struct line *l, uint64_t *start_ms,
                   enum sched_basis *basis)
{
    struct search q = { .line = l, .before_ms = UINT64_MAX };
    const struct claim *c = l->claim;
    int rc = 0;
    if (!c && l->verdict == SCHED_NO_ROOM) {
        rc = plan_by_best(s, &q);
        c = q.found;
    }
    if (rc)
        return rc;
    *start_ms = c ? c->start_ms : 0;
    *basis = c ? c->basis : SCHED_BASIS_NONE;
    claim_free(q.found);
    return 0;
}

/* A better place?  Where ends are guessed it must be better by half, as guesses move. */
static int plan_again(struct sched *s, struct claim *c)
{
    uint64_t wait = sub_sat_u64(c->start_ms, s->now_ms);
    struct search q = { .line = c->line,
                        .before_ms =
                            s->now_ms + wait / (c->basis > SCHED_BASIS_LIMITS ? 2 : 1),
                        .trust = c->basis };
    if (!wait)
        return 0;
    uint32_t at = detach(s, c);
    int rc = plan(s, &q);
    attach(s, q.found ? q.found : c, at);
    if (q.found) {
        wake_nodes(s, c);
        claim_free(c);
    }
    return rc;
}

/* ---- ticks ---- */

/* Would it still begin then, if others keep to theirs? */
static bool is_kept(const struct sched *s, const struct claim *c, uint64_t start_ms)
{
    struct wanted w = wanted_of(c);
    w.others = CLAIMS_FIRM;
    for (uint32_t i = 0; i < c->place_count; i++)
        if (!calendar_holds(s, &w, c->place[i].node, start_ms,
                            calendar_until(c->line->head, start_ms), SCHED_BASIS_LIMITS))
            return false;
    return true;
}

/* What was promised by limits only gets better; ends that were guessed have moved. */
static void review(struct sched *s, struct claim *c)
{
    uint64_t promised = c->start_ms;
    if (c->basis != SCHED_BASIS_LIMITS) {
        settle_start(s, c, SCHED_BASIS_UNKNOWN);
        return;
    }
    settle_start(s, c, SCHED_BASIS_LIMITS);
    if (c->basis != SCHED_BASIS_NONE && c->start_ms <= promised)
        return;
    c->start_ms = promised;
    c->basis = SCHED_BASIS_LIMITS;
    if (promised <= s->now_ms || !is_kept(s, c, promised))
        settle_start(s, c, SCHED_BASIS_UNKNOWN);
}

static void refresh(struct sched *s)
{
    for (uint32_t i = 0; i < s->claim_count;) {
        struct claim *c = s->claim[i];
        struct line *l = c->line;
        review(s, c);
        if (c->basis == SCHED_BASIS_NONE)
            claim_drop(s, l);
        else
            i++;
        line_wake(s, l);
    }
}

static bool waits_too_long(const struct sched *s, const struct line *l)
{
    return l->verdict == SCHED_NO_ROOM && !l->claim &&
           !option_is_lower(&l->form->option[0]) && s->now_ms >= l->plan_after_ms &&
           s->now_ms - l->head->submit_ms >= s->policy.patience_ms;
}

/* Whoever waits too long is tried in its turn, and claims if that is in vain. */
static int claim_in_turn(struct sched *s)
{
    struct line *l, *next;
    uint32_t had = s->decision_count;
    uint64_t dropped = s->claims_dropped;
    bool alone = !s->tenant[SCHED_ROOT].turns_below[TURN_TRY];
    int rc = 0;
    for (l = s->parked; l; l = next) {
        next = l->parked_next;
        if (waits_too_long(s, l))
            line_wake(s, l);
    }
    while (!rc && s->claim_count < s->policy.protect && s->plan_steps &&
           (l = tenant_next(s, TURN_TRY))) {
        const struct request *r = l->head;
        rc = line_try(s, l);
        if (!rc && r->state == SCHED_PENDING && r->line->parked &&
            waits_too_long(s, r->line))
            rc = plan_new(s, r->line);
    }
    /* for the others nothing has changed */
    while (!rc && alone && had == s->decision_count && dropped == s->claims_dropped &&
           (l = tenant_next(s, TURN_TRY)))
        line_park(s, l);
    return rc;
}

int claims_tick(struct sched *s)
{
    int rc = 0;
    if (!s->policy.patience_ms || !s->policy.protect)
        return 0;
    s->plan_steps = TICK_STEPS;
    if (s->claim_count < s->policy.protect)
        rc = claim_in_turn(s);
    refresh(s);
    if (!rc && s->claim_count)
        rc = plan_again(s, s->claim[s->claim_turn++ % s->claim_count]);
    return rc;
}

/* ---- the invariants ---- */

void claims_check(const struct sched *s)
{
    for (uint32_t i = 0; i < s->claim_count; i++) {
        const struct claim *c = s->claim[i];
        assert(c->line->claim == c && c->line->head && c->line->parked);
        for (uint32_t k = 0; k < c->place_count; k++) {
            const struct node_hold *h = &s->hold[c->place[k].node];
            assert(!s->pool->node[c->place[k].node].open && !h->closed && !h->nominee);
        }
        assert(c->basis != SCHED_BASIS_LIMITS || c->start_ms <= s->now_ms ||
               is_kept(s, c, c->start_ms));
    }
}
