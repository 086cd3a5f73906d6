/*
 * A gang within one vertex: a node, a rack, a zone.
 *
 * The vertices that may have room are tried from the one with least free.  In each the asks
 * are placed one after the other, as anywhere.  That finds a place whenever there is one for
 * asks all alike; where asks differ and it found none, all ways are searched, hardest asks
 * first, within a budget of steps: a look at a node, or an ask placed.
 */
#include <stdlib.h>
#include <string.h>

#include "sched_impl.h"

#define STEPS_LEAST      4096 /* … and some for each place */
#define STEPS_OF_A_PLACE 8
#define SEARCH_PLACES    64 /* larger gangs would spend the budget in vain */

void room_now(const struct pool *p, const struct pool_ask *a, uint32_t node,
              struct room *out)
{
    const struct pool_slot *n = &p->node[node];
    *out = (struct room){ .host_mem_bytes = slot_host_mem_free(n, a),
                          .cpu_milli = slot_cpu_free(n, a),
                          .device_count = n->is.device_count };
    for (uint32_t i = 0; i < n->is.device_count; i++)
        out->device[i] = n->device[i].now;
}

void room_empty(const struct pool *p, const struct pool_ask *a, uint32_t node,
                struct room *out)
{
    const struct pool_node *n = &p->node[node].is;
    *out = (struct room){ .host_mem_bytes =
                              a->lower ? n->over_host_mem_bytes : n->host_mem_bytes,
                          .cpu_milli = a->lower ? n->over_cpu_milli : n->cpu_milli,
                          .device_count = n->device_count };
    for (uint32_t i = 0; i < n->device_count; i++)
        out->device[i] = device_empty(p, &n->device[i]);
}

uint64_t asks_in(const struct pool *p, const struct room *r, const struct pool_ask *a,
                 uint64_t most)
{
    uint64_t slices = 0;
    most = times_in(r->cpu_milli, a->cpu_milli, most);
    most = times_in(r->host_mem_bytes, a->host_mem_bytes, most);
    for (uint32_t i = 0; i < r->device_count; i++)
        slices += device_holds(p, a, &r->device[i], most);
    return times_in(slices, a->devices, most);
}

/* ---- candidates ---- */

/* A vertex, or a node that counts as one. */
struct candidate {
    const uint32_t *node; /* NULL: itself */
    uint32_t count, itself;
    uint64_t idle; /* whole devices free; of a node all that is idle; in permille */
};

/* What the option asks in whole devices, together and of which models. */
struct whole_need {
    uint64_t devices, models;
};

static struct whole_need whole_need(const struct pool_ask *ask,
                                    const struct sched_option *o)
{
    struct whole_need w = { 0 };
    for (uint32_t g = 0; g < o->group_count; g++) {
        if (!ask[g].devices || ask[g].permille < 1000 || ask[g].lower)
            continue;
        w.devices += (uint64_t)o->group[g].count * ask[g].devices;
        w.models |= ask[g].models ? ask[g].models : UINT64_MAX;
    }
    return w;
}

static uint64_t idle_of(const struct pool *p, uint32_t node)
{
    uint64_t idle = 0;
    for (uint32_t i = 0; i < p->node[node].is.device_count; i++)
        idle += p->node[node].device[i].now.permille;
    return idle;
}

static void add_nodes(struct sched *s, const struct pool_ask *first, enum pool_level level,
                      bool empty, uint32_t *count)
{
    const struct pool *p = s->pool;
    for (uint32_t n = 0; n < p->node_count; n++) {
        const struct node_near *at = &p->node[n].near;
        if (level != POOL_NODE &&
            (at->rack != VERTEX_NONE || (level == POOL_ZONE && at->zone != VERTEX_NONE)))
            continue;
        if (empty || pool_ask_fits(p, first, n))
            s->candidate[(*count)++] = (struct candidate){ NULL, 1, n, idle_of(p, n) };
    }
}

static void add_vertices(struct sched *s, const struct whole_need *need,
                         enum pool_level level, bool empty, uint32_t *count)
{
    const struct near *n = &s->pool->near;
    for (uint32_t i = 0; i < n->count; i++) {
        const struct vertex *v = &n->vertex[i];
        bool as_zone =
            level == POOL_ZONE && v->level == POOL_RACK && v->zone == VERTEX_NONE;
        uint32_t free = near_sum(empty ? v->whole_all : v->whole_free,
                                 need->devices ? need->models : UINT64_MAX);
        if ((v->level == level || as_zone) && free >= need->devices)
            s->candidate[(*count)++] =
                (struct candidate){ v->node, v->node_count, 0, 1000ull * free };
    }
}

static bool has_loose(const struct near *n, enum pool_level level)
{
    return level == POOL_NODE || (level == POOL_RACK ? n->rackless : n->zoneless);
}

/* Those of the level that may have room, in order of number. */
static int gather(struct sched *s, const struct sched_option *o, const struct pool_ask *ask,
                  bool empty, uint32_t *count)
{
    const struct near *n = &s->pool->near;
    struct whole_need need = whole_need(ask, o);
    *count = 0;
    if (array_reserve(&s->candidate, &s->candidate_room, n->count + s->pool->node_count,
                      sizeof *s->candidate))
        return -SL_INTERNAL;
    if (o->within != POOL_NODE)
        add_vertices(s, &need, o->within, empty, count);
    if (has_loose(n, o->within))
        add_nodes(s, &ask[0], o->within, empty, count);
    return 0;
}

static const uint32_t *nodes_of(const struct candidate *c)
{
    return c->node ? c->node : &c->itself;
}

/* The one left tightest first. */
static int compare_candidates(const void *x, const void *y)
{
    const struct candidate *a = x, *b = y;
    if (a->idle != b->idle)
        return a->idle < b->idle ? -1 : 1;
    if (!a->node != !b->node)
        return a->node ? -1 : 1;
    return *nodes_of(a) < *nodes_of(b) ? -1 : 1;
}

/* Is there room for each group, if it were alone?  Else *group is the first without. */
static bool has_room(const struct pool *p, const struct candidate *c,
                     const struct sched_option *o, const struct pool_ask *ask, bool empty,
                     uint32_t *group)
{
    for (*group = 0; *group < o->group_count; ++*group) {
        const struct pool_ask *a = &ask[*group];
        uint64_t want = o->group[*group].count;
        for (uint32_t i = 0; i < c->count && want; i++) {
            struct room room;
            uint32_t node = nodes_of(c)[i];
            if (!pool_kind_suits(p, a, p->node[node].kind) ||
                (!empty && !p->node[node].open))
                continue;
            if (empty)
                room_empty(p, a, node, &room);
            else
                room_now(p, a, node, &room);
            want -= asks_in(p, &room, a, want);
        }
        if (want)
            return false;
    }
    return true;
}

/* ---- the search where asks differ ---- */

struct search {
    struct sched *s;
    const struct form *form;
    const struct sched_option *o;
    const struct pool_ask *ask;
    const struct candidate *in;
    uint32_t order[SCHED_MAX_GROUPS]; /* groups, the hardest first */
    uint32_t first[SCHED_MAX_GROUPS]; /* place of each group in s->gang */
};

static uint64_t hardness(const struct pool_ask *a)
{
    return (uint64_t)a->devices * a->permille << 32 | a->cpu_milli;
}

static void order_groups(struct search *f)
{
    uint32_t place = 0;
    for (uint32_t g = 0; g < f->o->group_count; g++) {
        uint32_t at = g;
        f->first[g] = place;
        place += f->o->group[g].count;
        for (; at && hardness(&f->ask[f->order[at - 1]]) < hardness(&f->ask[g]); at--)
            f->order[at] = f->order[at - 1];
        f->order[at] = g;
    }
}

static bool take_step(struct sched *s)
{
    if (s->steps)
        return s->steps--;
    s->gave_up = true;
    return false;
}

/* The i-th ask of the group that is at-th in the order, and all after it; asks of a group
 * lie on nodes in ascending order. */
static int search_from(struct search *f, uint32_t at, uint32_t i, uint32_t from)
{
    if (at == f->o->group_count)
        return 0;
    uint32_t g = f->order[at], tried = CLASS_NONE;
    struct sched *s = f->s;
    if (i == f->o->group[g].count)
        return search_from(f, at + 1, 0, 0);
    for (uint32_t k = from; k < f->in->count; k++) {
        uint32_t node = nodes_of(f->in)[k], mark = pool_mark(s->pool);
        struct place_filter only = { .node = &node, .node_count = 1 };
        struct pool_place *place = &s->gang[f->first[g] + i];
        if (!take_step(s))
            return -SL_NO_CAPACITY;
        if (!pool_ask_fits(s->pool, &f->ask[g], node) || s->pool->node[node].class == tried)
            continue;
        /* another in this state would do no better, unless others matter */
        tried = f->form->ties.tie_count ? CLASS_NONE : s->pool->node[node].class;
        int rc = ask_find(s, f->form, &f->ask[g], &only, place);
        if (!rc) {
            try_take(s, f->form, &f->ask[g], place);
            rc = search_from(f, at, i + 1, k);
        }
        if (rc != -SL_NO_CAPACITY || s->gave_up)
            return rc;
        try_undo_to(s, mark);
    }
    return -SL_NO_CAPACITY;
}

static bool all_alike(const struct pool_ask *ask, uint32_t count)
{
    for (uint32_t g = 1; g < count; g++)
        if (!ask_equal(&ask[g], &ask[0]))
            return false;
    return true;
}

static bool has_splits(const struct sched_option *o)
{
    for (uint32_t g = 0; g < o->group_count; g++)
        if (o->group[g].beside || o->group[g].split_least)
            return true;
    return false;
}

static int search(struct sched *s, const struct form *form, const struct sched_option *o,
                  const struct pool_ask *ask, const struct candidate *in, uint32_t places)
{
    struct search f = { .s = s, .form = form, .o = o, .ask = ask, .in = in };
    if (!form->ties.tie_count && !has_splits(o) && all_alike(ask, o->group_count))
        return -SL_NO_CAPACITY;
    if (has_splits(o)) { /* not searched, but others may have a place */
        s->unproven |= o->within_required && (form->ties.tie_count || o->group_count > 1);
        return -SL_NO_CAPACITY;
    }
    if (places > SEARCH_PLACES) {
        s->gave_up = true;
        return -SL_NO_CAPACITY;
    }
    order_groups(&f);
    return search_from(&f, 0, 0, 0);
}

/* ---- the whole gang ---- */

static int place_in(struct sched *s, const struct form *f, const struct sched_option *o,
                    const struct pool_ask *ask, const struct candidate *in, uint32_t places,
                    uint32_t *group)
{
    struct place_filter only = { .node = nodes_of(in), .node_count = in->count };
    uint32_t mark = pool_mark(s->pool);
    if (!has_room(s->pool, in, o, ask, false, group))
        return -SL_NO_CAPACITY;
    if (s->steps < places) {
        s->gave_up = true;
        return -SL_NO_CAPACITY;
    }
    s->steps -= places;
    int rc = gang_place_by(s, f, o, ask, &only, group);
    if (rc != -SL_NO_CAPACITY)
        return rc;
    try_undo_to(s, mark);
    rc = search(s, f, o, ask, in, places);
    if (rc == -SL_NO_CAPACITY)
        try_undo_to(s, mark);
    return rc;
}

int within_place(struct sched *s, const struct form *f, const struct sched_option *o,
                 const struct pool_ask *ask, uint32_t *group)
{
    uint32_t count, places = 0, g = 0;
    int rc = gather(s, o, ask, false, &count);
    if (rc)
        return rc;
    if (count) /* nothing: no array */
        qsort(s->candidate, count, sizeof *s->candidate, compare_candidates);
    for (uint32_t i = 0; i < o->group_count; i++)
        places += o->group[i].count;
    s->steps = STEPS_LEAST + STEPS_OF_A_PLACE * places;
    s->gave_up = false;
    rc = -SL_NO_CAPACITY;
    *group = 0;
    for (uint32_t i = 0; i < count && rc == -SL_NO_CAPACITY && !s->gave_up; i++) {
        rc = place_in(s, f, o, ask, &s->candidate[i], places, &g);
        *group = g > *group ? g : *group;
    }
    s->unproven |= s->gave_up && o->within_required;
    return rc;
}

int within_possible(struct sched *s, const struct sched_option *o, bool *possible,
                    uint32_t *group)
{
    struct pool_ask ask[SCHED_MAX_GROUPS];
    uint32_t count, g;
    for (uint32_t i = 0; i < o->group_count; i++)
        ask[i] = o->group[i].ask;
    int rc = gather(s, o, ask, true, &count);
    *possible = false;
    *group = 0;
    for (uint32_t i = 0; i < count && !rc && !*possible; i++) {
        *possible = has_room(s->pool, &s->candidate[i], o, ask, true, &g);
        *group = g > *group ? g : *group;
    }
    return rc;
}

bool within_holds(const struct sched *s, enum pool_level level,
                  const struct pool_place *place, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (!near_together(s->pool, place[0].node, place[i].node, level))
            return false;
    return true;
}

/* ---- the order of ranks ---- */

static int compare_places(const void *x, const void *y, void *pool)
{
    const struct pool_place *a = x, *b = y;
    const struct pool_node *m = pool_node_at(pool, a->node),
                           *n = pool_node_at(pool, b->node);
    if (m->zone != n->zone)
        return m->zone < n->zone ? -1 : 1;
    if (m->rack != n->rack)
        return m->rack < n->rack ? -1 : 1;
    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    return memcmp(a->device, b->device, sizeof a->device);
}

static void swap_places(struct pool_place *a, struct pool_place *b)
{
    struct pool_place keep = *a;
    *a = *b;
    *b = keep;
}

/* Groups beside each other keep together; in shrinking steps (Shell 1959). */
static void sort_bundles(const struct sched *s, struct pool_place *place, uint32_t groups,
                         uint32_t count)
{
    for (uint32_t step = count / 2; step; step /= 2)
        for (uint32_t i = step; i < count; i++)
            for (uint32_t at = i;
                 at >= step && compare_places(&place[at], &place[at - step], s->pool) < 0;
                 at -= step)
                for (uint32_t g = 0; g < groups; g++)
                    swap_places(&place[g * count + at], &place[g * count + at - step]);
}

void sort_ranks(const struct sched *s, const struct sched_option *o,
                struct pool_place *place)
{
    for (uint32_t g = 0, n; g < o->group_count; g += n) {
        uint32_t count = o->group[g].count;
        n = bundle_size(o, g);
        if (n > 1)
            sort_bundles(s, place, n, count);
        else if (count > 1)
            qsort_r(place, count, sizeof *place, compare_places, s->pool);
        place += n * count;
    }
}
