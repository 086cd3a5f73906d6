/* Queues: what is asked (forms), who waits for it (lines), requests by id. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sched_impl.h"

#define MAX_PRIORITY    100u
#define REQUEST_BUCKETS 1024 /* to begin with */

int queue_create(struct sched *s)
{
    s->form = calloc(FORM_BUCKETS, sizeof *s->form);
    s->line = calloc(LINE_BUCKETS, sizeof *s->line);
    s->request = calloc(REQUEST_BUCKETS, sizeof *s->request);
    s->request_mask = REQUEST_BUCKETS - 1;
    return s->form && s->line && s->request ? 0 : -SL_INTERNAL;
}

static void request_free(struct request *r)
{
    request_let_go(r);
    free(r);
}

void queue_destroy(struct sched *s)
{
    for (uint32_t i = 0; s->request && i <= s->request_mask; i++)
        for (struct request *r = s->request[i], *next; r; r = next) {
            next = r->chain;
            request_free(r);
        }
    for (uint32_t i = 0; s->line && i < LINE_BUCKETS; i++)
        for (struct line *l = s->line[i], *next; l; l = next) {
            next = l->next;
            free(l);
        }
    for (uint32_t i = 0; s->form && i < FORM_BUCKETS; i++)
        for (struct form *f = s->form[i], *next; f; f = next) {
            next = f->next;
            free(f);
        }
    free(s->request);
    free(s->line);
    free(s->form);
}

/* ---- requests by id ---- */

static struct request **request_bucket(const struct sched *s, uint64_t id)
{
    return &s->request[hash_mix(0, id) & s->request_mask];
}

struct request *request_by_id(const struct sched *s, uint64_t id)
{
    struct request *r = *request_bucket(s, id);
    while (r && r->id != id)
        r = r->chain;
    return r;
}

/* Without memory the chains get longer, no more. */
static void request_grow(struct sched *s)
{
    uint32_t room = 2 * (s->request_mask + 1), had = s->request_mask;
    struct request **old = s->request, **bucket = calloc(room, sizeof *bucket);
    if (!bucket)
        return;
    s->request = bucket;
    s->request_mask = room - 1;
    for (uint32_t i = 0; i <= had; i++)
        for (struct request *r = old[i], *next; r; r = next) {
            struct request **head = request_bucket(s, r->id);
            next = r->chain;
            r->chain = *head;
            *head = r;
        }
    free(old);
}

static void request_remember(struct sched *s, struct request *r)
{
    if (s->request_count++ > s->request_mask)
        request_grow(s);
    struct request **head = request_bucket(s, r->id);
    r->chain = *head;
    *head = r;
}

/* ---- forms ---- */

/* Whose devices a request's must be.  Where all may meet everywhere it is nobody's, so that
 * forms and orders of placement are common to all. */
static uint32_t owner_of(const struct sched *s, const struct sched_request *q)
{
    uint32_t meet = s->policy.tenancy | 1u << POOL_EXCLUSIVE; /* where nobody meets */
    return meet == POOL_ALL_SHARING ? 0 : q->tenant;
}

static bool form_is(const struct form *f, const struct sched_request *q, uint32_t owner,
                    uint64_t hash)
{
    if (f->hash != hash || f->owner != owner || f->option_count != q->option_count ||
        !ties_equal(&f->ties, &q->ties))
        return false;
    for (uint32_t i = 0; i < f->option_count; i++) {
        if (f->option[i].group_count != q->option[i].group_count ||
            f->option[i].within != q->option[i].within ||
            f->option[i].within_required != q->option[i].within_required)
            return false;
        for (uint32_t g = 0; g < f->option[i].group_count; g++)
            if (f->option[i].group[g].count != q->option[i].group[g].count ||
                f->option[i].group[g].beside != q->option[i].group[g].beside ||
                f->option[i].group[g].split_least != q->option[i].group[g].split_least ||
                !ask_equal_unowned(&f->option[i].group[g].ask, &q->option[i].group[g].ask))
                return false;
    }
    return true;
}

static uint64_t form_hash(const struct sched_request *q, uint32_t owner)
{
    uint64_t h = hash_mix(ties_hash(&q->ties), q->option_count);
    h = hash_mix(h, owner);
    for (uint32_t i = 0; i < q->option_count; i++) {
        h = hash_mix(h, (uint64_t)q->option[i].within << 1 | q->option[i].within_required);
        for (uint32_t g = 0; g < q->option[i].group_count; g++) {
            const struct sched_group *x = &q->option[i].group[g];
            h = hash_mix(h, (uint64_t)x->split_least << 33 | (uint64_t)x->beside << 32 |
                                x->count);
            h = hash_mix(h, ask_hash_unowned(&x->ask));
        }
    }
    return h;
}

static struct form *form_of(struct sched *s, const struct sched_request *q)
{
    uint32_t owner = owner_of(s, q);
    uint64_t hash = form_hash(q, owner);
    struct form **head = &s->form[hash & (FORM_BUCKETS - 1)], *f = *head;
    while (f && !form_is(f, q, owner, hash))
        f = f->next;
    if (!f) {
        f = calloc(1, sizeof *f + q->option_count * sizeof f->option[0]);
        if (!f)
            return NULL;
        f->hash = hash;
        f->owner = owner;
        f->option_count = q->option_count;
        f->ties = q->ties;
        f->tied = q->ties.tag_count || q->ties.tie_count;
        memcpy(f->option, q->option, q->option_count * sizeof f->option[0]);
        for (uint32_t i = 0; i < q->option_count; i++)
            for (uint32_t g = 0; g < q->option[i].group_count; g++) {
                f->option[i].group[g].ask.owner = owner;
                f->place_count[i] += q->option[i].group[g].count;
            }
        f->next = *head;
        *head = f;
    }
    f->refs++;
    return f;
}

static void form_unref(struct sched *s, struct form *f)
{
    if (--f->refs)
        return;
    struct form **link = &s->form[f->hash & (FORM_BUCKETS - 1)];
    while (*link != f)
        link = &(*link)->next;
    *link = f->next;
    free(f);
}

/* ---- service ---- */

#define SERVICE_LEAST_MS 1000
#define LATE             8 /* an eighth over the prediction is late */

/* Milli-devices of compute, of its first option. */
static uint64_t compute_milli(const struct form *f)
{
    uint64_t milli = 0;
    const struct sched_option *o = &f->option[0];
    for (uint32_t g = 0; g < o->group_count; g++)
        milli += (uint64_t)o->group[g].count * o->group[g].ask.devices *
                 o->group[g].ask.permille;
    return milli;
}

static uint64_t ran_ms(const struct sched *s, const struct request *r)
{
    return r->attained_ms + (r->state == SCHED_RUNNING ? s->now_ms - r->start_ms : 0);
}

/* What the order goes by, milli-devices x milliseconds. */
static uint64_t service(const struct sched *s, const struct request *r)
{
    uint64_t ran = ran_ms(s, r), ms = ran;
    if (s->policy.order == SCHED_BY_REMAINING && r->work_ms)
        ms = r->work_ms > ran                       ? r->work_ms - ran
             : ran - r->work_ms < r->work_ms / LATE ? 0                 /* nearly done */
                                                    : ran - r->work_ms; /* so much again */
    if (s->policy.order == SCHED_BY_REMAINING && ms < SERVICE_LEAST_MS)
        ms = SERVICE_LEAST_MS;
    unsigned __int128 all = (unsigned __int128)compute_milli(r->form) * ms;
    return all >> 63 ? UINT64_MAX >> 1 : (uint64_t)all;
}

/* Steps of the logarithm of device-seconds: what is in one step does not evict.  Who got
 * least so far is known in powers of two only, as nobody should take turns; who needs least
 * grows less by running, so an eighth of that will do. */
static uint32_t level_of(uint64_t service, bool fine)
{
    uint64_t seconds = service / 1000000;
    if (!seconds)
        return 0;
    uint32_t power = 63 - (uint32_t)__builtin_clzll(seconds);
    if (!fine)
        return 1 + power;
    uint64_t eighths = power >= 3 ? seconds >> (power - 3) : seconds << (3 - power);
    return 1 + 8 * power + (uint32_t)(eighths & 7);
}

uint32_t service_level(const struct sched *s, const struct request *r)
{
    if (s->policy.order == SCHED_BY_AGE)
        return 0;
    return level_of(service(s, r), s->policy.order == SCHED_BY_REMAINING);
}

uint64_t service_rank(const struct sched *s, const struct request *r)
{
    return s->policy.order == SCHED_BY_REMAINING ? service(s, r) : service_level(s, r);
}

/* ---- the heaps of a tenant's lines ---- */

static bool line_first(const struct line *a, const struct line *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    return a->rank != b->rank ? a->rank < b->rank : a->head->age < b->head->age;
}

static struct turns *turns_of(const struct sched *s, const struct line *l, enum turn turn)
{
    return &s->tenant[l->tenant].turn[turn];
}

static void turn_put(struct turns *t, enum turn turn, uint32_t at, struct line *l)
{
    t->line[at] = l;
    l->turn_at[turn] = at;
}

static void turn_moved(struct sched *s, struct line *l, enum turn turn)
{
    struct turns *t = turns_of(s, l, turn);
    uint32_t at = l->turn_at[turn];
    while (at && line_first(l, t->line[(at - 1) / 2])) {
        turn_put(t, turn, at, t->line[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= t->count)
            break;
        if (child + 1 < t->count && line_first(t->line[child + 1], t->line[child]))
            child++;
        if (!line_first(t->line[child], l))
            break;
        turn_put(t, turn, at, t->line[child]);
        at = child;
    }
    turn_put(t, turn, at, l);
}

static void turn_insert(struct sched *s, struct line *l, enum turn turn)
{
    struct turns *t = turns_of(s, l, turn);
    if (l->turn_at[turn] != TURN_NOT)
        return;
    assert(t->count < t->room);
    turn_put(t, turn, t->count++, l);
    turn_moved(s, l, turn);
    tenant_turns(s, l->tenant, turn, 1);
}

static void turn_remove(struct sched *s, struct line *l, enum turn turn)
{
    struct turns *t = turns_of(s, l, turn);
    if (l->turn_at[turn] == TURN_NOT)
        return;
    struct line *last = t->line[--t->count];
    if (last != l) {
        turn_put(t, turn, l->turn_at[turn], last);
        turn_moved(s, last, turn);
    }
    l->turn_at[turn] = TURN_NOT;
    tenant_turns(s, l->tenant, turn, -1);
}

/* ---- lines ---- */

static uint64_t line_hash(const struct form *f, uint32_t tenant, uint32_t priority,
                          uint64_t rank)
{
    return hash_mix(hash_mix(hash_mix(f->hash, tenant), priority), rank);
}

static struct line *line_of(struct sched *s, const struct request *r)
{
    uint64_t rank = service_rank(s, r);
    struct line **head =
        &s->line[line_hash(r->form, r->tenant, r->priority, rank) & (LINE_BUCKETS - 1)];
    struct line *l = *head;
    while (l && (l->rank != rank || l->form != r->form || l->tenant != r->tenant ||
                 l->priority != r->priority || l->preemptible != r->preemptible ||
                 l->min_run_ms != r->min_run_ms || l->limit_ms != r->limit_ms))
        l = l->next;
    if (l)
        return l;
    struct tenant *t = &s->tenant[r->tenant];
    /* room for each of its lines, so that waking cannot fail */
    for (int i = 0; i < TURNS; i++)
        if (array_reserve(&t->turn[i].line, &t->turn[i].room, t->line_count + 1,
                          sizeof *t->turn[i].line))
            return NULL;
    l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    *l = (struct line){ .next = *head,
                        .form = r->form,
                        .tenant = r->tenant,
                        .priority = r->priority,
                        .preemptible = r->preemptible,
                        .min_run_ms = r->min_run_ms,
                        .limit_ms = r->limit_ms,
                        .rank = rank,
                        .level = service_level(s, r),
                        .turn_at = { TURN_NOT, TURN_NOT } };
    *head = l;
    t->line_count++;
    return l;
}

/* Its last request left: its form may go with that. */
static void line_free(struct sched *s, struct line *l)
{
    struct line **link =
        &s->line[line_hash(l->form, l->tenant, l->priority, l->rank) & (LINE_BUCKETS - 1)];
    while (*link != l)
        link = &(*link)->next;
    *link = l->next;
    s->tenant[l->tenant].line_count--;
    free(l);
}

static void unpark(struct sched *s, struct line *l)
{
    if (l->parked_prev)
        l->parked_prev->parked_next = l->parked_next;
    else
        s->parked = l->parked_next;
    if (l->parked_next)
        l->parked_next->parked_prev = l->parked_prev;
    l->parked = false;
    turn_remove(s, l, TURN_SEARCH);
}

void line_park(struct sched *s, struct line *l)
{
    turn_remove(s, l, TURN_TRY);
    l->parked = true;
    l->parked_prev = NULL;
    l->parked_next = s->parked;
    if (s->parked)
        s->parked->parked_prev = l;
    s->parked = l;
    if (l->verdict != SCHED_NO_ROOM)
        l->searched = true;
    if (!l->searched)
        turn_insert(s, l, TURN_SEARCH);
}

void line_searched(struct sched *s, struct line *l)
{
    l->searched = true;
    turn_remove(s, l, TURN_SEARCH);
}

void line_wake(struct sched *s, struct line *l)
{
    if (!l->parked)
        return;
    unpark(s, l);
    turn_insert(s, l, TURN_TRY);
}

/* Could anything of the form start on the node now? */
static bool node_helps(const struct sched *s, const struct form *f, uint32_t node)
{
    for (uint32_t i = 0; i < f->option_count; i++)
        for (uint32_t g = 0; g < f->option[i].group_count; g++)
            if (pool_ask_fits(s->pool, &f->option[i].group[g].ask, node) ||
                (s->hold[node].claim &&
                 pool_ask_has_room(s->pool, &f->option[i].group[g].ask, node)))
                return true;
    return false;
}

/* Whom a tie keeps off the node, tags_wake() wakes when it no longer does. */
void queue_wake_node(struct sched *s, uint32_t node)
{
    for (struct line *l = s->parked, *next; l; l = next) {
        next = l->parked_next;
        if (l->verdict != SCHED_OVER_LIMIT && node_helps(s, l->form, node) &&
            ties_may_hold(s, l->form, node))
            line_wake(s, l);
    }
}

void queue_wake_tenant(struct sched *s, uint32_t tenant)
{
    for (struct line *l = s->parked, *next; l; l = next) {
        next = l->parked_next;
        if (tenant_is_below(s, l->tenant, tenant)) {
            l->searched = false;
            line_wake(s, l);
        }
    }
}

/* The tenant's ancestor next to the root, or the root. */
static uint32_t branch_of(const struct sched *s, uint32_t tenant)
{
    while (s->tenant[tenant].depth > 1)
        tenant = s->tenant[tenant].parent;
    return tenant;
}

void queue_wake_limited(struct sched *s, uint32_t tenant)
{
    uint32_t branch = branch_of(s, tenant);
    for (struct line *l = s->parked, *next; l; l = next) {
        next = l->parked_next;
        if (l->blocked_by != TENANT_NONE &&
            (l->blocked_by == SCHED_ROOT || branch_of(s, l->tenant) == branch))
            line_wake(s, l);
    }
}

void queue_wake_impossible(struct sched *s)
{
    for (struct line *l = s->parked, *next; l; l = next) {
        next = l->parked_next;
        if (l->verdict == SCHED_IMPOSSIBLE)
            line_wake(s, l);
    }
}

static bool is_owed(const struct sched *s, uint32_t tenant)
{
    const struct tenant *t = &s->tenant[tenant];
    for (uint32_t q = 0; q < QUOTAS; q++)
        if (t->held_milli[q] < t->deserved_milli[q])
            return true;
    return false;
}

/* The lowest priority of what a tenant runs and may be evicted; above all if nothing. */
static uint32_t lowest_priority(const struct sched *s, uint32_t tenant)
{
    const struct tenant *t = &s->tenant[tenant];
    uint32_t lowest = UINT32_MAX;
    for (uint32_t i = 0; i < t->lease_count; i++)
        if (t->lease[i].goes_ms != UINT64_MAX && t->lease[i].priority < lowest)
            lowest = t->lease[i].priority;
    return lowest;
}

/* Whose lines may evict something: of this priority and above; 0: all its lines. */
static uint32_t evicts_from(const struct sched *s, uint32_t tenant)
{
    if (is_owed(s, tenant))
        return 0;
    uint32_t lowest = lowest_priority(s, tenant);
    bool by_service = s->policy.order != SCHED_BY_AGE;
    return lowest == UINT32_MAX || by_service ? lowest : lowest + 1;
}

void queue_seek_again(struct sched *s)
{
    for (uint32_t i = 0; i < s->tenant_count; i++)
        s->tenant[i].evicts_known = false;
    for (struct line *l = s->parked; l; l = l->parked_next) {
        struct tenant *t = &s->tenant[l->tenant];
        if (l->verdict != SCHED_NO_ROOM || !l->searched)
            continue;
        if (!t->evicts_known) {
            t->evicts_from = evicts_from(s, l->tenant);
            t->evicts_known = true;
        }
        if (l->priority < t->evicts_from)
            continue;
        l->searched = false;
        turn_insert(s, l, TURN_SEARCH);
    }
}

/* ---- in and out ---- */

static int check_request(const struct sched *s, const struct sched_request *q,
                         struct sl_err *err)
{
    if (q->tenant >= SCHED_MAX_TENANTS || !s->tenant[q->tenant].exists)
        return sl_fail(err, SL_NOT_FOUND, "request: no tenant %u", q->tenant);
    if (request_by_id(s, q->id))
        return sl_fail(err, SL_CONFLICT, "request: its id is in use");
    if (q->priority > MAX_PRIORITY)
        return sl_fail(err, SL_INVALID, "request: priority %u is above %u", q->priority,
                       MAX_PRIORITY);
    if (!q->option_count || q->option_count > SCHED_MAX_OPTIONS)
        return sl_fail(err, SL_INVALID, "request: 1 to %d options, not %u",
                       SCHED_MAX_OPTIONS, q->option_count);
    int rc = ties_check(&q->ties, err);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < q->option_count; i++) {
        const struct sched_option *o = &q->option[i];
        uint64_t asks = 0;
        if (!o->group_count || o->group_count > SCHED_MAX_GROUPS)
            return sl_fail(err, SL_INVALID, "request: 1 to %d groups, not %u",
                           SCHED_MAX_GROUPS, o->group_count);
        if (o->within > POOL_ZONE || (o->within_required && !o->within))
            return sl_fail(err, SL_INVALID, "request: within a node, a rack or a zone");
        for (uint32_t g = 0; g < o->group_count; g++) {
            const struct pool_ask *a = &o->group[g].ask;
            asks += o->group[g].count;
            if (!o->group[g].count)
                return sl_fail(err, SL_INVALID, "request: a gang of none");
            if (a->permille > 1000 || a->devices > POOL_MAX_DEVICES)
                return sl_fail(err, SL_INVALID,
                               "request: at most 1000 permille of %d devices of a node",
                               POOL_MAX_DEVICES);
            if (a->lower != o->group[0].ask.lower)
                return sl_fail(err, SL_INVALID,
                               "request: all of an option is of one class");
            if (a->sharing & ~POOL_ALL_SHARING)
                return sl_fail(err, SL_INVALID, "request: no such way to share a device");
        }
        rc = split_check(o, err);
        if (rc)
            return rc;
        if (asks > SCHED_MAX_GANG)
            return sl_fail(err, SL_INVALID, "request: a gang of more than %d",
                           SCHED_MAX_GANG);
    }
    return 0;
}

static void append(struct line *l, struct request *r)
{
    r->prev = l->tail;
    r->next = NULL;
    if (l->tail)
        l->tail->next = r;
    else
        l->head = r;
    l->tail = r;
}

int request_create(struct sched *s, const struct sched_request *q, struct request **out,
                   struct sl_err *err)
{
    int rc = check_request(s, q, err);
    if (rc)
        return rc;
    struct tenant *t = &s->tenant[q->tenant];
    struct request *r = calloc(1, sizeof *r);
    struct form *f = NULL;
    /* room among its leases, so that starting it cannot fail */
    if (r &&
        !array_reserve(&t->lease, &t->lease_room, t->request_count + 1, sizeof *t->lease))
        f = form_of(s, q);
    if (!f) {
        free(r);
        return sl_fail(err, SL_INTERNAL, "request: out of memory");
    }
    *r = (struct request){ .id = q->id,
                           .age = ++s->ages,
                           .tenant = q->tenant,
                           .priority = q->priority,
                           .preemptible = q->preemptible,
                           .min_run_ms = q->min_run_ms,
                           .work_ms = q->work_ms,
                           .attained_ms = q->attained_ms,
                           .limit_ms = q->limit_ms,
                           .submit_ms = s->now_ms,
                           .form = f };
    t->request_count++;
    request_remember(s, r);
    *out = r;
    return 0;
}

int queue_submit(struct sched *s, const struct sched_request *q, struct sl_err *err)
{
    struct request *r;
    int rc = request_create(s, q, &r, err);
    if (rc)
        return rc;
    struct line *l = line_of(s, r);
    if (!l) {
        request_forget(s, r);
        return sl_fail(err, SL_INTERNAL, "request: out of memory");
    }
    r->line = l;
    append(l, r);
    if (l->head == r)
        turn_insert(s, l, TURN_TRY);
    return 0;
}

void queue_leave(struct sched *s, struct request *r)
{
    struct line *l = r->line;
    bool first = l->head == r;
    if (first)
        claim_drop(s, l);
    if (r->prev)
        r->prev->next = r->next;
    else
        l->head = r->next;
    if (r->next)
        r->next->prev = r->prev;
    else
        l->tail = r->prev;
    r->line = NULL;
    r->next = r->prev = NULL;
    if (!l->head) {
        if (l->parked)
            unpark(s, l);
        turn_remove(s, l, TURN_TRY);
        line_free(s, l);
    } else if (first) {
        for (int i = 0; i < TURNS; i++)
            if (l->turn_at[i] != TURN_NOT)
                turn_moved(s, l, i);
    }
}

int queue_prepare(struct sched *s, struct request *r)
{
    return line_of(s, r) ? 0 : -SL_INTERNAL;
}

void queue_return(struct sched *s, struct request *r)
{
    struct line *l = line_of(s, r); /* it is there: queue_prepare */
    struct request *after = l->tail;
    while (after && after->age > r->age)
        after = after->prev;
    r->line = l;
    r->state = SCHED_PENDING;
    r->prev = after;
    r->next = after ? after->next : l->head;
    if (r->next)
        r->next->prev = r;
    else
        l->tail = r;
    if (after)
        after->next = r;
    else
        l->head = r;
    if (l->parked)
        line_wake(s, l);
    else if (l->turn_at[TURN_TRY] == TURN_NOT)
        turn_insert(s, l, TURN_TRY);
    else
        turn_moved(s, l, TURN_TRY);
}

int queue_set_priority(struct sched *s, const struct sched_priority *p, struct sl_err *err)
{
    struct request *r = request_by_id(s, p->id);
    if (!r)
        return sl_fail(err, SL_NOT_FOUND, "no request of this id");
    if (p->priority > MAX_PRIORITY)
        return sl_fail(err, SL_INVALID, "request: priority %u is above %u", p->priority,
                       MAX_PRIORITY);
    uint32_t had = r->priority;
    r->priority = p->priority;
    if (r->state == SCHED_RUNNING)
        lease_changed(s, r);
    if (r->state != SCHED_PENDING || had == p->priority)
        return 0;
    if (queue_prepare(s, r)) {
        r->priority = had;
        return sl_fail(err, SL_INTERNAL, "request: out of memory");
    }
    queue_leave(s, r);
    queue_return(s, r);
    return 0;
}

void request_forget(struct sched *s, struct request *r)
{
    struct request **link = request_bucket(s, r->id);
    while (*link != r)
        link = &(*link)->chain;
    *link = r->chain;
    s->request_count--;
    s->tenant[r->tenant].request_count--;
    form_unref(s, r->form);
    request_free(r);
}
