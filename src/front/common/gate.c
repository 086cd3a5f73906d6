/* What the front calls around a submit, at a completion and at a drain. */
#include "front/gate.h"

#include <string.h>

#include "gate_internal.h"
#include "core/clock.h"
#include "core/futex.h"
#include "core/macros.h"

#define relaxed memory_order_relaxed

__thread char gate_self;

/* A wait for an empty queue that took so much longer than predicted throws
 * doubt on the prediction. */
#define DOUBT_NS (300 * NS_PER_US)

#define ALONE_TRIES 8

void gate_after(struct gate *g, const struct gate_after *a)
{
    struct gates *gs = g->gates;
    if (a->wake_done) {
        atomic_fetch_add(&g->done, 1);
        futex_wake_all(&g->done);
    }
    bool sent = true;
    if (a->release)
        sent = link_release(gs->link, g->index, a->more);
    if (a->want)
        sent = link_want(gs->link, g->index);
    if (!sent) {
        pthread_mutex_lock(&g->lock);
        g->wanted = false;
        pthread_mutex_unlock(&g->lock);
    }
    if (a->kick)
        gate_watch_kick(gs);
}

/* ---- start and end ----------------------------------------------------- */

void gates_init(struct gates *gs, struct link *l, const struct gate_ops *ops)
{
    struct proto_page *page = link_page(l);
    memset(gs, 0, sizeof *gs);
    gs->link = l;
    gs->ops = ops;
    gs->forks = link_fork_count();
    gs->count = min_u64(page->slot_count, PROTO_MAX_SLOTS);
    pthread_mutex_init(&gs->lock, NULL);
    for (uint32_t i = 0; i < gs->count; i++) {
        struct gate *g = &gs->gate[i];
        g->gates = gs;
        g->index = i;
        g->page_generation = atomic_load(&l->generation);
        atomic_store(&g->slot, &page->slot[i]);
        pthread_mutex_init(&g->lock, NULL);
    }
}

void gate_queue_init(struct gate_queue *q, struct gate *g, void *front)
{
    memset(q, 0, sizeof *q);
    q->gate = g;
    q->front = front;
    if (gates_forked(g->gates))
        return;
    pthread_mutex_lock(&g->lock);
    q->next = g->queues;
    g->queues = q;
    pthread_mutex_unlock(&g->lock);
}

static void unlink_queue(struct gate *g, struct gate_queue *q, struct gate_after *after)
{
    for (struct gate_queue **at = &g->queues; *at; at = &(*at)->next)
        if (*at == q) {
            *at = q->next;
            break;
        }
    for (uint32_t i = 0; i < GATE_BATCHES; i++) {
        struct gate_batch *b = &g->batch[i];
        if (b->state == BATCH_FREE || b->queue != q)
            continue;
        b->queue = NULL;
        if (b->state == BATCH_UNSENSED)
            gate_finish_batch(g, b, clock_now_ns(), after);
    }
}

void gate_queue_finish(struct gate_queue *q)
{
    struct gate *g = q->gate;
    struct gate_after after = { 0 };
    if (gates_forked(g->gates))
        return;
    pthread_mutex_lock(&g->lock);
    while (gate_batch_of(q) || q->pins) {
        if (gate_batch_of(q)) {
            gate_mark_queue(g, q);
            continue;
        }
        uint32_t done = atomic_load(&g->done);
        pthread_mutex_unlock(&g->lock);
        futex_wait(&g->done, done, NS_PER_MS);
        pthread_mutex_lock(&g->lock);
    }
    gate_count_rest(g, q);
    unlink_queue(g, q, &after);
    pthread_mutex_unlock(&g->lock);
    gate_after(g, &after);
}

/* ---- entering ---------------------------------------------------------- */

enum joined {
    JOIN_UNSENSED, /* submit */
    JOIN_SENSED,   /* submit; it closes the batch */
    JOIN_GONE,     /* the batch is closed: open another */
};

/* Try to put the command into the queue's open batch. */
static enum joined join(struct gate *g, struct gate_queue *q, const struct gate_command *c,
                        bool nowait, struct gate_batch **out)
{
    struct gate_batch *b = gate_batch_of(q);
    if (!gate_turn_holds(b->slot, b->turn)) {
        gate_mark_queue(g, q); /* the broker passed over us; it waits for the end */
        return JOIN_GONE;
    }
    if (gate_try_enter(q, c->entry, c->kind, gate_owns(q)))
        return JOIN_UNSENSED;
    uint64_t now = clock_now_ns();
    if (!nowait && gate_is_bounded(b->slot) &&
        (c->cost_ns == 0 ||
         (c->cost_ns >= GATE_BATCH_NS && now >= atomic_load(&b->slot->deadline_ns)))) {
        gate_mark_queue(g, q);
        return JOIN_GONE;
    }
    *out = gate_close_batch(g, q, c, now);
    return JOIN_SENSED;
}

static struct gate_batch *open_with(struct gate *g, struct gate_queue *q,
                                    struct gate_go *go, const struct gate_command *c)
{
    gate_fit_budget(q, go);
    bool sensed = c->never_sensed || c->cost_ns >= go->budget_ns;
    struct gate_batch *b = gate_open_batch(g, q, go, c, sensed);
    return sensed ? b : NULL;
}

struct gate_batch *gate_enter_slow(struct gate_queue *q, struct cost_entry *e,
                                   enum gate_kind kind)
{
    struct gate *g = q->gate;
    if (gates_forked(g->gates))
        return NULL;
    gate_watch_start(g->gates);
    struct gate_command c = gate_command(e, kind);
    struct gate_ask ask = { .cost_ns = c.cost_ns, .alone = c.cost_ns ? 0 : ALONE_TRIES };
    struct gate_after after = { 0 };
    struct gate_batch *b = NULL;
    struct gate_go go = { .waited = false };

    pthread_mutex_lock(&g->lock);
    for (;; go.waited = true) {
        if (gate_batch_of(q)) {
            if (join(g, q, &c, false, &b) != JOIN_GONE)
                break;
        } else if (gate_wait_turn(g, &ask, &go, &after)) {
            b = open_with(g, q, &go, &c);
            break;
        }
    }
    pthread_mutex_unlock(&g->lock);
    gate_after(g, &after);
    return b;
}

/* No turn and no waiting: the command is in flight all the same. */
static struct gate_batch *charge(struct gate *g, struct gate_queue *q, struct gate_go *go,
                                 const struct gate_command *c)
{
    atomic_fetch_add_explicit(&go->slot->ungated, 1, relaxed);
    go->slot = NULL;
    go->now_ns = clock_now_ns();
    go->budget_ns = GATE_BATCH_NS;
    struct gate_batch *b = gate_open_batch(g, q, go, c, true);
    if (!b)
        q->entered++; /* it will leave */
    return b;
}

struct gate_batch *gate_enter_nowait(struct gate_queue *q, struct cost_entry *e,
                                     enum gate_kind kind)
{
    struct gate *g = q->gate;
    if (gates_forked(g->gates))
        return NULL;
    struct gate_command c = gate_command(e, kind);
    struct gate_ask ask = { .cost_ns = c.cost_ns, .nowait = true };
    struct gate_after after = { 0 };
    struct gate_batch *b = NULL;
    struct gate_go go = { .waited = false };

    pthread_mutex_lock(&g->lock);
    enum joined joined = JOIN_GONE;
    while (joined == JOIN_GONE && gate_batch_of(q))
        joined = join(g, q, &c, true, &b);
    if (joined == JOIN_GONE) {
        enum gate_verdict v = gate_try_turn(g, &ask, &go, &after);
        b = v == GATE_GO ? open_with(g, q, &go, &c) : charge(g, q, &go, &c);
    }
    pthread_mutex_unlock(&g->lock);
    gate_after(g, &after);
    return b;
}

void gate_ungated(struct gate *g)
{
    struct proto_slot *s = atomic_load_explicit(&g->slot, memory_order_acquire);
    if (!gates_forked(g->gates))
        atomic_fetch_add_explicit(&s->ungated, 1, relaxed);
}

bool gate_is_forked(const struct gate *g)
{
    return gates_forked(g->gates);
}

/* ---- completing -------------------------------------------------------- */

void gate_completed(struct gate_batch *b)
{
    struct gate *g = b->gate;
    struct gate_after after = { 0 };
    if (gates_forked(g->gates))
        return;
    pthread_mutex_lock(&g->lock);
    if (b->state == BATCH_SENSED) {
        uint64_t now = clock_now_ns();
        gate_learn(g, b, now);
        gate_finish_batch(g, b, now, &after);
    }
    pthread_mutex_unlock(&g->lock);
    gate_after(g, &after);
}

void gate_unsensed(struct gate_batch *b)
{
    struct gate *g = b->gate;
    if (gates_forked(g->gates))
        return;
    pthread_mutex_lock(&g->lock);
    if (b->state == BATCH_SENSED)
        gate_set_unsensed(g, b);
    pthread_mutex_unlock(&g->lock);
    gate_watch_kick(g->gates);
}

void gate_drained(struct gate_queue *q, uint64_t ticket)
{
    struct gate *g = q->gate;
    if (ticket == 0 || gate_ticket(q) != ticket || gates_forked(g->gates))
        return;
    struct gate_after after = { 0 };
    pthread_mutex_lock(&g->lock);
    if (gate_ticket(q) == ticket && !gate_queue_busy(q)) {
        uint64_t now = clock_now_ns();
        struct gate_batch *b = gate_close_batch(g, q, NULL, now);
        uint64_t took = now - max_u64(b->opened_ns, q->last_done_ns);
        q->last_work_ns = 0; /* its pause was the wait */
        if (took > 4 * b->flight_ns + DOUBT_NS)
            cost_doubt(b->part[0]);
        q->last_done_ns = now;
        gate_finish_batch(g, b, now, &after);
    }
    pthread_mutex_unlock(&g->lock);
    gate_after(g, &after);
}
