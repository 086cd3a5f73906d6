/*
 * What is asked, learned for placement: counts of the asks that were submitted, halved
 * with each new target, so that the past fades.
 */
#include <stdlib.h>
#include <string.h>

#include "sched_impl.h"

#define LEARN_FIRST 64   /* submissions before the first target */
#define LEARN_EVERY 4096 /* … between two, in the end */

#define LEARNED_SHAPES  1024
#define LEARNED_BUCKETS 2048 /* at most half of them in use: probing is short */

struct learned {
    struct place_shape *shape; /* in order of first sight */
    uint32_t count;
    uint16_t bucket[LEARNED_BUCKETS]; /* 1 + index of the shape, by hash; 0: none */
    uint64_t since, goal;
};

int learn_create(struct sched *s)
{
    s->learned = calloc(1, sizeof *s->learned);
    if (!s->learned)
        return -SL_INTERNAL;
    s->learned->goal = LEARN_FIRST;
    s->learned->shape = calloc(LEARNED_SHAPES, sizeof *s->learned->shape);
    return s->learned->shape ? 0 : -SL_INTERNAL;
}

void learn_destroy(struct sched *s)
{
    if (s->learned)
        free(s->learned->shape);
    free(s->learned);
}

/* The bucket that has the ask, or where it would go. */
static uint16_t *bucket_of(struct learned *l, const struct pool_ask *a)
{
    uint64_t at = ask_hash(a);
    while (l->bucket[at % LEARNED_BUCKETS] &&
           !ask_equal(&l->shape[l->bucket[at % LEARNED_BUCKETS] - 1].ask, a))
        at++;
    return &l->bucket[at % LEARNED_BUCKETS];
}

static struct place_shape *shape_of(struct learned *l, const struct pool_ask *a)
{
    uint16_t *bucket = bucket_of(l, a);
    if (!*bucket) {
        if (l->count == LEARNED_SHAPES)
            return NULL; /* too many kinds to learn the rare ones */
        l->shape[l->count++] = (struct place_shape){ .ask = *a };
        *bucket = (uint16_t)l->count;
    }
    return &l->shape[*bucket - 1];
}

static void fade(struct learned *l)
{
    uint32_t kept = 0;
    memset(l->bucket, 0, sizeof l->bucket);
    for (uint32_t i = 0; i < l->count; i++) {
        l->shape[i].popularity /= 2;
        if (!l->shape[i].popularity)
            continue;
        l->shape[kept] = l->shape[i];
        *bucket_of(l, &l->shape[kept].ask) = (uint16_t)(kept + 1);
        kept++;
    }
    l->count = kept;
}

void learn(struct sched *s, const struct sched_request *q)
{
    struct learned *l = s->learned;
    const struct sched_option *o = &q->option[0];
    for (uint32_t g = 0; g < o->group_count; g++) {
        if (o->group[g].ask.lower)
            continue;
        struct pool_ask ask = o->group[g].ask;
        ask.owner = 0; /* whoever asks */
        struct place_shape *shape = shape_of(l, &ask);
        if (shape)
            shape->popularity += 16ull * o->group[g].count;
    }
    if (++l->since < l->goal)
        return;
    l->since = 0;
    l->goal = l->goal * 2 > LEARN_EVERY ? LEARN_EVERY : l->goal * 2;
    /* nothing asks for a device yet: as before */
    placer_set_target(s->placer, l->shape, l->count, NULL);
    fade(l);
}
