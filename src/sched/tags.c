/*
 * Tags and ties: what runs carries tags; a request may be tied to a tag, with it or apart.
 *
 * A *spot* is a device, a node, a rack or a zone.  A cell per tag and spot counts the
 * places there that carry the tag, and those that demand to be apart from it.  Cells are
 * kept in one open hash table; who has neither tags nor ties costs nothing.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "sched_impl.h"

struct tag_cell {
    uint64_t spot;
    uint32_t tag;
    uint32_t have, apart; /* places */
    uint8_t level;
    bool used;
};

/* Inside a try: a place that came or went, when the pool was at this step. */
struct tag_step {
    const struct form *form;
    struct pool_place at;
    uint32_t pool_step;
    bool more;
};

void tags_finish(struct tags *t)
{
    free(t->cell);
    free(t->step);
    *t = (struct tags){ 0 };
}

/* ---- spots ---- */

static uint64_t spot_of(const struct pool *p, enum pool_level level, uint32_t node,
                        uint32_t device)
{
    const struct node_near *at = &p->node[node].near;
    switch (level) {
    case POOL_ANYWHERE:
        return 0;
    case POOL_DEVICE:
        return (uint64_t)node * POOL_MAX_DEVICES + device;
    case POOL_ZONE:
        if (at->zone != VERTEX_NONE)
            return 2ull << 32 | at->zone;
        /* fall through */
    case POOL_RACK:
        if (at->rack != VERTEX_NONE)
            return 1ull << 32 | at->rack;
        /* fall through */
    case POOL_NODE:
        break;
    }
    return node;
}

/* ---- cells ---- */

static uint32_t home_of(uint32_t tag, uint8_t level, uint64_t spot)
{
    return (uint32_t)hash_mix(hash_mix(spot, tag), level);
}

/* Its cell, or the free one where it would be. */
static struct tag_cell *cell_at(struct tag_cell *cell, uint32_t mask, uint32_t tag,
                                enum pool_level level, uint64_t spot)
{
    uint32_t i = home_of(tag, (uint8_t)level, spot);
    while (cell[i & mask].used &&
           (cell[i & mask].tag != tag || cell[i & mask].level != level ||
            cell[i & mask].spot != spot))
        i++;
    return &cell[i & mask];
}

static const struct tag_cell *look(const struct tags *t, uint32_t tag,
                                   enum pool_level level, uint64_t spot)
{
    static const struct tag_cell none;
    if (!t->cell)
        return &none;
    return cell_at(t->cell, t->mask, tag, level, spot);
}

/* Room for so many more cells, so that counting cannot fail. */
static int reserve_cells(struct tags *t, uint32_t more)
{
    uint32_t room = t->cell ? t->mask + 1 : 64;
    if (t->cell && 2 * (t->count + more) <= room)
        return 0;
    while (3 * (t->count + more) > room)
        room *= 2;
    struct tag_cell *cell = calloc(room, sizeof *cell);
    if (!cell)
        return -SL_INTERNAL;
    for (uint32_t i = 0; t->cell && i <= t->mask; i++) {
        const struct tag_cell *c = &t->cell[i];
        if (c->used)
            *cell_at(cell, room - 1, c->tag, (enum pool_level)c->level, c->spot) = *c;
    }
    free(t->cell);
    t->cell = cell;
    t->mask = room - 1;
    return 0;
}

/* A cell that counts nothing any more goes at once, as tries that are undone would fill the
 * table; those behind it that had to pass it move up. */
static void drop_cell(struct tags *t, struct tag_cell *c)
{
    uint32_t hole = (uint32_t)(c - t->cell);
    for (uint32_t i = hole + 1; t->cell[i & t->mask].used; i++) {
        const struct tag_cell *x = &t->cell[i & t->mask];
        uint32_t home = home_of(x->tag, x->level, x->spot);
        if (((i - home) & t->mask) < ((i - hole) & t->mask))
            continue;
        t->cell[hole & t->mask] = *x;
        hole = i;
    }
    t->cell[hole & t->mask] = (struct tag_cell){ 0 };
    t->count--;
}

static void count(struct tags *t, uint32_t tag, enum pool_level level, uint64_t spot,
                  int32_t have, int32_t apart)
{
    struct tag_cell *c = cell_at(t->cell, t->mask, tag, level, spot);
    if (!c->used) {
        *c = (struct tag_cell){
            .spot = spot, .tag = tag, .level = (uint8_t)level, .used = true
        };
        t->count++;
    }
    assert((int64_t)c->have + have >= 0 && (int64_t)c->apart + apart >= 0);
    c->have += (uint32_t)have;
    c->apart += (uint32_t)apart;
    if (!c->have && !c->apart)
        drop_cell(t, c);
}

/* At the place's spot of this level; at that of each of its devices. */
static void count_spots(const struct pool *p, struct tags *t, uint32_t tag,
                        enum pool_level level, const struct pool_place *at, int32_t have,
                        int32_t apart)
{
    if (level != POOL_DEVICE) {
        count(t, tag, level, spot_of(p, level, at->node, 0), have, apart);
        return;
    }
    for (uint32_t i = 0; i < at->device_count; i++)
        count(t, tag, level, spot_of(p, level, at->node, at->device[i]), have, apart);
}

static void count_place(const struct pool *p, struct tags *t, const struct sched_ties *ties,
                        const struct pool_place *at, int32_t more)
{
    for (uint32_t i = 0; i < ties->tag_count; i++)
        for (enum pool_level level = POOL_ANYWHERE; level <= POOL_DEVICE; level++)
            count_spots(p, t, ties->tag[i], level, at, more, 0);
    for (uint32_t i = 0; i < ties->tie_count; i++) {
        const struct sched_tie *tie = &ties->tie[i];
        if (!tie->apart || !tie->required)
            continue;
        count_spots(p, t, tie->tag, tie->level, at, 0, more);
        t->apart += (uint32_t)more;
    }
}

/* ---- taking and giving, and trying ---- */

static uint32_t cells_of(const struct form *f, uint32_t option)
{
    uint32_t cells = 0;
    const struct sched_option *o = &f->option[option];
    for (uint32_t g = 0; g < o->group_count; g++) {
        uint32_t devices = o->group[g].ask.devices;
        cells += o->group[g].count *
                 (f->ties.tag_count * (4 + devices) + f->ties.tie_count * (1 + devices));
    }
    return cells;
}

int try_begin(struct sched *s, const struct form *f, uint32_t option, uint32_t steps)
{
    struct tags *t = &s->tags;
    if ((f->tied || t->cell) &&
        (reserve_cells(t, cells_of(f, option)) ||
         array_reserve(&t->step, &t->step_room, steps, sizeof *t->step)))
        return -SL_INTERNAL;
    t->step_count = 0;
    return pool_try(s->pool, steps);
}

void try_undo_to(struct sched *s, uint32_t mark)
{
    struct tags *t = &s->tags;
    pool_undo_to(s->pool, mark);
    while (t->step_count && t->step[t->step_count - 1].pool_step >= mark) {
        const struct tag_step *step = &t->step[--t->step_count];
        count_place(s->pool, t, &step->form->ties, &step->at, step->more ? -1 : 1);
    }
}

void try_undo(struct sched *s)
{
    try_undo_to(s, 0);
    pool_undo(s->pool);
}

void try_keep(struct sched *s)
{
    s->tags.step_count = 0;
    pool_keep(s->pool);
}

static void note(struct sched *s, const struct form *f, const struct pool_place *at,
                 bool more)
{
    struct tags *t = &s->tags;
    if (!f->tied)
        return;
    assert(t->step_count < t->step_room);
    t->step[t->step_count++] = (struct tag_step){ f, *at, pool_mark(s->pool), more };
    count_place(s->pool, t, &f->ties, at, more ? 1 : -1);
}

void try_take(struct sched *s, const struct form *f, const struct pool_ask *a,
              const struct pool_place *at)
{
    note(s, f, at, true);
    pool_take(s->pool, a, at);
}

void try_give(struct sched *s, const struct form *f, const struct pool_ask *a,
              const struct pool_place *at)
{
    note(s, f, at, false);
    pool_give(s->pool, a, at);
}

void tags_hold(struct sched *s, const struct request *r, bool more)
{
    for (uint32_t i = 0; r->form->tied && i < r->place_count; i++)
        count_place(s->pool, &s->tags, &r->form->ties, &r->place[i], more ? 1 : -1);
}

/* ---- fit ---- */

static bool carries(const struct sched_ties *t, uint32_t tag)
{
    for (uint32_t i = 0; i < t->tag_count; i++)
        if (t->tag[i] == tag)
            return true;
    return false;
}

/* Does the tie hold at the spot?  Who is the first of those it wants to be with may be
 * anywhere. */
static bool tie_holds(const struct sched *s, const struct sched_ties *t,
                      const struct sched_tie *tie, uint64_t spot)
{
    if (look(&s->tags, tie->tag, tie->level, spot)->have)
        return !tie->apart;
    return tie->apart ||
           (carries(t, tie->tag) && !look(&s->tags, tie->tag, POOL_ANYWHERE, 0)->have);
}

/* Does nobody there demand to be apart from a tag of it? */
static bool is_welcome(const struct sched *s, const struct sched_ties *t,
                       enum pool_level level, uint64_t spot)
{
    for (uint32_t i = 0; i < t->tag_count && s->tags.apart; i++)
        if (look(&s->tags, t->tag[i], level, spot)->apart)
            return false;
    return true;
}

/* What is asked of a node: the required ties, and the first of the preferred. */
struct wish {
    const struct sched *s;
    const struct form *form;
    const struct pool_ask *ask; /* n of them, beside each other */
    uint32_t n;
    uint32_t preferred;
};

static bool is_wished(const struct sched_tie *tie, uint32_t *preferred)
{
    if (tie->required)
        return true;
    if (!*preferred)
        return false;
    --*preferred;
    return true;
}

/* The devices of the node that will do. */
static uint32_t devices_ok(const struct wish *w, const struct pool_ask *a, uint32_t node)
{
    const struct pool_slot *n = &w->s->pool->node[node];
    const struct sched_ties *t = &w->form->ties;
    uint32_t mask = 0;
    for (uint32_t d = 0; d < n->is.device_count; d++) {
        uint64_t spot = spot_of(w->s->pool, POOL_DEVICE, node, d);
        uint32_t preferred = w->preferred;
        bool ok = pool_device_suits(w->s->pool, a, &n->device[d].now) &&
                  is_welcome(w->s, t, POOL_DEVICE, spot);
        for (uint32_t i = 0; i < t->tie_count && ok; i++)
            if (is_wished(&t->tie[i], &preferred) && t->tie[i].level == POOL_DEVICE)
                ok = tie_holds(w->s, t, &t->tie[i], spot);
        mask |= (uint32_t)ok << d;
    }
    return mask;
}

/* The ties to nodes and above. */
static bool ties_ok(const struct wish *w, uint32_t node)
{
    const struct sched_ties *t = &w->form->ties;
    uint32_t preferred = w->preferred;
    for (enum pool_level level = POOL_NODE; level <= POOL_ZONE; level++)
        if (!is_welcome(w->s, t, level, spot_of(w->s->pool, level, node, 0)))
            return false;
    for (uint32_t i = 0; i < t->tie_count; i++)
        if (is_wished(&t->tie[i], &preferred) && t->tie[i].level != POOL_DEVICE &&
            !tie_holds(w->s, t, &t->tie[i], spot_of(w->s->pool, t->tie[i].level, node, 0)))
            return false;
    return true;
}

bool ties_may_hold(const struct sched *s, const struct form *f, uint32_t node)
{
    struct wish required = { .s = s, .form = f };
    return !f->tied || ties_ok(&required, node);
}

/* Devices of the node for all, to out[] unless NULL. */
static bool find_devices(const struct wish *w, uint32_t node, struct pool_place *out)
{
    struct room room;
    uint32_t ok[SCHED_MAX_GROUPS];
    for (uint32_t k = 0; k < w->n; k++) {
        if (!pool_ask_fits(w->s->pool, &w->ask[k], node))
            return false;
        ok[k] = devices_ok(w, &w->ask[k], node);
    }
    if (w->n == 1 && !out)
        return (uint32_t)__builtin_popcount(ok[0]) >= w->ask->devices;
    room_now(w->s->pool, w->ask, node, &room);
    return bundle_match(&room, w->ask, ok, w->n, out);
}

static bool node_ok(void *ctx, uint32_t node)
{
    return ties_ok(ctx, node) && find_devices(ctx, node, NULL);
}

/* The placer chose the node, and devices for one ask as if all would do. */
static void choose_devices(const struct wish *w, struct pool_place *out)
{
    uint32_t ok = devices_ok(w, w->ask, out->node), chosen = 0;
    for (uint32_t i = 0; i < out->device_count; i++)
        chosen |= 1u << out->device[i];
    if (w->n == 1 && !(chosen & ~ok))
        return;
    for (uint32_t k = 0; k < w->n; k++)
        out[k] = (struct pool_place){ .node = out->node };
    if (!find_devices(w, out->node, out))
        abort(); /* node_ok() said so */
    for (uint32_t k = 0; k < w->n; k++)
        pool_place_cut(w->s->pool, &w->ask[k], &out[k]);
}

static uint32_t preferred_of(const struct sched_ties *t)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->tie_count; i++)
        n += !t->tie[i].required;
    return n;
}

/* What is preferred is given up from the last on, until something fits.  The node is ranked
 * by the first ask. */
int bundle_find(struct sched *s, const struct form *f, const struct pool_ask *ask,
                uint32_t n, const struct place_filter *filter, struct pool_place *out)
{
    struct wish w = { s, f, ask, n, preferred_of(&f->ties) };
    struct place_filter tied = { .node_ok = node_ok, .ctx = &w };
    if (filter) {
        assert(!filter->node_ok);
        tied.node = filter->node;
        tied.node_count = filter->node_count;
    }
    int rc = placer_find(s->placer, ask, &tied, out);
    while (rc == -SL_NO_CAPACITY && w.preferred) {
        w.preferred--;
        rc = placer_find(s->placer, ask, &tied, out);
    }
    if (!rc)
        choose_devices(&w, out);
    return rc;
}

static bool is_free(const struct sched *s, const struct form *f)
{
    return !f->tied || (!f->ties.tie_count && !s->tags.apart);
}

int ask_find(struct sched *s, const struct form *f, const struct pool_ask *a,
             const struct place_filter *filter, struct pool_place *out)
{
    if (is_free(s, f))
        return placer_find(s->placer, a, filter, out);
    return bundle_find(s, f, a, 1, filter, out);
}

bool ties_suit(struct sched *s, const struct form *f, const struct pool_ask *a,
               uint32_t node)
{
    struct wish w = { s, f, a, 1, 0 };
    return is_free(s, f) || node_ok(&w, node);
}

/* May it come back to where it was?  Whom it was with may be gone. */
bool tags_allow(const struct sched *s, const struct form *f, const struct pool_place *at)
{
    for (enum pool_level level = POOL_NODE; f->tied && level <= POOL_DEVICE; level++)
        for (uint32_t k = 0; k < (level == POOL_DEVICE ? at->device_count : 1); k++) {
            uint64_t spot = spot_of(s->pool, level, at->node, at->device[k]);
            if (!is_welcome(s, &f->ties, level, spot))
                return false;
            for (uint32_t i = 0; i < f->ties.tie_count; i++) {
                const struct sched_tie *tie = &f->ties.tie[i];
                if (tie->required && tie->apart && tie->level == level &&
                    look(&s->tags, tie->tag, level, spot)->have)
                    return false;
            }
        }
    return true;
}

/* ---- waking ---- */

static bool wants_to_know(const struct sched_ties *waits, const struct sched_ties *changed)
{
    for (uint32_t i = 0; i < waits->tie_count; i++)
        if (carries(changed, waits->tie[i].tag))
            return true;
    for (uint32_t i = 0; i < changed->tie_count; i++)
        if (changed->tie[i].apart && carries(waits, changed->tie[i].tag))
            return true;
    return false;
}

void tags_wake(struct sched *s, const struct form *f)
{
    for (struct line *l = f->tied ? s->parked : NULL, *next; l; l = next) {
        next = l->parked_next;
        if (l->form->tied && l->verdict != SCHED_OVER_LIMIT &&
            wants_to_know(&l->form->ties, &f->ties))
            line_wake(s, l);
    }
}

/* ---- what is asked ---- */

int ties_check(const struct sched_ties *t, struct sl_err *err)
{
    if (t->tag_count > SCHED_MAX_TAGS || t->tie_count > SCHED_MAX_TIES)
        return sl_fail(err, SL_INVALID, "request: at most %d tags and %d ties",
                       SCHED_MAX_TAGS, SCHED_MAX_TIES);
    for (uint32_t i = 0; i < t->tie_count; i++)
        if (t->tie[i].level == POOL_ANYWHERE || t->tie[i].level > POOL_DEVICE)
            return sl_fail(err, SL_INVALID,
                           "request: with or apart at a device, a node, a rack or a zone");
    return 0;
}

bool ties_equal(const struct sched_ties *a, const struct sched_ties *b)
{
    if (a->tag_count != b->tag_count || a->tie_count != b->tie_count ||
        memcmp(a->tag, b->tag, a->tag_count * sizeof a->tag[0]))
        return false;
    for (uint32_t i = 0; i < a->tie_count; i++) {
        const struct sched_tie *x = &a->tie[i], *y = &b->tie[i];
        if (x->tag != y->tag || x->level != y->level || x->apart != y->apart ||
            x->required != y->required)
            return false;
    }
    return true;
}

uint64_t ties_hash(const struct sched_ties *t)
{
    uint64_t h = 0;
    for (uint32_t i = 0; i < t->tag_count; i++)
        h = hash_mix(h, 1 + (uint64_t)t->tag[i]);
    for (uint32_t i = 0; i < t->tie_count; i++) {
        const struct sched_tie *x = &t->tie[i];
        h = hash_mix(h, (uint64_t)x->tag << 8 | (uint64_t)x->level << 2 |
                            (uint64_t)x->apart << 1 | x->required);
    }
    return h;
}

/* ---- the invariants ---- */

static bool share_spot(const struct sched *s, enum pool_level level,
                       const struct pool_place *a, const struct pool_place *b)
{
    if (level != POOL_DEVICE)
        return near_together(s->pool, a->node, b->node, level);
    for (uint32_t i = 0; i < a->device_count; i++)
        for (uint32_t k = 0; k < b->device_count; k++)
            if (a->node == b->node && a->device[i] == b->device[k])
                return true;
    return false;
}

/* Do these places of it lie beside each other by demand?  Then they count as one. */
static bool are_beside(const struct request *r, uint32_t i, uint32_t k)
{
    const struct sched_option *o = &r->form->option[r->option];
    uint32_t first = 0;
    for (uint32_t g = 0, n; g < o->group_count; g += n) {
        uint32_t count = o->group[g].count;
        n = bundle_size(o, g);
        if (i >= first && i < first + n * count && k >= first && k < first + n * count)
            return (i - first) % count == (k - first) % count;
        first += n * count;
    }
    return false;
}

static void check_apart(const struct sched *s, const struct request *a,
                        const struct request *b)
{
    for (uint32_t t = 0; t < a->form->ties.tie_count; t++) {
        const struct sched_tie *tie = &a->form->ties.tie[t];
        if (!tie->apart || !tie->required || !carries(&b->form->ties, tie->tag))
            continue;
        for (uint32_t i = 0; i < a->place_count; i++)
            for (uint32_t k = 0; k < b->place_count; k++)
                assert((a == b && (i == k || are_beside(a, i, k))) ||
                       !share_spot(s, tie->level, &a->place[i], &b->place[k]));
    }
}

static bool runs(const struct request *r)
{
    return (r->state == SCHED_RUNNING || r->state == SCHED_LEAVING) && r->form->tied;
}

/* Cells are what a recount gives; who runs is apart from what it must be. */
void tags_check(const struct sched *s)
{
    struct tags again = { 0 };
    for (uint32_t i = 0; i <= s->request_mask; i++)
        for (const struct request *r = s->request[i]; r; r = r->chain) {
            if (!r->form->tied || r->state == SCHED_PENDING)
                continue;
            if (reserve_cells(&again, cells_of(r->form, r->option)))
                abort();
            for (uint32_t k = 0; k < r->place_count; k++)
                count_place(s->pool, &again, &r->form->ties, &r->place[k], 1);
            for (uint32_t m = 0; m <= s->request_mask; m++)
                for (const struct request *o = s->request[m]; o; o = o->chain)
                    if (runs(r) && runs(o) && !r->restored && !o->restored)
                        check_apart(s, r, o);
        }
    assert(again.apart == s->tags.apart);
    uint32_t used = 0;
    for (uint32_t i = 0; s->tags.cell && i <= s->tags.mask; i++) {
        const struct tag_cell *c = &s->tags.cell[i];
        used += c->used;
        assert(c->used == (c->have || c->apart));
        const struct tag_cell *same =
            look(&again, c->tag, (enum pool_level)c->level, c->spot);
        assert(!c->used || (c->have == same->have && c->apart == same->apart));
    }
    assert(used == s->tags.count);
    for (uint32_t i = 0; again.cell && i <= again.mask; i++) {
        const struct tag_cell *c = &again.cell[i];
        const struct tag_cell *same =
            look(&s->tags, c->tag, (enum pool_level)c->level, c->spot);
        assert(!c->used || (c->have == same->have && c->apart == same->apart));
    }
    tags_finish(&again);
}
