/*
 * Relief: what would fit if others were gone, without asking placement.
 *
 * Leases are lifted off the pool one after the other, and of each node that one was on it
 * is counted anew how many of the option's asks it may take at most.  That is a bound: more do
 * not fit.  For a request of one place it is exact.
 */
#include "sched_impl.h"

/* One group of the option: places that it wants, that there may be. */
struct wish {
    struct pool_ask ask;
    int64_t want, may;
};

static bool all_may(const struct wish *w, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (w[i].may < w[i].want)
            return false;
    return true;
}

static void count_now(struct sched *s, struct wish *w)
{
    uint32_t nodes = pool_node_count(s->pool);
    s->seek_steps -= nodes / 4;
    for (uint32_t i = 0; i < nodes; i++)
        w->may += pool_ask_copies(s->pool, &w->ask, i);
}

static void count_node(const struct sched *s, struct wish *w, uint32_t count, uint32_t node,
                       bool more)
{
    for (uint32_t i = 0; i < count; i++) {
        int64_t copies = pool_ask_copies(s->pool, &w[i].ask, node);
        w[i].may += more ? copies : -copies;
    }
}

static void lift(struct sched *s, const struct request *v, struct wish *w, uint32_t count)
{
    for (uint32_t i = 0; i < v->place_count; i++) {
        count_node(s, w, count, v->place[i].node, false);
        pool_lift(s->pool, option_ask(&v->form->option[v->option], i), &v->place[i]);
        count_node(s, w, count, v->place[i].node, true);
    }
    s->seek_steps -= v->place_count;
}

static void lay(struct sched *s, const struct request *v)
{
    for (uint32_t i = v->place_count; i-- > 0;)
        pool_lay(s->pool, option_ask(&v->form->option[v->option], i), &v->place[i]);
}

uint32_t relief_needed(struct sched *s, const struct form *f, uint32_t option,
                       uint64_t models, uint32_t count,
                       struct request *(*lease)(const struct sched *s, uint32_t i))
{
    const struct sched_option *o = &f->option[option];
    struct wish w[SCHED_MAX_GROUPS];
    uint32_t gone = 0;
    for (uint32_t g = 0; g < o->group_count; g++) {
        w[g] = (struct wish){ .want = o->group[g].count };
        if (!group_ask(s, &o->group[g], models, &w[g].ask))
            return count + 1;
        /* else there is none, as it waits: for room, not for who is there */
        if (o->group_count > 1 || w[g].want > 1 || f->tied)
            count_now(s, &w[g]);
    }
    while (gone < count && !all_may(w, o->group_count))
        lift(s, lease(s, gone++), w, o->group_count);
    bool enough = all_may(w, o->group_count);
    for (uint32_t i = gone; i-- > 0;)
        lay(s, lease(s, i));
    return enough ? gone : count + 1;
}
