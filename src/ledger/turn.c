/*
 * A turn on the page: granting it to the seats of a share, seeing whether they
 * work, and taking it back.
 *
 * The page is hostile.  Its state word is only ever compared and swapped a
 * bounded number of times, or exchanged outright where the answer does not
 * matter; a lie in its counts costs the liar its own turn or is charged to it.
 */
#include "internal.h"

/* Where turns are shorter than tau, one that never submits would stand for ever. */
#define UNUSED_TURNS 8

static uint32_t slot_state(const struct seat *seat)
{
    return atomic_load_explicit(&seat->slot->state, memory_order_acquire);
}

void seat_init(struct seat *seat, struct client *c, struct share *s,
               struct proto_slot *slot)
{
    list_init(&seat->member);
    seat->client = c;
    seat->share = s;
    seat->slot = slot;
    seat->state = SEAT_IDLE;
    seat->wants_after = false;
    seat->unused = 0;
}

/* ---- waiting ----------------------------------------------------------- */

void share_requeue(struct share *s, uint64_t now_ns)
{
    bool waits =
        !list_empty(&s->wanting) && !s->holds && !share_is_late(s) && !s->lease->dropped;
    if (waits == s->waits)
        return;
    account_sync(s, now_ns);
    s->waits = waits;
    s->in_contest = s->fresh = false;
    s->woke = waits && s->away;
    s->device->dirty = true;
    if (waits) {
        list_append(&s->device->waiting, &s->queue);
    } else {
        s->claims = false;
        list_remove(&s->queue);
    }
}

static void seat_want(struct seat *seat, uint64_t now_ns)
{
    list_append(&seat->share->wanting, &seat->member);
    seat->state = SEAT_WANTS;
    share_requeue(seat->share, now_ns);
}

/* ---- granting ---------------------------------------------------------- */

/* Bounds are divided by a power of two, so that a lease whose processes come
 * one by one does not rewrite all pages each time. */
static uint32_t round_up_members(uint32_t count)
{
    uint32_t members = 1;
    while (members < count)
        members *= 2;
    return members;
}

static void seat_write_bounds(const struct share *s, struct seat *seat)
{
    uint32_t items = max_u64(1, FLIGHT_ITEMS / s->bound_members);
    uint64_t ns = (s->calm ? CALM_FLIGHT_NS : FLIGHT_NS) / s->bound_members;
    if (share_is_besteffort(s)) {
        items = 1;
        ns = 0;
    }
    atomic_store_explicit(&seat->slot->flight_bound_items, items, memory_order_relaxed);
    atomic_store_explicit(&seat->slot->flight_bound_ns, ns, memory_order_relaxed);
}

static void seat_write_terms(const struct share *s, struct seat *seat)
{
    atomic_store_explicit(&seat->slot->contended, s->contended, memory_order_relaxed);
    atomic_store_explicit(&seat->slot->deadline_ns, s->deadline_ns, memory_order_release);
}

/* Every half of the bound wakes a thread of the program, which costs it 1 to 2 % where that
 * thread shares the device's cores.  So where nobody has come for a while, more is let in
 * flight: who does come then waits for it once, and it is charged. */
static void set_bounds(struct share *s, uint32_t members, uint64_t now_ns)
{
    bool calm = s->deadline_ns == SLOT_OPEN && !s->contended &&
                now_ns - s->device->contest_ns >= CALM_NS;
    if (members == s->bound_members && calm == s->calm)
        return;
    s->bound_members = members;
    s->calm = calm;
    EACH(seat, &s->granted, struct seat, member)
        seat_write_bounds(s, seat);
}

static void seat_grant(struct ledger *l, struct seat *seat, uint64_t now_ns)
{
    struct share *s = seat->share;
    list_remove(&seat->member);
    list_append(&s->granted, &seat->member);
    s->granted_count++;
    seat->state = SEAT_HOLDS;
    seat->idle = true;
    seat->idle_ns = seat->looked_ns = now_ns;
    seat->idle_ticks = 0;
    seat->back_ns = 0;
    seat->submitted = atomic_load_explicit(&seat->slot->submitted, memory_order_relaxed);
    seat->submitted_at_grant = seat->submitted;

    seat_write_bounds(s, seat);
    seat_write_terms(s, seat);
    atomic_fetch_add_explicit(&seat->slot->grants, 1, memory_order_relaxed);
    atomic_exchange_explicit(&seat->slot->state, SLOT_HELD, memory_order_acq_rel);
    client_wake(l, seat->client);
}

void turn_hold(struct ledger *l, struct share *s, uint64_t now_ns)
{
    struct device *d = s->device;
    account_sync(s, now_ns);
    if (s->waits)
        list_remove(&s->queue);
    s->waits = s->in_contest = s->fresh = s->claims = false;
    s->holds = true;
    s->begin_ns = s->busy_ns = s->contended_ns = now_ns;
    list_append(&d->holders, &s->queue);
    d->gap = false;
    d->handoffs += d->last != s->lease;
    d->last = s->lease;
    account_note_virtual_time(s);
}

/* Each active process may have one batch in flight whatever its length, so their
 * number bounds what a rival waits for. */
static bool has_place(const struct share *s)
{
    return !s->rivalled || s->granted_count < ACTIVE_MEMBERS;
}

void turn_fill(struct ledger *l, struct share *s, uint64_t now_ns)
{
    if (!s->holds || s->kept || now_ns >= s->deadline_ns)
        return;
    EACH(seat, &s->wanting, struct seat, member) {
        if (!has_place(s))
            return;
        seat_grant(l, seat, now_ns);
        if (round_up_members(s->granted_count) > s->bound_members)
            set_bounds(s, round_up_members(s->granted_count), now_ns);
    }
}

void turn_begin(struct ledger *l, struct share *s, uint64_t now_ns)
{
    uint32_t count = 0;
    EACH(seat, &s->wanting, struct seat, member)
        count++;
    if (s->rivalled)
        count = min_u64(count, ACTIVE_MEMBERS);
    s->kept = false;
    s->turns++;
    s->busy_ns = now_ns;
    s->look_ns = now_ns + (s->contended ? TAU_NS : TICK_NS);
    set_bounds(s, round_up_members(count), now_ns);
    turn_fill(l, s, now_ns);
}

void turn_set_terms(struct ledger *l, struct share *s, uint64_t deadline_ns, bool contended,
                    uint64_t now_ns)
{
    if (s->deadline_ns == deadline_ns && s->contended == contended)
        return;
    if (contended && !s->contended) {
        s->contended_ns = now_ns;
        s->look_ns = now_ns;
    }
    if (deadline_ns <= now_ns)
        s->look_ns = now_ns;
    s->deadline_ns = deadline_ns;
    s->contended = contended;
    set_bounds(s, s->bound_members, now_ns);
    EACH(seat, &s->granted, struct seat, member) {
        seat_write_terms(s, seat);
        client_wake(l, seat->client);
    }
}

/* ---- ending ------------------------------------------------------------ */

void turn_end(struct ledger *l, struct share *s, uint64_t now_ns)
{
    account_sync(s, now_ns);
    s->overrun_ns += sub_sat_u64(now_ns, s->deadline_ns);
    s->holds = s->kept = false;
    list_remove(&s->queue);
    s->device->dirty = true;
    s->device->gap = !list_empty(&s->device->waiting);
    if (share_is_late(s))
        list_append(&s->device->lates, &s->queue);
    share_requeue(s, now_ns);
}

/* Out of the turn, which ends with the last one. */
static void seat_drop(struct ledger *l, struct seat *seat, uint64_t now_ns)
{
    list_remove(&seat->member);
    seat->state = SEAT_IDLE;
    if (--seat->share->granted_count == 0)
        turn_end(l, seat->share, now_ns);
}

/* HELD|0 -> NONE; false if it is at work after all. */
static bool seat_take(struct ledger *l, struct seat *seat)
{
    uint32_t expected = SLOT_HELD;
    if (!atomic_compare_exchange_strong(&seat->slot->state, &expected, SLOT_NONE))
        return expected == SLOT_NONE;
    client_wake(l, seat->client);
    return true;
}

void seat_retire(struct ledger *l, struct seat *seat, uint64_t now_ns)
{
    struct share *s = seat->share;
    switch (seat->state) {
    case SEAT_IDLE:
        break;
    case SEAT_WANTS:
        list_remove(&seat->member);
        break;
    case SEAT_HOLDS:
        atomic_exchange(&seat->slot->state, SLOT_NONE);
        seat_drop(l, seat, now_ns);
        break;
    case SEAT_LATE:
        account_sync(s, now_ns);
        list_remove(&seat->member);
        if (!share_is_late(s)) {
            list_remove(&s->queue);
            s->stuck = false;
        }
        break;
    }
    seat->state = SEAT_IDLE;
    seat->wants_after = false;
    s->device->dirty = true;
    share_requeue(s, now_ns);
    if (s->kept && list_empty(&s->wanting))
        turn_end(l, s, now_ns);
}

/* ---- looking ----------------------------------------------------------- */

/* Is it at work, and if not, since when?  idle_since_ns is the tenant's word:
 * believed only between the last look and now. */
static void seat_look(struct seat *seat, uint32_t state, uint64_t now_ns)
{
    uint64_t submitted = atomic_load_explicit(&seat->slot->submitted, memory_order_relaxed);
    bool moved = submitted != seat->submitted;
    bool busy = SLOT_FLIGHT(state) > 0;
    if (!busy && (!seat->idle || moved)) {
        uint64_t said =
            atomic_load_explicit(&seat->slot->idle_since_ns, memory_order_relaxed);
        seat->idle_ns = min_u64(max_u64(said, seat->looked_ns), now_ns);
    }
    seat->idle = !busy;
    seat->submitted = submitted;
    seat->looked_ns = now_ns;
    seat->idle_ticks = busy || moved ? 0 : seat->idle_ticks + 1;
    struct share *s = seat->share;
    s->busy_ns = busy ? now_ns : max_u64(s->busy_ns, seat->idle_ns);
}

static bool seat_is_idle_for_tau(const struct seat *seat, uint64_t now_ns)
{
    return seat->idle && now_ns - seat->idle_ns >= TAU_NS;
}

/* A drained seat whose turn ends is between two launches, or had no time to see
 * that it was granted: its request stands, unless it has been idle for long. */
static bool seat_stands(struct seat *seat, uint64_t now_ns)
{
    bool used = seat->submitted != seat->submitted_at_grant;
    seat->unused = used ? 0 : seat->unused + 1;
    return seat->unused <= UNUSED_TURNS && !seat_is_idle_for_tau(seat, now_ns) &&
           !seat->share->lease->dropped;
}

/* Take the turn of a drained seat; it goes on wanting where its request stands. */
static void seat_interrupt(struct ledger *l, struct seat *seat, uint64_t now_ns)
{
    if (!seat->idle || !seat_take(l, seat))
        return;
    struct share *s = seat->share;
    bool stands = seat_stands(seat, now_ns);
    if (stands && s->granted_count > 1) {
        list_remove(&seat->member);
        s->granted_count--;
        seat_want(seat, now_ns);
    } else {
        seat_drop(l, seat, now_ns);
        if (stands)
            seat_want(seat, now_ns);
    }
}

/* More processes than places: who is between two launches makes room for who waits. */
static void rotate(struct ledger *l, struct share *s, uint64_t now_ns)
{
    if (list_empty(&s->wanting) || now_ns >= s->deadline_ns)
        return;
    uint32_t places = s->granted_count;
    EACH(seat, &s->granted, struct seat, member)
        if (!has_place(s) && places-- > 0) {
            seat_interrupt(l, seat, now_ns);
            turn_fill(l, s, now_ns);
        }
    turn_fill(l, s, now_ns);
    s->look_ns = min_u64(s->look_ns, now_ns + TAU_NS);
}

/* When the wait for what is in flight ends: after what the fronts predicted – each
 * knows only its own, so that is the sum –, which is believed for a second, and 50 ms. */
static uint64_t late_at(const struct share *s)
{
    uint64_t from = max_u64(s->deadline_ns, s->contended_ns), rest = 0;
    EACH(seat, &s->granted, struct seat, member) {
        uint64_t said =
            atomic_load_explicit(&seat->slot->predicted_end_ns, memory_order_relaxed);
        rest += min_u64(sub_sat_u64(said, from), REST_NS);
    }
    return from + min_u64(rest, REST_NS) + LATE_NS;
}

/* Go on without those that did not finish. */
static void pass_over(struct ledger *l, struct share *s, uint64_t now_ns)
{
    EACH(seat, &s->granted, struct seat, member) {
        list_remove(&seat->member);
        s->granted_count--;
        if (SLOT_FLIGHT(atomic_exchange(&seat->slot->state, SLOT_NONE)) > 0) {
            list_append(&s->late, &seat->member);
            seat->state = SEAT_LATE;
        } else {
            seat->state = SEAT_IDLE;
        }
        client_wake(l, seat->client);
    }
    turn_end(l, s, now_ns);
}

static void look_past_deadline(struct ledger *l, struct share *s, uint64_t now_ns)
{
    EACH(seat, &s->granted, struct seat, member)
        seat_interrupt(l, seat, now_ns);
    if (!s->holds)
        return;
    s->look_ns = now_ns + TAU_NS;
    if (!s->rivalled)
        return;
    uint64_t late_ns = late_at(s), from = max_u64(s->deadline_ns, s->contended_ns);
    s->stuck = now_ns - from > share_max_kernel_ns(s);
    if (now_ns >= late_ns)
        pass_over(l, s, now_ns);
    else
        s->look_ns = min_u64(s->look_ns, late_ns);
}

/* Is something of the lease in flight on another of its devices? */
static bool works_elsewhere(const struct share *s)
{
    for (uint32_t i = 0; i < s->lease->slice_count; i++) {
        const struct share *other = &s->lease->share[i];
        if (other == s)
            continue;
        EACH(seat, &other->granted, struct seat, member)
            if (SLOT_FLIGHT(slot_state(seat)) > 0)
                return true;
    }
    return false;
}

/* A drain does not end a turn at once: a program that launches, waits and
 * launches again would starve. */
static void look_contended(struct ledger *l, struct share *s, uint64_t now_ns)
{
    uint64_t idle_ns = 0;
    bool all_idle = true;
    EACH(seat, &s->granted, struct seat, member) {
        all_idle = all_idle && seat->idle;
        idle_ns = max_u64(idle_ns, seat->idle_ns);
    }
    if (!all_idle || works_elsewhere(s)) {
        s->look_ns = now_ns + TAU_NS;
    } else if (now_ns - idle_ns < TAU_NS) {
        s->look_ns = idle_ns + TAU_NS;
    } else {
        s->look_ns = now_ns + TAU_NS;
        EACH(seat, &s->granted, struct seat, member)
            if (seat_take(l, seat))
                seat_drop(l, seat, now_ns);
    }
}

/* Alone: no hurry, but what is charged must have been used. */
static void look_alone(struct ledger *l, struct share *s, uint64_t now_ns)
{
    s->look_ns = now_ns + TICK_NS;
    set_bounds(s, s->bound_members, now_ns);
    EACH(seat, &s->granted, struct seat, member) {
        if (seat->idle_ticks < 2 || !seat_take(l, seat))
            continue;
        if (s->granted_count == 1) {
            account_sync(s, now_ns);
            account_refund(s, now_ns - s->busy_ns);
        }
        seat_drop(l, seat, now_ns);
    }
}

/* It gave the turn back and its message is on the way: wait for that, since it
 * says whether more is wanted.  Without it the other lease would be seen waiting
 * alone at every deadline, and any pair of weights would become 50/50. */
static void look_given_back(struct ledger *l, struct seat *seat, uint64_t now_ns)
{
    seat->idle = false;
    seat->idle_ticks = 0;
    if (!seat->back_ns)
        seat->back_ns = now_ns;
    else if (now_ns - seat->back_ns >= TAU_NS)
        seat_drop(l, seat, now_ns);
}

void turn_look(struct ledger *l, struct share *s, uint64_t now_ns)
{
    bool given_back = false;
    EACH(seat, &s->granted, struct seat, member) {
        uint32_t state = slot_state(seat);
        if (state & SLOT_HELD) {
            seat_look(seat, state, now_ns);
        } else {
            given_back = true;
            look_given_back(l, seat, now_ns);
        }
    }
    if (!s->holds)
        return;
    if (now_ns >= s->deadline_ns)
        look_past_deadline(l, s, now_ns);
    else if (s->contended)
        look_contended(l, s, now_ns);
    else
        look_alone(l, s, now_ns);
    if (!s->holds)
        return;
    if (given_back)
        s->look_ns = min_u64(s->look_ns, now_ns + TAU_NS);
    rotate(l, s, now_ns);
    if (round_up_members(s->granted_count) * 2 <= s->bound_members)
        set_bounds(s, round_up_members(s->granted_count), now_ns);
}

uint64_t turn_look_late(struct ledger *l, struct share *s, uint64_t now_ns)
{
    EACH(seat, &s->late, struct seat, member) {
        uint64_t done = atomic_load_explicit(&seat->slot->completed, memory_order_acquire);
        uint64_t all = atomic_load_explicit(&seat->slot->submitted, memory_order_relaxed);
        if (done != all)
            continue;
        bool wants = seat->wants_after;
        seat_retire(l, seat, now_ns);
        if (wants && !s->lease->dropped)
            seat_want(seat, now_ns);
    }
    if (!share_is_late(s))
        return NEVER;
    s->stuck = now_ns - s->deadline_ns > share_max_kernel_ns(s);
    return now_ns + TICK_NS;
}

/* ---- messages ---------------------------------------------------------- */

static struct seat *seat_asking(struct ledger *l, uint32_t client, uint32_t slot,
                                uint64_t now_ns)
{
    struct seat *seat = seat_find(l, client, slot);
    l->now_ns = max_u64(l->now_ns, now_ns);
    if (!seat || !seat->slot || seat->client->suspect || seat->share->lease->dropped)
        return NULL;
    return seat;
}

/* The turn runs: a seat that asks has it at once, where there is a place. */
static void seat_serve(struct ledger *l, struct seat *seat, uint64_t now_ns)
{
    struct share *s = seat->share;
    if (seat->state == SEAT_WANTS && s->holds && !s->kept)
        turn_fill(l, s, now_ns);
}

/* A process that waits for one of its devices will want the others it uses: turns
 * of a spanning lease begin together. */
static void want_siblings(struct ledger *l, struct seat *seat, uint64_t now_ns)
{
    for (uint32_t i = 0; i < seat->share->lease->slice_count; i++) {
        struct seat *other = &seat->client->seat[i];
        if (other->state != SEAT_IDLE ||
            atomic_load_explicit(&other->slot->submitted, memory_order_relaxed) == 0)
            continue;
        seat_want(other, now_ns);
        seat_serve(l, other, now_ns);
    }
}

void ledger_want(struct ledger *l, uint32_t client, uint32_t slot, uint64_t now_ns)
{
    struct seat *seat = seat_asking(l, client, slot, now_ns);
    if (!seat)
        return;
    seat->unused = 0;
    if (seat->state == SEAT_LATE) {
        seat->wants_after = true;
        return;
    }
    if (seat->state == SEAT_HOLDS) {
        if (slot_state(seat) & SLOT_HELD)
            return;                 /* crossed with the grant */
        seat_drop(l, seat, now_ns); /* gave back; its release is on the way */
    }
    if (seat->state == SEAT_IDLE)
        seat_want(seat, now_ns);
    seat_serve(l, seat, now_ns);
    if (seat->state == SEAT_WANTS)
        want_siblings(l, seat, now_ns);
}

void ledger_release(struct ledger *l, uint32_t client, uint32_t slot, bool more,
                    uint64_t now_ns)
{
    struct seat *seat = seat_asking(l, client, slot, now_ns);
    if (!seat)
        return;
    if (seat->state == SEAT_LATE)
        seat->wants_after = seat->wants_after || more;
    if (seat->state == SEAT_HOLDS) {
        if (slot_state(seat) & SLOT_HELD)
            return; /* of an older turn: crossed with a new grant */
        seat_drop(l, seat, now_ns);
    }
    if (more && seat->state == SEAT_IDLE)
        seat_want(seat, now_ns);
}
