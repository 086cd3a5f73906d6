/*
 * The gate: where a command of the tenant waits for the device's turn.  It is
 * the governor's client (docs/internals/governor.md, proto/page.h); API-neutral.
 *
 * Commands are submitted in batches, per queue: a batch is opened under the
 * turn (turn word HELD|n -> HELD|n+1), takes commands until 200 us of
 * predicted work, and its closing command is SENSED: the front attaches an
 * event with a callback to it, and the callback tells the gate (HELD|n -> n-1).
 * The commands before it cost one plain store each, or, from other threads than the queue's
 * first, one compare-and-swap.
 * docs/internals/gate.md tells the whole way of a launch.
 *
 * Around each submit the front does
 *
 *     struct gate_batch *b = gate_enter(q, entry, GATE_KERNEL);   may wait
 *     err = real_submit(..., b ? &event : the program's own event);
 *     gate_leave(q);
 *     if (b && err == 0)  set a callback on the event that calls
 *                         gate_completed(b), and flush;
 *     if (b && (err != 0 || no callback could be set))  gate_unsensed(b);
 *
 * On an out-of-order queue the event to sense is that of a marker enqueued
 * after the command.  An unsensed command that fails needs nothing.  In a
 * callback of the driver use gate_defer(), or gate_enter_nowait() where a
 * command cannot be held back.
 *
 * All functions may be called from any thread, several threads may submit to
 * one queue at once; nothing allocates, spins, prints or exits.  In a forked
 * child of the process that made the gates everything passes, unsensed, also
 * after it opened a link of its own.
 */
#ifndef FRONT_GATE_H
#define FRONT_GATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "front/cost.h"
#include "front/link.h"

#define GATE_BATCH_NS      200000u /* predicted work between two sensed commands */
#define GATE_BATCH_OPEN_NS 500000u /* the same in a turn without an end: nobody waits */
#define GATE_BATCHES       256u    /* in flight per device; far above any flight bound */
#define GATE_PARTS         4u      /* different kernels of a batch that learn from it */
#define GATE_DEFERRED      1024u   /* commands behind unset user events, per process */

enum gate_kind { GATE_KERNEL = 0, GATE_COPY = 1 };

struct gate;
struct gates;
struct gate_queue;
struct gate_batch; /* a batch in flight: the token of a sensed command */
struct gate_deferred;

/* What the gate asks of the front.  Called with no lock held, from the gate's
 * own thread or from a thread inside gate_enter(), gate_defer() or
 * gate_queue_finish(). */
struct gate_ops {
    /* Enqueue a marker behind everything submitted to the queue so far, with a
     * callback that calls gate_completed(token), and flush.  False when that
     * is impossible: the batch then counts as complete. */
    bool (*mark)(struct gate_queue *q, struct gate_batch *token);
    /* The turn is held: set the gate event of the deferred command (`front` of
     * gate_defer()) and call gate_completed(token) when the command is
     * complete.  False: it will never run (the batch counts as complete). */
    bool (*open)(void *front, struct gate_batch *token);
};

/* ---- layout: here only because gate_enter() is inline ------------------ */

/*
 * The open batch of a queue in one word, so that one compare-and-swap spends
 * from it: budget left (signed, ns) | tag of the batch | copies | commands.
 *
 * The queue's owner spends beside it, with a plain store to a sum that it alone writes and
 * that no batch resets: ns | copies | commands.  What of it belongs to the open batch is the
 * difference to what closed batches have counted; so a command that looked at the word just
 * before another thread closed the batch is counted in the next one, never twice and never
 * lost (docs/decisions/0008-the-owner-spends-without-a-locked-instruction.md).
 */
#define GATE_WORD_COUNT_BITS 12
#define GATE_WORD_COPY_SHIFT 12
#define GATE_WORD_TAG_SHIFT  24
#define GATE_WORD_NS_SHIFT   44
#define GATE_SPENT_NS_SHIFT  24

/* Embed it in the front's queue object. */
struct gate_queue {
    _Alignas(64) _Atomic uint64_t word; /* 0: no batch open */
    _Atomic(struct proto_slot *) slot;  /* of the open batch */
    _Atomic uint64_t spent;             /* by the owner, who alone writes it */
    _Atomic uint64_t counted;           /* of `spent`, in closed batches */
    _Atomic uint32_t turn;              /* slot->grants of the open batch */
    _Atomic(const char *) owner;        /* thread that counts without locking the bus */
    _Atomic uint64_t left_owner, left_other; /* commands that left, by whom */
    _Atomic(struct cost_entry *) part[GATE_PARTS];

    /* under the gate's lock */
    struct gate *gate;
    struct gate_queue *next;
    void *front;           /* the front's own */
    uint64_t entered;      /* commands of closed batches */
    uint64_t last_done_ns; /* newest completion seen */
    uint64_t last_open_ns; /* opening of the newest batch ... */
    uint64_t last_work_ns; /* ... and its predicted work; 0: says nothing */
    uint64_t budget_ns;    /* of the next batch while the turn has an end */
    uint64_t seen_ticket;  /* at the thread's last look */
    uint32_t pins;         /* marks under way: the queue must stay */
};

/* One address per thread: who is this? */
extern __thread char gate_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* This thread was the queue's first: what it alone writes needs no lock on the bus. */
static inline bool gate_owns(const struct gate_queue *q)
{
    return atomic_load_explicit(&q->owner, memory_order_relaxed) == &gate_self;
}

/* What the owner spent in the open batch: ns | copies | commands. */
static inline uint64_t gate_spent(const struct gate_queue *q)
{
    uint64_t counted = atomic_load_explicit(&q->counted, memory_order_acquire);
    return atomic_load_explicit(&q->spent, memory_order_relaxed) - counted;
}

/* Remember which kernels a batch is made of.  Racing threads may lose one or
 * put it into the next batch: then it learns one time less or more. */
static inline void gate_note_part(struct gate_queue *q, struct cost_entry *e)
{
    for (uint32_t i = 0; i < GATE_PARTS; i++) {
        struct cost_entry *have = atomic_load_explicit(&q->part[i], memory_order_relaxed);
        if (have == e)
            return;
        if (!have) {
            atomic_store_explicit(&q->part[i], e, memory_order_relaxed);
            return;
        }
    }
}

struct gate_batch *gate_enter_slow(struct gate_queue *q, struct cost_entry *e,
                                   enum gate_kind kind);

/* ---- start and end ----------------------------------------------------- */

struct gate_batch {
    struct gate *gate; /* set once */

    /* under the gate's lock */
    struct gate_queue *queue; /* NULL: deferred, or the queue is gone */
    struct proto_slot *slot;  /* whose turn word counts it; NULL: none */
    uint32_t turn;            /* slot->grants when it was opened */
    uint32_t tag;             /* generation << 8 | index */
    uint32_t state;           /* enum batch_state */
    uint32_t commands, copies;
    uint64_t flight_ns; /* predicted, as counted in gate->flight_ns */
    bool fresh;         /* a kernel never seen complete is in it */
    uint64_t opened_ns, closed_ns;
    struct cost_entry *part[GATE_PARTS];
    struct cost_entry *closer; /* its last command; NULL: a marker */
    bool closer_unseen;        /* which had no prediction */
};

/* One leased device.  All fields under `lock` unless atomic. */
struct gate {
    _Atomic(struct proto_slot *) slot; /* newest page's, or &own while the broker is away */
    struct gates *gates;
    uint32_t index;           /* slot number */
    uint32_t page_generation; /* of the link, whose page `slot` is in */
    pthread_mutex_t lock;     /* short sections without system calls */
    struct gate_queue *queues;
    _Atomic uint32_t done; /* futex: counts what flight_waiters wait for */
    uint32_t flight_waiters, turn_waiters;
    uint32_t flight_items;   /* batches in flight, of any turn */
    uint64_t flight_ns;      /* their predicted work */
    uint32_t fresh_items;    /* of them with a kernel never seen complete */
    uint32_t unsensed_items; /* of them the thread shall mark */
    uint64_t idle_ns;        /* when nothing was in flight any more; 0: gap noted */
    uint64_t gap_ns;         /* average from then to the next submit */
    uint32_t deferred_ready; /* commands that the thread shall open */
    bool wanted;             /* a WANT or RELEASE(more) stands ... */
    uint32_t wanted_turn;    /* ... since slot->grants had this value */
    uint64_t wanted_ns;
    uint64_t looked_ns, look_every_ns; /* the thread's search for unsensed tails */
    uint32_t looked_turn;
    uint32_t batch_hint;
    struct gate_batch batch[GATE_BATCHES];
    struct proto_slot own; /* turns by a clock of our own: broker away */
    uint64_t own_start_ns, own_next_ns;
};

struct gate_deferred {
    void *front;
    struct gate *gate;
    struct cost_entry *entry;
    uint32_t kind;
    _Atomic uint32_t taken;
    struct gate_deferred *next; /* in the list of ready ones */
};

/* All gates of a process and their one thread.  Static storage, about 250 KiB,
 * of which only what is used becomes resident. */
struct gates {
    struct link *link;
    const struct gate_ops *ops;
    uint32_t count;
    uint32_t forks; /* link_fork_count() of the process that made them */
    struct gate gate[PROTO_MAX_SLOTS];

    pthread_mutex_t lock; /* the thread's start and the list of ready ones */
    pthread_t thread;
    _Atomic uint32_t running, stop;
    struct gate_deferred *ready_first, *ready_last;
    _Atomic uint32_t deferred_hint;
    struct gate_deferred deferred[GATE_DEFERRED];
};

/* After link_open(): one gate per slot of the page (gs->gate[i], i < gs->count). */
void gates_init(struct gates *gs, struct link *l, const struct gate_ops *ops);
/* Stop the thread, for tests; a front never needs it. */
void gates_finish(struct gates *gs);

/* A new queue of the device; `front` is the front's own. */
void gate_queue_init(struct gate_queue *q, struct gate *g, void *front);
/* Before the real queue is released for the last time: an open batch is
 * marked (from this thread), then the gate forgets the queue. */
void gate_queue_finish(struct gate_queue *q);

/* ---- submitting -------------------------------------------------------- */

/*
 * The fast path alone: batch open, turn held, budget left, kernel known.  Loads, and one plain
 * store for the owner or one compare-and-swap for others; no clock, no call, no lock.
 * True: submit, unsensed, then gate_leave().  False: nothing happened, use
 * gate_enter().  `owner` is what gate_owns() says.
 */
static inline bool gate_try_enter(struct gate_queue *q, struct cost_entry *e,
                                  enum gate_kind kind, bool owner)
{
    uint64_t word = atomic_load_explicit(&q->word, memory_order_acquire);
    int64_t left = ((int64_t)word >> GATE_WORD_NS_SHIFT) -
                   (int64_t)(gate_spent(q) >> GATE_SPENT_NS_SHIFT);
    if (!e)
        return false;
    uint64_t cost = atomic_load_explicit(&e->ns, memory_order_relaxed);
    if (cost == 0 || (int64_t)cost >= left) /* no batch open: nothing is left */
        return false;

    struct proto_slot *s = atomic_load_explicit(&q->slot, memory_order_relaxed);
    uint32_t state = atomic_load_explicit(&s->state, memory_order_relaxed);
    uint32_t turn = atomic_load_explicit(&s->grants, memory_order_relaxed);
    if (!(state & SLOT_HELD) ||
        turn != atomic_load_explicit(&q->turn, memory_order_relaxed))
        return false;

    uint64_t command = ((uint64_t)kind << GATE_WORD_COPY_SHIFT) + 1;
    if (owner) {
        uint64_t spent = atomic_load_explicit(&q->spent, memory_order_relaxed);
        spent += (cost << GATE_SPENT_NS_SHIFT) + command;
        atomic_store_explicit(&q->spent, spent, memory_order_relaxed);
    } else if (!atomic_compare_exchange_strong_explicit(
                   &q->word, &word, word - (cost << GATE_WORD_NS_SHIFT) + command,
                   memory_order_seq_cst, memory_order_relaxed)) {
        return false;
    }
    gate_note_part(q, e);
    return true;
}

/*
 * Before a submit; waits until it may go.  NULL: submit, unsensed.  Else the
 * command must be sensed.  `e` from cost_find(), NULL is unknown.
 *
 * Off the fast path about 150 ns without waiting, once per 200 us of work.
 */
static inline struct gate_batch *gate_enter(struct gate_queue *q, struct cost_entry *e,
                                            enum gate_kind kind)
{
    return gate_try_enter(q, e, kind, gate_owns(q)) ? NULL : gate_enter_slow(q, e, kind);
}

/*
 * The same where nothing may block (inside a callback of the driver): submit
 * and charge.  Without a turn the command counts as `ungated`, is sensed and
 * in flight, and a turn is asked for.  About 150 ns.
 */
struct gate_batch *gate_enter_nowait(struct gate_queue *q, struct cost_entry *e,
                                     enum gate_kind kind);

/* gate_leave() of the thread that gate_owns() the queue. */
static inline void gate_leave_owned(struct gate_queue *q)
{
    uint64_t left = atomic_load_explicit(&q->left_owner, memory_order_relaxed);
    atomic_store_explicit(&q->left_owner, left + 1, memory_order_release);
}

/* After the real submit returned, failed or not; pairs with each enter.
 * A plain store for the queue's first thread, one atomic add for others. */
static inline void gate_leave(struct gate_queue *q)
{
    if (gate_owns(q))
        gate_leave_owned(q);
    else
        atomic_fetch_add_explicit(&q->left_other, 1, memory_order_release);
}

/* ---- completion -------------------------------------------------------- */

/*
 * The sensed command (or marker) of this token is complete, failed or not.
 * Once per token, from the driver's own callback: never waits, about 150 ns
 * (and a futex wake, and one message when it ends the turn).  The token is
 * dead afterwards.
 */
void gate_completed(struct gate_batch *b);

/* The command of this token was refused by the driver or could not get a
 * callback: the gate's thread marks the queue instead.  Use instead of
 * gate_completed(). */
void gate_unsensed(struct gate_batch *b);

/*
 * What was submitted to the queue so far: take it before a call that waits
 * until the queue is empty (finish, a blocking read, a wait for the queue's
 * newest event), after its own gate_leave() if it submits.
 */
static inline uint64_t gate_ticket(const struct gate_queue *q)
{
    const uint64_t counts = ((uint64_t)1 << GATE_WORD_TAG_SHIFT) - 1;
    uint64_t word = atomic_load_explicit(&q->word, memory_order_acquire);
    uint64_t spent = atomic_load_explicit(&q->spent, memory_order_relaxed);
    uint64_t tag = word & (((uint64_t)1 << GATE_WORD_NS_SHIFT) - 1) & ~counts;
    return tag ? tag | ((word + spent) & counts) : 0;
}

/*
 * Everything up to `ticket` is complete.  If nothing was submitted since, an
 * open batch is closed and the reserved rest goes back, so that the broker
 * sees the device idle.  Never waits; about 150 ns, 5 when there is nothing to
 * do.
 */
void gate_drained(struct gate_queue *q, uint64_t ticket);

/* ---- commands that cannot run yet ----------------------------- */

/*
 * Before submitting a command that depends, directly or by in-order position,
 * on a user event not yet set.  The front submits it behind a gate event of
 * its own, without gate_enter() and gate_leave(); an open batch of the queue
 * is marked first, because a marker behind blocked work never completes.
 * NULL when 1024 such commands are outstanding: then submit it ungated and
 * call gate_ungated().
 */
struct gate_deferred *gate_defer(struct gate_queue *q, struct cost_entry *e,
                                 enum gate_kind kind, void *front);
/* Its dependencies are complete: the gate's thread takes a turn and calls
 * ops->open().  From any thread or callback; never waits.  Dead afterwards. */
void gate_defer_ready(struct gate_deferred *d);
/* The driver refused the command, or it was dropped before it was ready. */
void gate_defer_cancel(struct gate_deferred *d);

/* Count a call that went past the gate. */
void gate_ungated(struct gate *g);

/* This is a forked child of the process that made the gates: everything passes. */
bool gate_is_forked(const struct gate *g);

#endif
