/*
 * The governor: which lease has the device next, for how long, and when to look
 * again.  The rules and their reasons are in docs/internals/governor.md.
 */
#include "internal.h"

/* ---- who ---------------------------------------------------------------- */

/* Another device is kept for this lease, or busy with a kernel of it that may spin
 * for its peer here.  That never takes what another lease was promised. */
static bool is_awaited(const struct share *s)
{
    bool awaited = s->claims;
    for (uint32_t i = 0; s->lease->slice_count > 1 && i < s->lease->slice_count; i++) {
        const struct share *other = &s->lease->share[i];
        awaited =
            awaited || (other->holds && !other->kept && s->synced_ns >= other->deadline_ns);
    }
    return awaited && account_has_promise(s);
}

/* Priority, but who is owed two turns has waited long enough for others' priority. */
static uint32_t rank(const struct share *s)
{
    return account_is_overdue(s) ? 101 : s->lease->priority;
}

/* Does `a` go before `b`?  First who is awaited elsewhere, then what the request
 * promises, the higher priority first, then who is furthest behind. */
static bool goes_before(const struct share *a, const struct share *b)
{
    bool awaited = is_awaited(a);
    if (awaited != is_awaited(b))
        return awaited;
    if (share_is_besteffort(a) != share_is_besteffort(b))
        return share_is_besteffort(b);
    bool promise = account_has_promise(a);
    if (promise != account_has_promise(b))
        return promise;
    if (promise && rank(a) != rank(b))
        return rank(a) > rank(b);
    return a->vt < b->vt;
}

static struct share *pick(struct device *d)
{
    struct share *best = NULL;
    EACH(s, &d->waiting, struct share, queue)
        if (s->in_contest && (!best || goes_before(s, best)))
            best = s;
    return best;
}

/* Bring the waiting shares up to date and see which of them may be served. */
static void update_contest(struct device *d, uint64_t now_ns)
{
    EACH(s, &d->waiting, struct share, queue) {
        account_sync(s, now_ns);
        bool eligible = account_eligible(s);
        if (eligible && !s->in_contest) {
            account_return(s);
            s->fresh = true;
        }
        s->away = s->away || !eligible;
        s->in_contest = eligible;
        if (eligible && s->lease != d->last)
            d->contest_ns = now_ns;
    }
}

/* ---- how long ------------------------------------------------------------ */

struct contest {
    bool any;          /* somebody waits */
    bool rival;        /* ... for whom this holder's turn must end */
    bool fresh;        /* ... and who was not there at the last look */
    bool owed;         /* ... and woke to its promise, while the holder has had its own */
    bool stronger;     /* ... and must be served at once */
    uint32_t weight;   /* the smallest of holder and rivals */
    uint32_t permille; /* the requests of them all */
};

static struct contest contest_of(const struct device *d, const struct share *holder)
{
    struct contest c = { .weight = share_weight(holder), .permille = holder->request };
    EACH(s, &d->waiting, struct share, queue) {
        if (!s->in_contest)
            continue;
        c.any = true;
        if (share_is_besteffort(s) && !share_is_besteffort(holder))
            continue;
        c.rival = true;
        c.weight = min_u64(c.weight, share_weight(s));
        c.permille += s->request;
        if (!s->fresh)
            continue;
        c.fresh = true;
        c.owed =
            c.owed || (s->woke && account_has_promise(s) && !account_has_promise(holder));
        c.stronger =
            c.stronger || (share_is_besteffort(holder) && !share_is_besteffort(s)) ||
            (s->lease->priority > holder->lease->priority && account_has_promise(s));
    }
    return c;
}

/* Beside rivals that are promised the whole device nothing is borrowed; else what
 * runs without a promise of its own is. */
static bool is_on_promise(const struct share *s, const struct contest *c)
{
    return c->rival && (c->permille >= 1000 || account_has_promise(s));
}

static uint64_t base_turn(const struct share *s, const struct contest *c)
{
    return share_is_besteffort(s) ? s->device->turn_ns
                                  : account_base_turn(s->device, c->weight);
}

/* Nobody else wants it: open, or until the balance of one with a limit runs out. */
static uint64_t alone_deadline(const struct share *s)
{
    if (!share_is_capped(s))
        return SLOT_OPEN;
    uint64_t turn = share_is_besteffort(s) ? s->device->turn_ns
                                           : account_base_turn(s->device, share_weight(s));
    uint64_t rest = 0;
    if (s->limit_balance > 0)
        rest = (uint64_t)s->limit_balance / (1000 - s->limit);
    return max_u64(s->begin_ns + turn, s->synced_ns + rest);
}

/* A turn that begins: the smallest lease gets the base turn, others in proportion. */
static uint64_t first_deadline(struct share *s, const struct contest *c)
{
    if (s->device->concurrent || !c->rival)
        return alone_deadline(s);
    s->turn_ns = base_turn(s, c);
    if (!share_is_besteffort(s))
        s->turn_ns = s->turn_ns * share_weight(s) / c->weight;
    return s->begin_ns + s->turn_ns;
}

static void clear_fresh(struct device *d)
{
    EACH(s, &d->waiting, struct share, queue)
        s->fresh = false;
}

/* Somebody joined or left: rewrite the holder's deadline. */
static void restate(struct ledger *l, struct share *s, uint64_t now_ns)
{
    struct contest c = { 0 };
    account_sync(s, now_ns);
    if (!s->device->concurrent)
        c = contest_of(s->device, s);
    uint64_t deadline = s->deadline_ns;

    if (!c.rival && (s->rivalled || s->restate)) {
        deadline = alone_deadline(s);
    } else if (c.rival && (c.fresh || !s->rivalled)) {
        uint64_t base = base_turn(s, &c);
        if (c.owed)
            base = min_u64(base, LEAST_TURN_NS);
        uint64_t end = max_u64(now_ns, s->begin_ns + base);
        deadline = min_u64(deadline, c.stronger ? now_ns : end);
    }
    if (c.rival != s->rivalled)
        s->on_promise = is_on_promise(s, &c);
    s->rivalled = c.rival;
    s->restate = false;
    turn_set_terms(l, s, deadline, c.any, now_ns);
    if (!c.rival && !list_empty(&s->wanting))
        turn_fill(l, s, now_ns);
}

/* ---- beginning ------------------------------------------------------------ */

static void begin(struct ledger *l, struct share *s, uint64_t now_ns)
{
    struct contest c = { 0 };
    if (s->holds)
        account_sync(s, now_ns);
    else
        turn_hold(l, s, now_ns);
    s->begin_ns = now_ns; /* a kept device is charged from before, by the account */
    if (!s->device->concurrent)
        c = contest_of(s->device, s);
    s->contended = c.any;
    s->rivalled = c.rival;
    s->on_promise = is_on_promise(s, &c);
    s->restate = false;
    s->deadline_ns = first_deadline(s, &c);
    turn_begin(l, s, now_ns);
}

static bool is_free(const struct device *d)
{
    return d->concurrent || list_empty(&d->holders);
}

/* All devices that the lease wants, with one deadline. */
static void begin_together(struct ledger *l, struct share *s, uint64_t now_ns)
{
    struct lease *lease = s->lease;
    uint64_t deadline_ns = SLOT_OPEN;
    bool begun[PROTO_MAX_SLOTS] = { false };
    for (uint32_t i = 0; i < lease->slice_count; i++) {
        struct share *other = &lease->share[i];
        if (other != s && !other->waits && !other->kept)
            continue;
        other->device->dirty = true;
        begin(l, other, now_ns);
        begun[i] = true;
        deadline_ns = min_u64(deadline_ns, other->deadline_ns);
    }
    for (uint32_t i = 0; i < lease->slice_count; i++)
        if (begun[i])
            turn_set_terms(l, &lease->share[i], deadline_ns, lease->share[i].contended,
                           now_ns);
}

/* Turns of a lease on several devices begin together: a kernel of one spins until
 * its peers run.  Where one is not free yet, this one is kept. */
static void start(struct ledger *l, struct share *s, uint64_t now_ns)
{
    struct lease *lease = s->lease;
    bool all_free = true;
    for (uint32_t i = 0; i < lease->slice_count; i++) {
        struct share *other = &lease->share[i];
        if (other == s || !other->waits || is_free(other->device))
            continue;
        all_free = false;
        if (!other->claims)
            other->device->dirty = other->claims = other->fresh = true;
    }
    if (!all_free && !s->holds) {
        turn_hold(l, s, now_ns);
        s->kept = s->on_promise = true;
        s->deadline_ns = SLOT_OPEN;
    }
    if (all_free)
        begin_together(l, s, now_ns);
}

static void serve(struct ledger *l, struct device *d, uint64_t now_ns)
{
    if (d->concurrent) {
        EACH(s, &d->waiting, struct share, queue)
            if (s->in_contest)
                start(l, s, now_ns);
        return;
    }
    if (list_empty(&d->holders)) {
        struct share *s = pick(d);
        if (s)
            start(l, s, now_ns);
    } else {
        struct share *s = CONTAINER(d->holders.next, struct share, queue);
        if (s->kept)
            start(l, s, now_ns);
    }
    d->gap = false;
}

/* ---- when ----------------------------------------------------------------- */

static uint64_t next_look(struct ledger *l, struct device *d, uint64_t now_ns)
{
    uint64_t next = NEVER;
    EACH(s, &d->holders, struct share, queue) {
        if (s->kept)
            continue;
        next = min_u64(next, s->look_ns);
        if (s->deadline_ns > now_ns)
            next = min_u64(next, s->deadline_ns);
    }
    EACH(s, &d->waiting, struct share, queue) {
        if (s->in_contest)
            continue;
        uint64_t pause = account_pause_ns(s); /* 0: a sibling is late */
        next = min_u64(next, now_ns + (pause ? pause : TICK_NS));
    }
    return next;
}

static void look_at_holders(struct ledger *l, struct device *d, uint64_t now_ns)
{
    EACH(s, &d->holders, struct share, queue)
        if (!s->kept && (now_ns >= s->look_ns || now_ns >= s->deadline_ns))
            turn_look(l, s, now_ns);
}

static uint64_t run_device(struct ledger *l, struct device *d, uint64_t now_ns)
{
    uint64_t late_next = NEVER;
    d->dirty = false;
    account_advance(d, now_ns);
    look_at_holders(l, d, now_ns);
    EACH(s, &d->lates, struct share, queue)
        late_next = min_u64(late_next, turn_look_late(l, s, now_ns));

    update_contest(d, now_ns);
    serve(l, d, now_ns);
    EACH(s, &d->holders, struct share, queue)
        if (!s->kept)
            restate(l, s, now_ns);
    clear_fresh(d);

    /* a drain or a deadline may be due at this very moment */
    EACH(s, &d->holders, struct share, queue)
        if (!s->kept && now_ns >= s->look_ns)
            d->dirty = true;
    return min_u64(next_look(l, d, now_ns), late_next);
}

uint64_t ledger_run(struct ledger *l, uint64_t now_ns)
{
    l->now_ns = max_u64(l->now_ns, now_ns);
    now_ns = l->now_ns;
    uint64_t next = memory_publish_due(l);

    /* what happens on one device of a spanning lease may matter on another */
    for (int round = 0; round < 4; round++) {
        bool again = false;
        for (uint32_t i = 0; i < l->device_count; i++) {
            struct device *d = &l->device[i];
            if (!d->present || (!d->dirty && now_ns < d->next_ns))
                continue;
            d->next_ns = run_device(l, d, now_ns);
            again = true;
        }
        if (!again)
            break;
    }
    for (uint32_t i = 0; i < l->device_count; i++)
        if (l->device[i].present)
            next = min_u64(next, l->device[i].dirty ? now_ns : l->device[i].next_ns);
    return next;
}
