/*
 * The account of a share: what it was charged, what income its promise gave it,
 * and when that lets it be served.
 *
 * Income runs on the device's deliverable clock (wall time less hand-off gaps),
 * cost is the time for which the lease held the device.  A balance is
 * permille * deliverable - 1000 * held, exact in integers, so the balances of
 * leases that are promised the whole device sum to the time it stood idle: at
 * any moment one of them may be served.
 */
#include "internal.h"

/* More than any turn, less than what would overflow a balance. */
#define MAX_STEP_NS (1000000 * NS_PER_S)
#define MAX_DEBT    ((int64_t)1000000000000000000) /* 11 days of device time */
#define VT_WRAP     (1ull << 62)

uint64_t account_base_turn(const struct device *d, uint32_t weight)
{
    return min_u64(d->turn_ns, SHARE_WINDOW_NS / 40 * weight / 1000);
}

static uint64_t least_turn(const struct share *s)
{
    return share_is_besteffort(s) ? s->device->turn_ns
                                  : account_base_turn(s->device, share_weight(s));
}

/* As it was last granted, but no longer than a lease of this weight can have one: beside
 * smaller ones turns are long, and who loses one in the middle to a pause of its host
 * thread must not lose the rest of it for good. */
static uint64_t own_turn(const struct share *s)
{
    if (share_is_besteffort(s))
        return s->device->turn_ns;
    uint64_t most = SHARE_WINDOW_NS / 40 * share_weight(s) / 1000;
    return max_u64(min_u64(s->turn_ns, most), least_turn(s));
}

void account_advance(struct device *d, uint64_t now_ns)
{
    uint64_t dt = sub_sat_u64(now_ns, d->advanced_ns);
    if (d->gap)
        d->gap_ns += dt;
    else
        d->deliverable_ns += dt;
    d->advanced_ns += dt;
}

/* What a turn costs beyond the income during it. */
static int64_t turn_cost(uint64_t turn_ns, uint32_t permille)
{
    return (int64_t)(turn_ns * (1000 - permille));
}

/* Who is owed more than two base turns goes before priorities. */
static int64_t overdue_above(const struct share *s)
{
    return 2 * turn_cost(least_turn(s), s->request);
}

/* The most promise that may be kept: idling is no delay, so it never makes overdue. */
static int64_t request_cap(const struct share *s, bool idle, bool borrows)
{
    if (borrows)
        return turn_cost(least_turn(s), s->request);
    if (!idle)
        return (int64_t)(CREDIT_NS * 1000);
    int64_t turn = turn_cost(own_turn(s), s->request), overdue = overdue_above(s);
    return turn < overdue ? turn : overdue;
}

/* A lease that waits piles up what it is owed; one that idles keeps one turn, one that has
 * the device to itself one base turn.  While it holds, cutting would lose income. */
static void clamp_balances(struct share *s)
{
    bool idle = !s->holds && !s->waits && !share_is_late(s);
    bool borrows = s->holds && !s->on_promise;
    int64_t most = (int64_t)(CREDIT_NS * 1000);
    int64_t limit_most = idle ? turn_cost(own_turn(s), s->limit) : most;
    int64_t request_most = request_cap(s, idle, borrows);

    if (!share_is_capped(s))
        s->limit_balance = 0;
    else if (s->limit_balance < -MAX_DEBT)
        s->limit_balance = -MAX_DEBT;
    else if (!s->holds && s->limit_balance > limit_most)
        s->limit_balance = limit_most;

    if (share_is_capped(s) && s->request == s->limit) {
        s->request_balance = s->limit_balance;
        return;
    }
    if (s->request_balance < -most)
        s->request_balance = -most;
    if (!(s->holds && s->on_promise) && s->request_balance > request_most)
        s->request_balance = request_most;
}

/* Virtual time only compares: take the same from all before it wraps. */
static void rebase(struct device *d)
{
    EACH(s, &d->shares, struct share, member)
        s->vt = sub_sat_u64(s->vt, VT_WRAP / 2);
    d->vt = sub_sat_u64(d->vt, VT_WRAP / 2);
    d->besteffort_vt = sub_sat_u64(d->besteffort_vt, VT_WRAP / 2);
}

/* Of the last `dt`, what counts against a share that is late: all until its command
 * has run for max-kernel.  That is an event; a process stopped for a night need not
 * pay with the next one. */
static uint64_t late_debt(const struct share *s, uint64_t dt, uint64_t now_ns)
{
    uint64_t end_ns = s->deadline_ns + share_max_kernel_ns(s);
    return min_u64(dt, sub_sat_u64(end_ns, now_ns - dt));
}

static void charge(struct share *s, uint64_t dt, uint64_t now_ns)
{
    uint64_t cost = s->holds ? dt : late_debt(s, dt, now_ns);
    s->held_ns += dt;
    s->device->held_ns += dt;
    s->vt += cost * 1000 / share_weight(s);
    s->limit_balance -= (int64_t)(cost * 1000);
    /* what is borrowed above the request is no debt against it */
    if (s->on_promise || !s->holds)
        s->request_balance -= (int64_t)(cost * 1000);
    if (!s->holds)
        s->overrun_ns += dt;
    if (s->vt > VT_WRAP)
        rebase(s->device);
}

void account_sync(struct share *s, uint64_t now_ns)
{
    struct device *d = s->device;
    account_advance(d, now_ns);

    uint64_t dt = min_u64(sub_sat_u64(now_ns, s->synced_ns), MAX_STEP_NS);
    uint64_t income = min_u64(d->deliverable_ns - s->synced_deliverable, MAX_STEP_NS);
    s->synced_ns = max_u64(now_ns, s->synced_ns);
    s->synced_deliverable = d->deliverable_ns;
    if (dt == 0) /* between the end of a turn and the next request no time passes */
        return;

    s->limit_balance += (int64_t)(income * s->limit);
    s->request_balance += (int64_t)(income * s->request);
    if (s->holds || share_is_late(s))
        charge(s, dt, now_ns);
    else if (s->waits)
        s->wait_ns += dt;
    else
        s->away = true;
    clamp_balances(s);
}

void account_refund(struct share *s, uint64_t ns)
{
    ns = min_u64(ns, s->held_ns);
    s->held_ns -= ns;
    s->device->held_ns -= min_u64(ns, s->device->held_ns);
    s->vt = sub_sat_u64(s->vt, ns * 1000 / share_weight(s));
    s->limit_balance += (int64_t)(ns * 1000);
}

void account_note_virtual_time(struct share *s)
{
    struct device *d = s->device;
    bool besteffort = share_is_besteffort(s);
    uint64_t *vt = besteffort ? &d->besteffort_vt : &d->vt;
    uint64_t least = NEVER;
    EACH(o, &d->holders, struct share, queue) {
        account_sync(o, d->advanced_ns);
        if (share_is_besteffort(o) == besteffort)
            least = min_u64(least, o->vt);
    }
    EACH(o, &d->waiting, struct share, queue)
        if (o->in_contest && share_is_besteffort(o) == besteffort)
            least = min_u64(least, o->vt);
    if (least != NEVER)
        *vt = max_u64(*vt, least);
}

void account_return(struct share *s)
{
    if (!s->away)
        return;
    s->away = false;
    account_note_virtual_time(s);
    uint64_t base = share_is_besteffort(s) ? s->device->besteffort_vt : s->device->vt;
    uint64_t banked = own_turn(s) * 1000 / share_weight(s);
    s->vt = max_u64(s->vt, sub_sat_u64(base, banked));
}

bool account_has_promise(const struct share *s)
{
    return !share_is_besteffort(s) && s->request_balance >= 0;
}

bool account_is_overdue(const struct share *s)
{
    return s->request_balance > overdue_above(s);
}

/* Of a balance below zero: how long its income takes to bring it back. */
static uint64_t pause_of(const struct share *s)
{
    if (!share_is_capped(s) || s->limit_balance >= 0)
        return 0;
    return ((uint64_t)-s->limit_balance + s->limit - 1) / s->limit;
}

uint64_t account_pause_ns(const struct share *s)
{
    uint64_t pause = pause_of(s);
    const struct lease *lease = s->lease;
    for (uint32_t i = 0; lease->slice_count > 1 && i < lease->slice_count; i++)
        if (lease->share[i].waits)
            pause = max_u64(pause, pause_of(&lease->share[i]));
    return pause;
}

bool account_eligible(const struct share *s)
{
    const struct lease *lease = s->lease;
    for (uint32_t i = 0; lease->slice_count > 1 && i < lease->slice_count; i++)
        if (share_is_late(&lease->share[i]))
            return false;
    return account_pause_ns(s) == 0;
}
