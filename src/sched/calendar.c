/*
 * The calendar: when what runs ends, and the exact timeline of one node: what is on it at
 * a time, of leases that have not ended by then and of claims that have begun.
 */
#include "core/macros.h"
#include "device.h"
#include "sched_impl.h"

#define UNKNOWN_LEAST_MS 1000

static uint64_t later(uint64_t ms, uint64_t by_ms)
{
    return by_ms > UINT64_MAX - ms ? UINT64_MAX : ms + by_ms;
}

uint64_t calendar_bound(const struct request *r)
{
    return r->limit_ms ? later(r->start_ms, r->limit_ms) : UINT64_MAX;
}

uint64_t calendar_until(const struct request *r, uint64_t from_ms)
{
    return r->limit_ms ? later(from_ms, r->limit_ms) : UINT64_MAX;
}

struct ending calendar_ending(const struct sched *s, const struct request *r)
{
    struct ending e;
    uint64_t start = r->state == SCHED_NOMINATED ? s->now_ms : r->start_ms;
    if (r->limit_ms) {
        e = (struct ending){ calendar_until(r, start), SCHED_BASIS_LIMITS };
    } else if (r->state == SCHED_LEAVING) {
        e = (struct ending){ s->now_ms, SCHED_BASIS_PREDICTIONS };
    } else if (r->work_ms) {
        uint64_t end = later(start, sub_sat_u64(r->work_ms, r->attained_ms));
        if (end <= s->now_ms) /* it needs as much again as it is late */
            end = later(s->now_ms, s->now_ms - end);
        e = (struct ending){ end, SCHED_BASIS_PREDICTIONS };
    } else { /* as much again as it ran */
        uint64_t ran = max_u64(s->now_ms - start, UNKNOWN_LEAST_MS);
        e = (struct ending){ later(s->now_ms, ran), SCHED_BASIS_UNKNOWN };
    }
    e.ms = max_u64(e.ms, s->now_ms + 1); /* it is still there */
    return e;
}

/* ---- who is where ---- */

static void link_at(struct occupant **head, struct occupant *o)
{
    o->prev = NULL;
    o->next = *head;
    if (*head)
        (*head)->prev = o;
    *head = o;
}

static void unlink_at(struct occupant **head, struct occupant *o)
{
    if (o->prev)
        o->prev->next = o->next;
    else
        *head = o->next;
    if (o->next)
        o->next->prev = o->prev;
}

void calendar_occupy(struct sched *s, struct request *r)
{
    for (uint32_t i = 0; i < r->place_count; i++) {
        r->here[i] = (struct occupant){ .r = r, .place = i };
        link_at(&s->hold[r->place[i].node].lease, &r->here[i]);
    }
}

void calendar_vacate(struct sched *s, struct request *r)
{
    for (uint32_t i = 0; i < r->place_count; i++)
        unlink_at(&s->hold[r->place[i].node].lease, &r->here[i]);
}

void calendar_enter(struct sched *s, struct claim *c)
{
    for (uint32_t i = 0; i < c->place_count; i++) {
        c->here[i] = (struct occupant){ .claim = c, .place = i };
        link_at(&s->hold[c->place[i].node].claim, &c->here[i]);
    }
}

void calendar_leave(struct sched *s, struct claim *c)
{
    for (uint32_t i = 0; i < c->place_count; i++)
        unlink_at(&s->hold[c->place[i].node].claim, &c->here[i]);
}

/* ---- a node at a time ---- */

/* What would be free; below zero where more is there than fits. */
struct instant {
    int64_t cpu_milli, host_mem_bytes;
    struct {
        int64_t permille, mem_bytes;
        struct class_device carries; /* who may be beside whom; amounts do not count */
        uint8_t slots, cuts[POOL_MAX_PROFILES]; /* of profiles */
        bool clash;
    } device[POOL_MAX_DEVICES];
};

static void empty(const struct sched *s, uint32_t node, struct instant *out)
{
    const struct pool_node *n = pool_node_at(s->pool, node);
    *out = (struct instant){ .cpu_milli = n->cpu_milli,
                             .host_mem_bytes = (int64_t)n->host_mem_bytes };
    for (uint32_t i = 0; i < n->device_count; i++) {
        out->device[i].permille = 1000;
        out->device[i].mem_bytes = (int64_t)n->device[i].mem_bytes;
        out->device[i].carries = device_empty(s->pool, &n->device[i]);
    }
}

static void put_cut(const struct pool_profiles *t, uint8_t *cuts, uint8_t *slots,
                    struct pool_cut cut, bool *clash)
{
    const struct pool_profile *p = &t->profile[cut.profile];
    uint8_t takes = (uint8_t)(((1u << p->mem_slots) - 1) << cut.start);
    *clash |= (*slots & takes) || ++cuts[cut.profile] > p->most;
    *slots |= takes;
}

/* The lower class takes nothing of what claims are of. */
static void put(const struct sched *s, struct instant *t, const struct pool_ask *a,
                const struct pool_place *at)
{
    const struct pool_node *n = pool_node_at(s->pool, at->node);
    if (a->lower)
        return;
    t->cpu_milli -= a->cpu_milli;
    t->host_mem_bytes -= (int64_t)a->host_mem_bytes;
    for (uint32_t i = 0; i < at->device_count; i++) {
        __typeof__(&t->device[0]) d = &t->device[at->device[i]];
        const struct pool_device *is = &n->device[at->device[i]];
        if (is->sharing == POOL_PROFILE) {
            put_cut(&s->pool->profiles[is->model], d->cuts, &d->slots, at->cut[i],
                    &d->clash);
            d->clash |= (d->carries.flags & CLASS_OWNED) && d->carries.owner != a->owner;
        } else {
            d->permille -= a->permille;
            d->mem_bytes -= (int64_t)a->mem_bytes;
            d->clash |= !pool_device_suits(s->pool, a, &d->carries);
        }
        device_put(s->pool, a, &d->carries);
        d->carries.permille = 1000;
        d->carries.mem_bytes = is->mem_bytes;
    }
}

/* Of what was put there: has the one what it uses, as far as the other uses it, too? */
static bool has(const struct instant *t, const struct pool_ask *a,
                const struct pool_place *at, const struct pool_ask *b,
                const struct pool_place *bt)
{
    uint32_t shared = 0;
    if ((a->cpu_milli && b->cpu_milli && t->cpu_milli < 0) ||
        (a->host_mem_bytes && b->host_mem_bytes && t->host_mem_bytes < 0))
        return false;
    for (uint32_t i = 0; i < bt->device_count; i++)
        shared |= 1u << bt->device[i];
    for (uint32_t i = 0; i < at->device_count; i++) {
        __typeof__(&t->device[0]) d = &t->device[at->device[i]];
        if ((shared >> at->device[i] & 1) &&
            (d->clash || d->permille < 0 || d->mem_bytes < 0))
            return false;
    }
    return true;
}

static const struct pool_ask *claim_ask(const struct claim *c, uint32_t place)
{
    return option_ask(&c->line->form->option[c->option], place);
}

static uint64_t begins(const struct sched *s, const struct claim *c)
{
    return max_u64(c->start_ms, s->now_ms);
}

uint64_t calendar_claim_ends(const struct sched *s, const struct claim *c)
{
    return calendar_until(c->line->head, begins(s, c));
}

bool calendar_overlaps(const struct sched *s, const struct claim *c, uint64_t from_ms,
                       uint64_t until_ms)
{
    return begins(s, c) < until_ms && from_ms < calendar_claim_ends(s, c);
}

static bool is_there(const struct sched *s, const struct wanted *w, const struct claim *c,
                     uint64_t ms, enum sched_basis trust)
{
    if (c == w->self)
        return false;
    if (w->others == CLAIMS_BEGUN && c->basis == SCHED_BASIS_UNKNOWN)
        return true;
    if (w->others == CLAIMS_FIRM &&
        (c->basis > SCHED_BASIS_LIMITS || c->start_ms <= s->now_ms))
        return false;
    if (c->basis > trust && begins(s, c) <= ms) /* it may begin later, so end later */
        return true;
    return calendar_overlaps(s, c, ms, later(ms, 1));
}

/* All that is there at `ms`, but for what ends before as far as that is trusted. */
static void fill(const struct sched *s, const struct wanted *w, uint32_t node, uint64_t ms,
                 enum sched_basis trust, struct instant *t)
{
    empty(s, node, t);
    for (const struct occupant *o = s->hold[node].lease; o; o = o->next) {
        struct ending e = calendar_ending(s, o->r);
        if (e.ms > ms || e.basis > trust)
            put(s, t, option_ask(&o->r->form->option[o->r->option], o->place),
                &o->r->place[o->place]);
    }
    for (const struct occupant *o = s->hold[node].claim; o; o = o->next)
        if (is_there(s, w, o->claim, ms, trust))
            put(s, t, claim_ask(o->claim, o->place), &o->claim->place[o->place]);
}

/* Do the wanted places have what they use at that time – or the other, of that? */
static bool holds_at(const struct sched *s, const struct wanted *w, uint32_t node,
                     uint64_t ms, enum sched_basis trust, const struct occupant *other)
{
    struct instant t;
    fill(s, w, node, ms, trust, &t);
    for (uint32_t i = 0; i < w->count; i++)
        if (w->place[i].node == node)
            put(s, &t, option_ask(w->option, i), &w->place[i]);
    for (uint32_t i = 0; i < w->count; i++) {
        const struct pool_ask *a = option_ask(w->option, i), *b = a;
        const struct pool_place *at = &w->place[i], *bt = at;
        if (other) {
            b = claim_ask(other->claim, other->place);
            bt = &other->claim->place[other->place];
        }
        if (at->node == node && !has(&t, a, at, b, bt))
            return false;
    }
    return true;
}

/* It has its place when it begins, and so has each that begins while it runs. */
bool calendar_holds(const struct sched *s, const struct wanted *w, uint32_t node,
                    uint64_t from_ms, uint64_t until_ms, enum sched_basis trust)
{
    if (!holds_at(s, w, node, from_ms, trust, NULL))
        return false;
    for (const struct occupant *o = s->hold[node].claim; o; o = o->next) {
        uint64_t ms = begins(s, o->claim);
        if (ms > from_ms && ms < until_ms &&
            is_there(s, w, o->claim, ms, o->claim->basis) &&
            !holds_at(s, w, node, ms, o->claim->basis, o))
            return false;
    }
    return true;
}

/* The first time after `ms` at which something ends on the node. */
static uint64_t next_end(const struct sched *s, const struct wanted *w, uint32_t node,
                         uint64_t ms, enum sched_basis trust)
{
    uint64_t next = UINT64_MAX;
    for (const struct occupant *o = s->hold[node].lease; o; o = o->next) {
        struct ending e = calendar_ending(s, o->r);
        if (e.ms > ms && e.basis <= trust)
            next = min_u64(next, e.ms);
    }
    for (const struct occupant *o = s->hold[node].claim; o; o = o->next)
        if (o->claim != w->self && calendar_claim_ends(s, o->claim) > ms)
            next = min_u64(next, calendar_claim_ends(s, o->claim));
    return next;
}

uint64_t calendar_earliest(const struct sched *s, const struct wanted *w, uint64_t lasts_ms,
                           enum sched_basis trust)
{
    uint64_t start = s->now_ms;
    bool moved = true;
    while (moved && start != UINT64_MAX) {
        moved = false;
        for (uint32_t i = 0; i < w->count && start != UINT64_MAX; i++) {
            uint32_t node = w->place[i].node;
            if (i && node == w->place[i - 1].node)
                continue;
            while (start != UINT64_MAX &&
                   !calendar_holds(s, w, node, start, later(start, lasts_ms), trust)) {
                start = next_end(s, w, node, start, trust);
                moved = true;
            }
        }
    }
    return start;
}
