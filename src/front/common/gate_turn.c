/* The turn: taking it, waiting for it, giving it back; and the clock of our own
 * that stands in for the broker while it is away. */
#include "gate_internal.h"

#include <stddef.h>

#include "core/clock.h"
#include "core/futex.h"
#include "core/macros.h"

#define WAIT_NS       (100 * NS_PER_MS) /* then look whether the broker lives */
#define WANT_AGAIN_NS NS_PER_S          /* a message may be lost with a broker */
#define SOON_NS       NS_PER_MS         /* the broker keeps an idle turn for so long */
#define GAP_MAX_NS    (100 * NS_PER_MS)
#define OWN_PERIOD_NS (16 * NS_PER_MS)

#define relaxed memory_order_relaxed

bool gate_is_bounded(const struct proto_slot *s)
{
    return atomic_load_explicit(&s->contended, relaxed) ||
           atomic_load_explicit(&s->deadline_ns, relaxed) != SLOT_OPEN;
}

/* The page that a slot is in; not for &g->own. */
static struct proto_page *page_of(const struct gate *g, struct proto_slot *s)
{
    return (struct proto_page *)((char *)(s - g->index) -
                                 offsetof(struct proto_page, slot));
}

bool gate_turn_holds(const struct proto_slot *s, uint32_t turn)
{
    return (atomic_load_explicit(&s->state, memory_order_acquire) & SLOT_HELD) &&
           atomic_load_explicit(&s->grants, relaxed) == turn;
}

/* ---- by our own clock -------------------------------------------------- */

/* The last rate: what was requested, in burst mode the limit; a besteffort
 * lease has no request and gets one percent. */
static uint32_t own_permille(const struct proto_slot *s)
{
    uint32_t p = atomic_load_explicit(
        s->mode == PROTO_BURST ? &s->limit_permille : &s->request_permille, relaxed);
    return p == 0 ? 10 : p > 1000 ? 1000 : p;
}

static void own_grant(struct gate *g, uint64_t now)
{
    struct proto_slot *own = &g->own;
    uint32_t p = own_permille(own);
    g->own_start_ns = now;
    atomic_store(&own->deadline_ns, p == 1000 ? SLOT_OPEN : now + OWN_PERIOD_NS * p / 1000);
    atomic_store(&own->idle_since_ns, now);
    atomic_fetch_add(&own->grants, 1);
    atomic_store(&own->state, SLOT_HELD);
}

/* Used for `held`: pause so that held / (held + pause) is the share. */
static void own_release(struct gate *g)
{
    uint64_t end = atomic_load(&g->own.idle_since_ns);
    uint64_t held = sub_sat_u64(end, g->own_start_ns);
    uint32_t p = own_permille(&g->own);
    g->own_next_ns = end + held * (1000 - p) / p;
}

static void own_begin(struct gate *g, const struct proto_slot *last)
{
    struct proto_slot *own = &g->own;
    own->mode = last->mode;
    atomic_store(&own->request_permille, atomic_load(&last->request_permille));
    atomic_store(&own->limit_permille, atomic_load(&last->limit_permille));
    atomic_store(&own->flight_bound_ns, atomic_load(&last->flight_bound_ns));
    atomic_store(&own->flight_bound_items, atomic_load(&last->flight_bound_items));
    atomic_store(&own->state, SLOT_NONE);
    g->own_next_ns = 0;
    atomic_store_explicit(&g->slot, own, memory_order_release);
}

void gate_follow_link(struct gate *g)
{
    struct link *l = g->gates->link;
    struct proto_slot *s = atomic_load_explicit(&g->slot, relaxed);
    uint32_t generation = atomic_load(&l->generation);
    if (atomic_load(&l->state) == LINK_UP) {
        if (s != &g->own && generation == g->page_generation)
            return;
        g->page_generation = generation;
        g->wanted = false;
        atomic_store_explicit(&g->slot, &link_page(l)->slot[g->index],
                              memory_order_release);
    } else if (s != &g->own) {
        own_begin(g, s);
    }
}

/* ---- giving it back ---------------------------------------------------- */

/* HELD|0 -> NONE after the deadline; false when the broker was first. */
static bool end_turn(struct gate *g, struct proto_slot *s, uint64_t now,
                     struct gate_after *after)
{
    uint32_t idle = SLOT_HELD;
    if (!atomic_compare_exchange_strong(&s->state, &idle, SLOT_NONE))
        return false;
    if (s == &g->own) {
        own_release(g);
        after->wake_done = true;
        return true;
    }
    after->release = true;
    after->more =
        g->turn_waiters || g->flight_waiters || g->deferred_ready || g->gap_ns < SOON_NS;
    g->wanted = after->more;
    g->wanted_turn = atomic_load_explicit(&s->grants, relaxed);
    g->wanted_ns = now;
    return true;
}

void gate_turn_down(struct gate *g, struct proto_slot *s, uint32_t turn, uint64_t now,
                    struct gate_after *after)
{
    uint32_t state = atomic_load(&s->state);
    do {
        /* Another turn than the batch's: the broker passed over us. */
        if (!(state & SLOT_HELD) || SLOT_FLIGHT(state) == 0 ||
            atomic_load(&s->grants) != turn)
            return;
        if (SLOT_FLIGHT(state) == 1) /* before the broker can see it idle */
            atomic_store(&s->idle_since_ns, now);
    } while (!atomic_compare_exchange_weak(&s->state, &state, state - 1));

    if (SLOT_FLIGHT(state) != 1)
        return;
    after->wake_done = true;
    if (now >= atomic_load(&s->deadline_ns))
        end_turn(g, s, now, after);
}

/* ---- taking it --------------------------------------------------------- */

static bool has_room(const struct gate *g, const struct proto_slot *s, uint64_t cost)
{
    uint64_t bound_ns = atomic_load_explicit(&s->flight_bound_ns, relaxed);
    uint32_t bound_items = atomic_load_explicit(&s->flight_bound_items, relaxed);
    return g->flight_items == 0 || g->flight_items < bound_items ||
           g->flight_ns + cost <= bound_ns || (bound_ns == 0 && bound_items == 0);
}

/* From the last completion to the next submit: how long does this program
 * pause?  Not the time that it waits for a turn. */
static void note_gap(struct gate *g, uint64_t now)
{
    if (g->idle_ns)
        g->gap_ns = (3 * g->gap_ns + min_u64(now - g->idle_ns, GAP_MAX_NS)) / 4;
    g->idle_ns = 0;
}

static void ask_for_turn(struct gate *g, struct proto_slot *s, struct gate_after *after)
{
    uint32_t turn = atomic_load(&s->grants);
    uint64_t now = clock_now_ns();
    note_gap(g, now);
    if (g->wanted && g->wanted_turn == turn && now - g->wanted_ns < WANT_AGAIN_NS)
        return;
    g->wanted = after->want = true;
    g->wanted_turn = turn;
    g->wanted_ns = now;
}

/* No turn is held: get one from our own clock, or ask the broker. */
static bool find_turn(struct gate *g, struct proto_slot *s, struct gate_go *go,
                      struct gate_after *after)
{
    if (s != &g->own) {
        ask_for_turn(g, s, after);
        return false;
    }
    uint64_t now = clock_now_ns();
    go->retry_ns = g->own_next_ns;
    if (now < g->own_next_ns)
        return false;
    own_grant(g, now);
    return true;
}

enum gate_verdict gate_try_turn(struct gate *g, const struct gate_ask *ask,
                                struct gate_go *go, struct gate_after *after)
{
    for (;;) {
        gate_follow_link(g);
        struct proto_slot *s = atomic_load_explicit(&g->slot, relaxed);
        go->slot = s;
        go->retry_ns = 0;
        if (s != &g->own) {
            go->bell = atomic_load(&page_of(g, s)->bell);
            if (atomic_load(&g->gates->link->generation) != g->page_generation)
                continue; /* nobody rings the old page any more */
        }
        uint32_t state = atomic_load(&s->state);
        if (!(state & SLOT_HELD)) {
            if (!find_turn(g, s, go, after))
                return GATE_NO_TURN;
            continue;
        }
        uint64_t now = clock_now_ns();
        uint64_t deadline = atomic_load(&s->deadline_ns);
        uint64_t budget = deadline == SLOT_OPEN ? GATE_BATCH_OPEN_NS : GATE_BATCH_NS;
        if (deadline != SLOT_OPEN && !ask->nowait) {
            if (now >= deadline) {
                if (SLOT_FLIGHT(state) != 0)
                    return GATE_NO_ROOM;
                end_turn(g, s, now, after);
                continue;
            }
            budget = min_u64(budget, deadline - now);
        }
        if (g->flight_items >= GATE_BATCHES)
            return GATE_NO_ROOM;
        if (!ask->nowait) {
            uint64_t cost = max_u64(ask->cost_ns, budget);
            if (!has_room(g, s, cost) ||
                (ask->alone && g->flight_items != 0 && gate_is_bounded(s)))
                return GATE_NO_ROOM;
        }
        if (!atomic_compare_exchange_strong(&s->state, &state, state + 1))
            continue;
        note_gap(g, now);
        /* Now that something is in flight the turn cannot change below us. */
        go->turn = atomic_load(&s->grants);
        go->now_ns = now;
        go->budget_ns = budget;
        return GATE_GO;
    }
}

/* Do what was put off, with the lock free for that long. */
static void unlock_and_do(struct gate *g, struct gate_after *after)
{
    struct gate_after now = *after;
    *after = (struct gate_after){ 0 };
    pthread_mutex_unlock(&g->lock);
    gate_after(g, &now);
}

/* Sleep until the broker changed something since the last try: the bell counts that.  (The
 * turn word does not: a turn granted and taken again before we sleep leaves it as it was,
 * and nobody would ask for the next.)  g->lock is free meanwhile. */
static void sleep_for_turn(struct gate *g, const struct gate_go *go,
                           struct gate_after *after)
{
    struct proto_slot *s = go->slot;
    g->turn_waiters++;
    atomic_store_explicit(&s->waiting, g->turn_waiters, relaxed);
    uint32_t done = atomic_load(&g->done);
    unlock_and_do(g, after);

    if (s == &g->own) {
        uint64_t pause = sub_sat_u64(go->retry_ns, clock_now_ns());
        if (pause)
            futex_wait(&g->done, done, min_u64(pause, WAIT_NS));
    } else if (atomic_load(&g->gates->link->state) == LINK_UP) {
        futex_wait(&page_of(g, s)->bell, go->bell, WAIT_NS);
    }
    if (!(atomic_load(&s->state) & SLOT_HELD))
        link_check(g->gates->link);

    pthread_mutex_lock(&g->lock);
    g->turn_waiters--;
    atomic_store_explicit(&s->waiting, g->turn_waiters, relaxed);
}

/* Sleep until something in flight completes.  A batch that nothing senses
 * would be waited for in vain, so it is marked instead. */
static void sleep_for_room(struct gate *g, struct gate_after *after)
{
    if (gate_mark_one(g))
        return;
    uint64_t wait = gate_has_open(g) ? NS_PER_MS : WAIT_NS;
    uint32_t done = atomic_load(&g->done);
    g->flight_waiters++;
    unlock_and_do(g, after);
    futex_wait(&g->done, done, wait);
    pthread_mutex_lock(&g->lock);
    g->flight_waiters--;
}

bool gate_wait_turn(struct gate *g, struct gate_ask *ask, struct gate_go *go,
                    struct gate_after *after)
{
    enum gate_verdict v = gate_try_turn(g, ask, go, after);
    if (v == GATE_NO_TURN)
        sleep_for_turn(g, go, after);
    else if (v == GATE_NO_ROOM)
        sleep_for_room(g, after);
    /* Others that keep submitting must not starve an unseen kernel. */
    if (v == GATE_NO_ROOM && ask->alone)
        ask->alone--;
    return v == GATE_GO;
}
