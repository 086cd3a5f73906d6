/* Batches: from the first command to the completion, and what they teach. */
#include "gate_internal.h"

#include <string.h>

#include "core/clock.h"
#include "core/futex.h"
#include "core/macros.h"

#define relaxed memory_order_relaxed

#define WORD_COUNT(w)  ((uint32_t)(w) & ((1u << GATE_WORD_COUNT_BITS) - 1))
#define WORD_COPIES(w) WORD_COUNT((w) >> GATE_WORD_COPY_SHIFT)
#define WORD_TAG(w)    ((uint32_t)((w) >> GATE_WORD_TAG_SHIFT) & 0xfffffu)
#define WORD_LEFT(w)   ((int64_t)(w) >> GATE_WORD_NS_SHIFT)

_Static_assert(GATE_BATCH_OPEN_NS < 1u << 19, "the budget fits the word's 20 signed bits");
_Static_assert(GATE_BATCH_OPEN_NS / COST_MIN_NS < 1u << GATE_WORD_COUNT_BITS,
               "the commands of one batch fit the word");
_Static_assert(GATE_BATCHES == 256, "the low byte of the tag is the index");

static void add(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, relaxed) + n, relaxed);
}

struct gate_command gate_command(struct cost_entry *e, enum gate_kind kind)
{
    return (struct gate_command){
        .entry = e,
        .kind = kind,
        .cost_ns = cost_predict(e),
        .never_sensed = !e || atomic_load_explicit(&e->ns, relaxed) == 0,
    };
}

/* A kernel never seen complete may be compiled first (PoCL: 48..58 ms between
 * submit and start), and the broker shall not pass over us for that. */
#define FRESH_NS (100 * NS_PER_MS)

static void publish_end(struct gate *g, uint64_t now)
{
    struct proto_slot *s = atomic_load_explicit(&g->slot, relaxed);
    uint64_t end = now + g->flight_ns + (g->fresh_items ? FRESH_NS : 0);
    atomic_store_explicit(&s->predicted_end_ns, end, relaxed);
}

/*
 * A program that submits seldom would keep a batch open, and with it the turn,
 * through all its pauses, because nothing in the batch is sensed before its
 * budget is spent.  So while the turn has an end, the budget is what the queue
 * submits in SPAN_NS by the pace of its last batch.
 */
#define SPAN_NS (300 * NS_PER_US)

void gate_fit_budget(struct gate_queue *q, struct gate_go *go)
{
    uint64_t period = go->now_ns - q->last_open_ns;
    if (!go->waited && q->last_work_ns)
        q->budget_ns = period <= SPAN_NS
                           ? GATE_BATCH_NS
                           : min_u64(q->last_work_ns * SPAN_NS / period, GATE_BATCH_NS);
    if (q->budget_ns && gate_is_bounded(go->slot))
        go->budget_ns = min_u64(go->budget_ns, q->budget_ns);
}

/* ---- opening ----------------------------------------------------------- */

static struct gate_batch *take_record(struct gate *g)
{
    for (uint32_t i = 0; i < GATE_BATCHES; i++) {
        uint32_t index = (g->batch_hint + i) % GATE_BATCHES;
        struct gate_batch *b = &g->batch[index];
        if (b->state != BATCH_FREE)
            continue;
        g->batch_hint = index + 1;
        uint32_t generation = (b->tag >> 8) % 0xfff + 1; /* 1..0xfff: a word is never 0 */
        *b = (struct gate_batch){ .gate = g, .tag = generation << 8 | index };
        return b;
    }
    return NULL;
}

/* Publish the batch in the queue's word: from here on gate_enter() spends it. */
static void set_word(struct gate_queue *q, struct gate_batch *b,
                     const struct gate_command *c)
{
    const char *nobody = NULL;
    atomic_compare_exchange_strong(&q->owner, &nobody, &gate_self);
    atomic_store_explicit(&q->slot, b->slot, relaxed);
    atomic_store_explicit(&q->turn, b->turn, relaxed);
    atomic_store_explicit(&q->part[0], c->entry, relaxed);
    for (uint32_t i = 1; i < GATE_PARTS; i++)
        atomic_store_explicit(&q->part[i], NULL, relaxed);
    uint64_t word = (b->flight_ns - c->cost_ns) << GATE_WORD_NS_SHIFT |
                    (uint64_t)b->tag << GATE_WORD_TAG_SHIFT |
                    (uint64_t)c->kind << GATE_WORD_COPY_SHIFT | 1;
    atomic_store_explicit(&q->word, word, memory_order_seq_cst);
}

static void set_fresh(struct gate *g, struct gate_batch *b, const struct gate_command *c)
{
    b->fresh = c->never_sensed;
    g->fresh_items += b->fresh;
}

/* `submitted` and `completed` are equal when nothing is in flight: that is how the
 * broker knows that a process it passed over is done.  Ungated ones are in neither. */
static void count_commands(struct gate *g, const struct gate_batch *b, uint32_t already)
{
    struct proto_slot *s = b->slot ? b->slot : atomic_load_explicit(&g->slot, relaxed);
    if (b->slot)
        add(&s->submitted, b->commands - already);
    add(&s->kernels, b->commands - b->copies);
    add(&s->copies, b->copies);
}

/* What the owner spent since the last batch was closed; counted from here on. */
static uint64_t take_spent(struct gate_queue *q)
{
    uint64_t spent = gate_spent(q);
    uint64_t counted = atomic_load_explicit(&q->counted, relaxed) + spent;
    atomic_store_explicit(&q->counted, counted, memory_order_release);
    q->entered += WORD_COUNT(spent);
    return spent;
}

void gate_count_rest(struct gate *g, struct gate_queue *q)
{
    uint64_t spent = take_spent(q);
    struct gate_batch rest = { .commands = WORD_COUNT(spent),
                               .copies = WORD_COPIES(spent) };
    count_commands(g, &rest, 0);
}

struct gate_batch *gate_open_batch(struct gate *g, struct gate_queue *q,
                                   const struct gate_go *go, const struct gate_command *c,
                                   bool sensed)
{
    struct gate_batch *b = take_record(g);
    if (!b)
        return NULL;
    b->queue = q;
    b->slot = go->slot;
    b->turn = go->turn;
    b->opened_ns = go->now_ns;
    b->flight_ns = !sensed || c->cost_ns == 0 ? go->budget_ns : c->cost_ns;
    g->flight_items++;
    g->flight_ns += b->flight_ns;
    if (q) {
        q->last_open_ns = go->now_ns;
        q->last_work_ns = sensed ? c->cost_ns : 0;
    }
    if (sensed) {
        b->state = BATCH_SENSED;
        b->commands = 1;
        b->copies = c->kind == GATE_COPY;
        b->closed_ns = go->now_ns;
        b->part[0] = b->closer = c->entry;
        set_fresh(g, b, c);
        if (q)
            q->entered++;
        count_commands(g, b, 0);
    } else {
        b->state = BATCH_OPEN;
        set_word(q, b, c);
        add(&b->slot->submitted, 1);
    }
    publish_end(g, go->now_ns);
    return b;
}

/* ---- closing ----------------------------------------------------------- */

struct gate_batch *gate_batch_of(struct gate_queue *q)
{
    uint64_t word = atomic_load_explicit(&q->word, relaxed);
    return word ? &q->gate->batch[WORD_TAG(word) % GATE_BATCHES] : NULL;
}

struct gate_batch *gate_close_batch(struct gate *g, struct gate_queue *q,
                                    const struct gate_command *closer, uint64_t now)
{
    struct gate_batch *b = gate_batch_of(q);
    uint64_t word = atomic_exchange(&q->word, 0);
    uint64_t owners = take_spent(q);
    uint64_t spent = sub_sat_u64(b->flight_ns, (uint64_t)WORD_LEFT(word)) +
                     (owners >> GATE_SPENT_NS_SHIFT);
    b->commands = WORD_COUNT(word) + WORD_COUNT(owners);
    b->copies = WORD_COPIES(word) + WORD_COPIES(owners);
    q->entered += WORD_COUNT(word);
    for (uint32_t i = 0; i < GATE_PARTS; i++)
        b->part[i] = atomic_load_explicit(&q->part[i], relaxed);
    if (closer) {
        spent += closer->cost_ns;
        b->commands++;
        b->copies += closer->kind == GATE_COPY;
        b->closer = closer->entry;
        b->closer_unseen = closer->cost_ns == 0;
        set_fresh(g, b, closer);
        q->entered++;
    }
    g->flight_ns = g->flight_ns - b->flight_ns + spent;
    b->flight_ns = spent;
    q->last_work_ns = spent;
    b->closed_ns = now;
    b->state = BATCH_SENSED;
    count_commands(g, b, 1);
    publish_end(g, now);
    return b;
}

void gate_set_unsensed(struct gate *g, struct gate_batch *b)
{
    b->state = BATCH_UNSENSED;
    g->unsensed_items++;
}

void gate_finish_batch(struct gate *g, struct gate_batch *b, uint64_t now,
                       struct gate_after *after)
{
    struct proto_slot *s = atomic_load_explicit(&g->slot, relaxed);
    uint64_t bound_ns = atomic_load_explicit(&s->flight_bound_ns, relaxed);
    bool freed = false;
    if (--g->flight_items == 0)
        g->idle_ns = now;
    g->flight_ns -= b->flight_ns;
    g->fresh_items -= b->fresh;
    g->unsensed_items -= b->state == BATCH_UNSENSED;
    if (b->slot) {
        struct gate_after turn = { 0 };
        add(&b->slot->completed, b->commands);
        gate_turn_down(g, b->slot, b->turn, now, &turn);
        freed = turn.wake_done;
        after->release |= turn.release;
        after->more |= turn.more;
    }
    /* Wake at half the bound: each wake then admits a run of batches. */
    freed |= g->flight_items == 0 || g->flight_ns <= bound_ns / 2 ||
             g->flight_items < atomic_load_explicit(&s->flight_bound_items, relaxed);
    after->wake_done |= freed && g->flight_waiters;
    after->kick |= freed && g->deferred_ready;
    b->state = BATCH_FREE;
    b->queue = NULL;
    publish_end(g, now);
}

/* ---- learning ---------------------------------------------------------- */

/* The batch took `took` from its start.  Time for which the host kept the
 * device waiting is in there too: then it is only an upper bound. */
static void learn_many(struct gate_batch *b, uint64_t took, uint64_t tail)
{
    uint64_t predicted = b->flight_ns;
    if (b->closer_unseen) {
        cost_learn(b->closer, tail > predicted ? tail - predicted : tail / 2);
        return;
    }
    bool host_bound = b->closed_ns - b->opened_ns > took / 2;
    if (host_bound && took > predicted) {
        if (b->closer && tail > 4 * cost_predict(b->closer) + 100 * NS_PER_US)
            cost_doubt(b->closer);
        return;
    }
    for (uint32_t i = 0; i < GATE_PARTS; i++)
        cost_scale(b->part[i], took, predicted);
}

void gate_learn(struct gate *g, struct gate_batch *b, uint64_t now)
{
    uint64_t before = b->queue ? b->queue->last_done_ns : 0;
    uint64_t took = sub_sat_u64(now, max_u64(b->opened_ns, before));
    uint64_t tail = sub_sat_u64(now, max_u64(b->closed_ns, before));
    if (b->queue)
        b->queue->last_done_ns = now;
    if (b->commands != 1) {
        learn_many(b, took, tail);
        return;
    }
    cost_learn(b->closer, took);
    struct proto_slot *s = b->slot;
    if (s && took > atomic_load_explicit(&s->longest_ns, relaxed))
        atomic_store_explicit(&s->longest_ns, took, relaxed);
}

/* ---- marking ----------------------------------------------------------- */

bool gate_queue_busy(const struct gate_queue *q)
{
    uint64_t entered =
        q->entered + WORD_COUNT(atomic_load(&q->word)) + WORD_COUNT(gate_spent(q));
    uint64_t left = atomic_load_explicit(&q->left_owner, memory_order_acquire) +
                    atomic_load_explicit(&q->left_other, memory_order_acquire);
    return entered != left;
}

bool gate_has_open(const struct gate *g)
{
    for (const struct gate_queue *q = g->queues; q; q = q->next)
        if (atomic_load_explicit(&q->word, relaxed))
            return true;
    return false;
}

void gate_mark_batch(struct gate *g, struct gate_batch *b)
{
    struct gate_queue *q = b->queue;
    bool marked = false;
    g->unsensed_items -= b->state == BATCH_UNSENSED;
    b->state = BATCH_SENSED;
    if (q) {
        q->pins++;
        pthread_mutex_unlock(&g->lock);
        marked = g->gates->ops->mark(q, b);
    } else {
        pthread_mutex_unlock(&g->lock);
    }
    if (!marked)
        gate_completed(b);
    pthread_mutex_lock(&g->lock);
    if (q)
        q->pins--;
}

void gate_mark_queue(struct gate *g, struct gate_queue *q)
{
    gate_mark_batch(g, gate_close_batch(g, q, NULL, clock_now_ns()));
}

bool gate_mark_one(struct gate *g)
{
    for (struct gate_queue *q = g->queues; q; q = q->next)
        if (atomic_load_explicit(&q->word, relaxed) && !gate_queue_busy(q)) {
            gate_mark_queue(g, q);
            return true;
        }
    return false;
}
