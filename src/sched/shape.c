/* The order of the classes for one shape: a binary heap, mended lazily. */
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

void shape_push(struct shape *s, const struct shape_entry *e)
{
    uint32_t at = s->count++;
    while (at && rank_less(&e->rank, &s->heap[(at - 1) / 2].rank)) {
        s->heap[at] = s->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    s->heap[at] = *e;
}

static void drop_top(struct shape *s)
{
    s->heap[0] = s->heap[--s->count];
    if (s->count)
        sift_down(s, 0);
}

bool shape_pop(struct shape *s, const struct classes *c, struct shape_entry *out)
{
    while (s->count) {
        *out = s->heap[0];
        drop_top(s);
        if (class_is(c, out->class, out->birth))
            return true;
    }
    return false;
}

static void drop_dead(struct shape *s, const struct classes *c)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->count; i++)
        if (class_is(c, s->heap[i].class, s->heap[i].birth))
            s->heap[kept++] = s->heap[i];
    s->count = kept;
    for (uint32_t i = kept / 2; i-- > 0;)
        sift_down(s, i);
}

static int reserve(struct shape *s, uint32_t room)
{
    if (room <= s->room)
        return 0;
    struct shape_entry *heap = realloc(s->heap, room * sizeof *heap);
    if (!heap)
        return -SL_INTERNAL;
    s->heap = heap;
    s->room = room;
    return 0;
}

static void add(struct shape *s, const struct classes *c, uint32_t class,
                shape_rank_fn *rank, void *ctx)
{
    struct shape_entry e = { .birth = c->class[class].birth, .class = class };
    if (rank(ctx, &s->ask, class, &e.rank))
        shape_push(s, &e);
}

static int rebuild(struct shape *s, const struct classes *c, shape_rank_fn *rank, void *ctx)
{
    s->count = 0;
    if (reserve(s, c->live + c->live / 2 + 64))
        return -SL_INTERNAL;
    for (uint32_t i = 0; i < c->room; i++)
        if (c->class[i].count)
            add(s, c, i, rank, ctx);
    s->cursor = c->births;
    return 0;
}

int shape_catch_up(struct shape *s, const struct classes *c, uint64_t generation,
                   shape_rank_fn *rank, void *ctx)
{
    if (s->generation != generation || !classes_log_has(c, s->cursor)) {
        s->generation = generation;
        return rebuild(s, c, rank, ctx);
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
        add(s, c, class, rank, ctx);
    }
    return 0;
}
