/* The gate's one thread: tails that nothing senses, deadlines with a batch open,
 * deferred commands, and the link's health. */
#include "gate_internal.h"

#include <signal.h>

#include "core/clock.h"
#include "core/futex.h"
#include "core/macros.h"

#define relaxed memory_order_relaxed

#define TICK_NS     (250 * NS_PER_MS)
#define LOOK_MIN_NS (300 * NS_PER_US) /* no launch for so long: mark the tail */
#define LOOK_MAX_NS (2 * NS_PER_MS)
#define BUSY_NS     (5 * NS_PER_MS) /* past the deadline: mark below a submit too */
#define STACK_BYTES (512 * 1024)    /* marks call into the driver */

/* ---- open batches ------------------------------------------------------ */

/* Mark one queue whose batch must not stay open; false: none. */
static bool mark_stale(struct gate *g, uint64_t now, bool look)
{
    uint64_t deadline = atomic_load(&atomic_load_explicit(&g->slot, relaxed)->deadline_ns);
    for (struct gate_queue *q = g->queues; q; q = q->next) {
        uint64_t ticket = gate_ticket(q);
        if (!ticket)
            continue;
        bool past = now >= deadline;
        bool still = look && ticket == q->seen_ticket;
        if ((past || still) &&
            (!gate_queue_busy(q) || (past && now - deadline > BUSY_NS))) {
            gate_mark_queue(g, q);
            return true;
        }
    }
    return false;
}

/* Remember the tickets; true when one of them moved since the last look. */
static bool note_tickets(struct gate *g)
{
    bool moved = false;
    for (struct gate_queue *q = g->queues; q; q = q->next) {
        uint64_t ticket = gate_ticket(q);
        moved |= ticket != q->seen_ticket;
        q->seen_ticket = ticket;
    }
    return moved;
}

/* Look for tails.  At first 300 us apart, then less often while the program
 * keeps launching; alone only at each tick.  Returns when to look again. */
static uint64_t look_at_gate(struct gate *g, uint64_t now)
{
    struct proto_slot *s = atomic_load_explicit(&g->slot, relaxed);
    uint32_t turn = atomic_load(&s->grants);
    bool held = atomic_load(&s->state) & SLOT_HELD;
    bool hurry = held && gate_is_bounded(s);
    if (!hurry)
        g->look_every_ns = TICK_NS;
    else if (turn != g->looked_turn || g->look_every_ns == TICK_NS)
        g->look_every_ns = LOOK_MIN_NS;
    g->looked_turn = turn;

    bool look = now - g->looked_ns >= g->look_every_ns;
    while (mark_stale(g, now, look))
        ;
    if (look) {
        g->looked_ns = now;
        if (note_tickets(g) && hurry)
            g->look_every_ns = min_u64(2 * g->look_every_ns, LOOK_MAX_NS);
    }
    uint64_t next = g->looked_ns + g->look_every_ns;
    uint64_t deadline = atomic_load(&s->deadline_ns);
    return held && deadline > now ? min_u64(next, deadline) : next;
}

static void mark_unsensed(struct gate *g)
{
    for (uint32_t i = 0; i < GATE_BATCHES && g->unsensed_items; i++)
        if (g->batch[i].state == BATCH_UNSENSED)
            gate_mark_batch(g, &g->batch[i]);
}

static uint64_t tend_gate(struct gate *g, uint64_t now)
{
    pthread_mutex_lock(&g->lock);
    struct proto_slot *before = atomic_load_explicit(&g->slot, relaxed);
    gate_follow_link(g);
    bool moved = before != atomic_load_explicit(&g->slot, relaxed);
    mark_unsensed(g);
    uint64_t next = look_at_gate(g, now);
    pthread_mutex_unlock(&g->lock);
    if (moved) { /* who sleeps by our own clock, or for room, shall look at the new slot */
        atomic_fetch_add(&g->done, 1);
        futex_wake_all(&g->done);
    }
    return next;
}

/* ---- deferred commands ------------------------------------------------- */

struct gate_deferred *gate_defer(struct gate_queue *q, struct cost_entry *e,
                                 enum gate_kind kind, void *front)
{
    struct gate *g = q->gate;
    struct gates *gs = g->gates;
    if (gates_forked(gs))
        return NULL;
    gate_watch_start(gs);
    pthread_mutex_lock(&g->lock);
    if (gate_batch_of(q))
        gate_mark_queue(g, q);
    pthread_mutex_unlock(&g->lock);

    uint32_t hint = atomic_load_explicit(&gs->deferred_hint, relaxed);
    for (uint32_t i = 0; i < GATE_DEFERRED; i++) {
        struct gate_deferred *d = &gs->deferred[(hint + i) % GATE_DEFERRED];
        uint32_t is_free = 0;
        if (!atomic_compare_exchange_strong(&d->taken, &is_free, 1))
            continue;
        atomic_store_explicit(&gs->deferred_hint, hint + i + 1, relaxed);
        d->front = front;
        d->gate = g;
        d->entry = e;
        d->kind = kind;
        d->next = NULL;
        return d;
    }
    return NULL;
}

void gate_defer_cancel(struct gate_deferred *d)
{
    atomic_store(&d->taken, 0);
}

static void append(struct gates *gs, struct gate_deferred *d)
{
    d->next = NULL;
    if (gs->ready_last)
        gs->ready_last->next = d;
    else
        gs->ready_first = d;
    gs->ready_last = d;
}

void gate_defer_ready(struct gate_deferred *d)
{
    struct gate *g = d->gate;
    struct gates *gs = g->gates;
    if (gates_forked(gs))
        return;
    pthread_mutex_lock(&g->lock);
    g->deferred_ready++;
    pthread_mutex_unlock(&g->lock);
    pthread_mutex_lock(&gs->lock);
    append(gs, d);
    pthread_mutex_unlock(&gs->lock);
    gate_watch_kick(gs);
}

/* Open one under a turn; false when it must wait, with *retry_ns if it is for
 * our own clock. */
static bool open_deferred(struct gates *gs, struct gate_deferred *d, uint64_t *retry_ns)
{
    struct gate *g = d->gate;
    struct gate_command c = gate_command(d->entry, d->kind);
    struct gate_ask ask = { .cost_ns = c.cost_ns };
    struct gate_after after = { 0 };
    struct gate_batch *b = NULL;
    struct gate_go go = { .waited = false };

    pthread_mutex_lock(&g->lock);
    enum gate_verdict v = gate_try_turn(g, &ask, &go, &after);
    while (v == GATE_NO_ROOM && gate_mark_one(g))
        v = gate_try_turn(g, &ask, &go, &after);
    if (v == GATE_GO) {
        b = gate_open_batch(g, NULL, &go, &c, true);
        g->deferred_ready--;
    }
    pthread_mutex_unlock(&g->lock);
    gate_after(g, &after);
    if (v == GATE_NO_TURN && go.retry_ns)
        *retry_ns = min_u64(*retry_ns, go.retry_ns);
    if (v != GATE_GO)
        return false;

    void *front = d->front;
    atomic_store(&d->taken, 0);
    if (!gs->ops->open(front, b))
        gate_completed(b);
    return true;
}

/* Returns when to try again (UINT64_MAX: something will wake the thread). */
static uint64_t open_ready(struct gates *gs)
{
    pthread_mutex_lock(&gs->lock);
    struct gate_deferred *d = gs->ready_first;
    gs->ready_first = gs->ready_last = NULL;
    pthread_mutex_unlock(&gs->lock);

    uint64_t retry_ns = UINT64_MAX;
    bool blocked[PROTO_MAX_SLOTS] = { false };
    struct gate_deferred *first = NULL, *last = NULL;
    while (d) {
        struct gate_deferred *next = d->next;
        bool *block = &blocked[d->gate->index];
        *block = *block || !open_deferred(gs, d, &retry_ns);
        if (*block) {
            d->next = NULL;
            *(last ? &last->next : &first) = d;
            last = d;
        }
        d = next;
    }
    if (first) {
        pthread_mutex_lock(&gs->lock);
        last->next = gs->ready_first;
        gs->ready_first = first;
        gs->ready_last = gs->ready_last ? gs->ready_last : last;
        pthread_mutex_unlock(&gs->lock);
    }
    return retry_ns;
}

/* ---- the thread -------------------------------------------------------- */

static void *watch(void *arg)
{
    struct gates *gs = arg;
    uint64_t checked_ns = 0;
    while (!atomic_load(&gs->stop)) {
        struct proto_page *page = link_page(gs->link);
        uint32_t bell = atomic_load(&page->bell);
        uint64_t now = clock_now_ns();
        uint64_t tick = atomic_load(&gs->link->state) == LINK_UP ? TICK_NS : TICK_NS / 2;
        if (now - checked_ns >= tick) {
            link_check(gs->link);
            checked_ns = now;
        }
        uint64_t next = checked_ns + tick;
        for (uint32_t i = 0; i < gs->count; i++)
            next = min_u64(next, tend_gate(&gs->gate[i], now));
        next = min_u64(next, open_ready(gs));
        now = clock_now_ns();
        if (next > now)
            futex_wait(&page->bell, bell, next - now);
    }
    return NULL;
}

void gate_watch_kick(struct gates *gs)
{
    struct proto_page *page = link_page(gs->link);
    atomic_fetch_add(&page->bell, 1);
    futex_wake_all(&page->bell);
}

static bool start_thread(struct gates *gs)
{
    pthread_attr_t attr;
    sigset_t all, before;
    if (pthread_attr_init(&attr) != 0)
        return false;
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ok = pthread_create(&gs->thread, &attr, watch, gs) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (ok)
        pthread_setname_np(gs->thread, "sluice-gate");
    return ok;
}

void gate_watch_start(struct gates *gs)
{
    if (atomic_load_explicit(&gs->running, relaxed))
        return;
    pthread_mutex_lock(&gs->lock);
    if (!atomic_load(&gs->running) && start_thread(gs))
        atomic_store(&gs->running, 1);
    pthread_mutex_unlock(&gs->lock);
}

void gates_finish(struct gates *gs)
{
    if (gates_forked(gs) || !atomic_exchange(&gs->running, 0))
        return;
    atomic_store(&gs->stop, 1);
    gate_watch_kick(gs);
    pthread_join(gs->thread, NULL);
}
