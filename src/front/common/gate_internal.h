/*
 * What the gate's files share: gate.c (what the front calls), gate_batch.c
 * (batches and what they teach), gate_turn.c (the turn word) and gate_watch.c
 * (the thread).
 *
 * Locks: gates->lock before gate->lock; no call of the front, no message and no
 * futex is made under either.  What a locked section wants done after it goes
 * into a struct gate_after.
 */
#ifndef FRONT_GATE_INTERNAL_H
#define FRONT_GATE_INTERNAL_H

#include "front/gate.h"

enum batch_state {
    BATCH_FREE = 0,
    BATCH_OPEN,     /* named by its queue's word */
    BATCH_SENSED,   /* closed; its completion will be reported */
    BATCH_UNSENSED, /* closed; the thread shall mark it */
};

/* They belong to an ancestor, whose page and locks are not ours to touch; also
 * when the link was opened anew since. */
static inline bool gates_forked(const struct gates *gs)
{
    return gs->forks != link_fork_count();
}

/* To be done when the lock is free again. */
struct gate_after {
    bool want, release, more, wake_done, kick;
};
void gate_after(struct gate *g, const struct gate_after *a);

/* ---- gate_turn.c ------------------------------------------------------- */

/* What a new batch asks for. */
struct gate_ask {
    uint64_t cost_ns; /* predicted; 0: unknown */
    uint32_t alone;   /* unseen: wait so often for an empty device, if contended */
    bool nowait;      /* never mind deadline and bound */
};

enum gate_verdict {
    GATE_GO,      /* the turn word was counted up: *slot, *turn, *now_ns */
    GATE_NO_TURN, /* wait for the page's bell */
    GATE_NO_ROOM, /* wait for something in flight to complete */
};

struct gate_go {
    struct proto_slot *slot;
    uint32_t turn;
    uint64_t now_ns;
    uint64_t budget_ns; /* GATE_BATCH_NS, or less near the deadline */
    bool waited;        /* set by the caller: it was not the first try */
    uint64_t retry_ns;  /* GATE_NO_TURN by our own clock: when to look again */
    uint32_t bell;      /* of the slot's page, read before its state */
};

/* One try to take the turn for a batch.  Under g->lock. */
enum gate_verdict gate_try_turn(struct gate *g, const struct gate_ask *ask,
                                struct gate_go *go, struct gate_after *after);

/* One try; when it fails, sleep until it may be worth another and return false:
 * the caller looks at everything again, because g->lock was free meanwhile. */
bool gate_wait_turn(struct gate *g, struct gate_ask *ask, struct gate_go *go,
                    struct gate_after *after);

/* The turn of this device ends at some time: others want it, or it is metered. */
bool gate_is_bounded(const struct proto_slot *s);
/* The turn in which the batch was opened still holds. */
bool gate_turn_holds(const struct proto_slot *s, uint32_t turn);
/* Use the page of the link's newest WELCOME, or our own clock when it is lost. */
void gate_follow_link(struct gate *g);
/* A batch of this turn is complete: count the turn word down, end the turn if
 * it is due. */
void gate_turn_down(struct gate *g, struct proto_slot *s, uint32_t turn, uint64_t now_ns,
                    struct gate_after *after);

/* ---- gate_batch.c ------------------------------------------------------ */

/* One command on its way in. */
struct gate_command {
    struct cost_entry *entry;
    enum gate_kind kind;
    uint64_t cost_ns;  /* predicted, 0: unknown */
    bool never_sensed; /* its exact entry has no sample: sense it */
};
struct gate_command gate_command(struct cost_entry *e, enum gate_kind kind);

/* A batch under the turn that `go` names, in flight from now on; NULL when
 * all records are taken.  With `sensed` it consists of this one command, else
 * it becomes the queue's open batch.  `q` is NULL for a deferred command. */
struct gate_batch *gate_open_batch(struct gate *g, struct gate_queue *q,
                                   const struct gate_go *go, const struct gate_command *c,
                                   bool sensed);
/* Lower go->budget_ns to the pace of the queue. */
void gate_fit_budget(struct gate_queue *q, struct gate_go *go);
/* The open batch of a queue; NULL: none. */
struct gate_batch *gate_batch_of(struct gate_queue *q);
/* Detach it from the queue.  `closer`, which may be NULL, is its last command. */
struct gate_batch *gate_close_batch(struct gate *g, struct gate_queue *q,
                                    const struct gate_command *closer, uint64_t now_ns);
/* The queue ends: count what its owner spent as its last batch was closed by another. */
void gate_count_rest(struct gate *g, struct gate_queue *q);
/* Its sensed completion: what does it say about costs? */
void gate_learn(struct gate *g, struct gate_batch *b, uint64_t now_ns);
/* It is closed, but nothing will report its completion: a job for the thread. */
void gate_set_unsensed(struct gate *g, struct gate_batch *b);
/* No longer in flight. */
void gate_finish_batch(struct gate *g, struct gate_batch *b, uint64_t now_ns,
                       struct gate_after *after);

/* Commands between enter and leave. */
bool gate_queue_busy(const struct gate_queue *q);
/* Some queue has an open batch. */
bool gate_has_open(const struct gate *g);
/* Close the open batch of a queue and have it sensed by a marker.  Under
 * g->lock, which is free meanwhile: the caller looks at everything again. */
void gate_mark_queue(struct gate *g, struct gate_queue *q);
/* The same for a closed batch that could not be sensed. */
void gate_mark_batch(struct gate *g, struct gate_batch *b);
/* Mark one open batch of a queue that is not busy; false: there is none. */
bool gate_mark_one(struct gate *g);

/* ---- gate_watch.c ------------------------------------------------------ */

/* The thread, at the first submit. */
void gate_watch_start(struct gates *gs);
/* Have the thread look. */
void gate_watch_kick(struct gates *gs);

#endif
