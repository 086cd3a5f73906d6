/* The order of the classes for one shape: a binary heap, mended lazily. */
#include "base/array.h"
#include "shape.h"

#include <stdlib.h>

void shape_finish(struct shape *s)
{
    free(s->heap);
    s->heap = NULL;
    s->count = s->room = 0;
}

static void sift_down(struct shape *s, uint32_t at)
{
    struct shape_entry e = s->heap[at];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= s->count)
            break;
        if (child + 1 < s->count &&
            rank_less(&s->heap[child + 1].rank, &s->heap[child].rank))
            child++;
        if (!rank_less(&s->heap[child].rank, &e.rank))
            break;
        s->heap[at] = s->heap[child];
        at = child;
    }
    s->heap[at] = e;
}

static void sift_up(struct shape *s, uint32_t at)
{
    struct shape_entry e = s->heap[at];
    for (; at && rank_less(&e.rank, &s->heap[(at - 1) / 2].rank); at = (at - 1) / 2)
        s->heap[at] = s->heap[(at - 1) / 2];
    s->heap[at] = e;
}

static void heapify(struct shape *s)
{
    for (uint32_t i = s->count / 2; i-- > 0;)
        sift_down(s, i);
}

static bool lives(const struct shape *s, const struct classes *c, uint32_t at)
{
    return class_is(c, s->heap[at].class, s->heap[at].birth);
}

/* ---- walking ---- */

static bool front_less(const struct shape_walk *w, uint32_t a, uint32_t b)
{
    return rank_less(&w->s->heap[a].rank, &w->s->heap[b].rank);
}

static void front_push(struct shape_walk *w, uint32_t place)
{
    uint32_t at = w->front_count++;
    for (; at && front_less(w, place, w->front[(at - 1) / 2]); at = (at - 1) / 2)
        w->front[at] = w->front[(at - 1) / 2];
    w->front[at] = place;
}

static uint32_t front_pop(struct shape_walk *w)
{
    uint32_t best = w->front[0], last = w->front[--w->front_count], at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= w->front_count)
            break;
        if (child + 1 < w->front_count &&
            front_less(w, w->front[child + 1], w->front[child]))
            child++;
        if (!front_less(w, w->front[child], last))
            break;
        w->front[at] = w->front[child];
        at = child;
    }
    w->front[at] = last;
    return best;
}

void shape_walk_begin(struct shape_walk *w, struct shape *s, const struct classes *c,
                      uint32_t *front)
{
    w->s = s;
    w->c = c;
    w->front = front;
    w->front_count = w->seen = w->dead_count = 0;
    if (s->count)
        front_push(w, 0);
}

uint32_t shape_walk_next(struct shape_walk *w)
{
    while (w->front_count) {
        uint32_t at = front_pop(w);
        w->seen++;
        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < w->s->count;
             child++)
            front_push(w, child);
        if (lives(w->s, w->c, at))
            return w->s->heap[at].class;
        if (w->dead_count < SHAPE_WALK_DEAD)
            w->dead[w->dead_count++] = at;
    }
    return CLASS_NONE;
}

/* One that another's dropping moved is left for the next walk. */
void shape_walk_end(struct shape_walk *w)
{
    struct shape *s = w->s;
    while (w->dead_count) {
        uint32_t at = w->dead[--w->dead_count];
        if (at >= s->count || lives(s, w->c, at))
            continue;
        s->heap[at] = s->heap[--s->count];
        if (at == s->count)
            continue;
        sift_up(s, at);
        sift_down(s, at);
    }
}

/* ---- catching up ---- */

static void drop_dead(struct shape *s, const struct classes *c)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->count; i++)
        if (lives(s, c, i))
            s->heap[kept++] = s->heap[i];
    s->count = kept;
    heapify(s);
}

static int reserve(struct shape *s, uint32_t room)
{
    return array_reserve(&s->heap, &s->room, room, sizeof *s->heap);
}

/* At the end, out of order; false: the ask does not fit there. */
static bool append(struct shape *s, const struct classes *c, uint32_t class,
                   shape_rank_fn *rank, void *ctx)
{
    struct shape_entry *e = &s->heap[s->count];
    if (!rank(ctx, &s->ask, class, &e->rank))
        return false;
    e->birth = c->birth[class];
    e->class = class;
    s->count++;
    return true;
}

static int rebuild(struct shape *s, const struct classes *c, shape_rank_fn *rank, void *ctx)
{
    s->count = 0;
    if (reserve(s, c->live + c->live / 2 + 64))
        return -SL_INTERNAL;
    for (uint32_t i = 0; i < c->room; i++)
        if (c->class[i].count)
            append(s, c, i, rank, ctx);
    heapify(s);
    s->cursor = c->births;
    return 0;
}

int shape_catch_up(struct shape *s, const struct classes *c, uint64_t generation,
                   shape_rank_fn *rank, void *ctx)
{
    if (s->generation != generation || !classes_log_has(c, s->cursor)) {
        s->generation = 0; /* start anew next time, if there is no memory now */
        int rc = rebuild(s, c, rank, ctx);
        if (!rc)
            s->generation = generation;
        return rc;
    }
    for (; s->cursor < c->births; s->cursor++) {
        uint32_t class = c->log[s->cursor & c->log_mask];
        if (!class_is(c, class, s->cursor))
            continue;
        if (s->count == s->room) {
            drop_dead(s, c);
            if (s->count + s->count / 4 >= s->room && reserve(s, 2 * s->room)) {
                s->generation = 0; /* start anew next time */
                return -SL_INTERNAL;
            }
        }
        if (append(s, c, class, rank, ctx))
            sift_up(s, s->count - 1);
    }
    return 0;
}
