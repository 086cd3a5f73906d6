/*
 * A shape: one kind of ask, and the order of the capacity classes for it.
 * Private to sched.
 *
 * The order is a lazy heap: classes are added when they are born (read off the
 * classes' log when the shape is next used), and dead ones are dropped when a walk
 * meets them, or when they are most of the heap.
 */
#ifndef SCHED_SHAPE_H
#define SCHED_SHAPE_H

#include "pool_impl.h"

#define SHAPE_WALK_DEAD 32 /* that one walk drops */

/* What places a class in the order: smaller is better. */
struct shape_rank {
    uint64_t key;  /* bucket of the growth of fragmentation, idle compute, idle CPU */
    uint64_t hash; /* of the state: decides among equals */
};

struct shape_entry {
    struct shape_rank rank;
    uint64_t birth;
    uint32_t class;
};

/* The rank of a class for the ask; false: it does not fit there. */
typedef bool shape_rank_fn(void *ctx, const struct pool_ask *a, uint32_t class,
                           struct shape_rank *out);

struct shape {
    struct pool_ask ask;
    struct shape_entry *heap;
    uint32_t count, room;
    uint64_t cursor;     /* births before it are known */
    uint64_t generation; /* of the target that the ranks are by */
    uint64_t used;       /* when, in finds */
};

static inline bool rank_less(const struct shape_rank *a, const struct shape_rank *b)
{
    return a->key != b->key ? a->key < b->key : a->hash < b->hash;
}

void shape_finish(struct shape *s);

/* Bring the order up to date.  -SL_INTERNAL: no memory, and the order is empty. */
int shape_catch_up(struct shape *s, const struct classes *c, uint64_t generation,
                   shape_rank_fn *rank, void *ctx);

/*
 * The living classes, best first, without taking them out: of a heap the next best is
 * always a child of one that was seen.  The dead that are met are dropped at the end.
 */
struct shape_walk {
    struct shape *s;
    const struct classes *c;
    uint32_t *front; /* heap of places in s->heap: seen is all above them */
    uint32_t front_count, seen;
    uint32_t dead[SHAPE_WALK_DEAD], dead_count;
};

/* `front` has room for s->count places, and one. */
void shape_walk_begin(struct shape_walk *w, struct shape *s, const struct classes *c,
                      uint32_t *front);
/* The next class; CLASS_NONE: that was all. */
uint32_t shape_walk_next(struct shape_walk *w);
void shape_walk_end(struct shape_walk *w);

#endif
