/* The pool: nodes, what they have free, taking and giving, and trying. */
#include "base/array.h"
#include "pool_impl.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int pool_create(struct pool **out, struct sl_err *err)
{
    struct pool *p = calloc(1, sizeof *p);
    if (!p)
        return sl_fail(err, SL_INTERNAL, "pool: out of memory");
    classes_init(&p->classes);
    p->tenancy = POOL_ISOLATED;
    *out = p;
    return 0;
}

void pool_set_tenancy(struct pool *p, uint32_t ways)
{
    assert(!p->node_count);
    p->tenancy = ways;
}

int pool_set_profiles(struct pool *p, uint32_t model, const struct pool_profiles *t,
                      struct sl_err *err)
{
    if (model >= POOL_MAX_MODELS)
        return sl_fail(err, SL_INVALID, "a pool has at most %d models", POOL_MAX_MODELS);
    if (p->cut_models[model])
        return sl_fail(err, SL_CONFLICT,
                       "model %u has devices that are cut by its profiles", model);
    int rc = cut_check(t, err);
    if (!rc)
        p->profiles[model] = *t;
    return rc;
}

void pool_destroy(struct pool *p)
{
    if (!p)
        return;
    classes_finish(&p->classes);
    near_finish(&p->near);
    free(p->node);
    free(p->kind);
    free(p->try_step);
    free(p);
}

/* ---- the state of a node, as its class ---- */

static int compare_devices(const struct class_device *a, const struct class_device *b)
{
    if (a->model != b->model)
        return a->model < b->model ? -1 : 1;
    if (a->permille != b->permille)
        return a->permille < b->permille ? -1 : 1;
    if (a->mem_bytes != b->mem_bytes)
        return a->mem_bytes < b->mem_bytes ? -1 : 1;
    if (a->owner != b->owner)
        return a->owner < b->owner ? -1 : 1;
    if (a->flags != b->flags)
        return a->flags - b->flags;
    return a->more < b->more ? -1 : a->more > b->more;
}

void pool_state(const struct pool *p, uint32_t node, struct class_state *s)
{
    const struct pool_slot *n = &p->node[node];
    memset(s, 0, sizeof *s);
    s->host_mem_bytes = n->host_mem_free;
    s->cpu_milli = n->cpu_free;
    s->lower_host_mem_bytes = n->lower_host_mem_free;
    s->lower_cpu_milli = n->lower_cpu_free;
    s->kind = n->kind;
    s->device_count = n->is.device_count;
    for (uint32_t i = 0; i < s->device_count; i++) {
        struct class_device d = n->device[i].now;
        uint32_t at = i;
        s->idle_permille += d.permille;
        for (; at && compare_devices(&d, &s->device[at - 1]) < 0; at--)
            s->device[at] = s->device[at - 1];
        s->device[at] = d;
    }
}

static void enter_class(struct pool *p, uint32_t node)
{
    struct class_state s;
    if (!p->node[node].open)
        return;
    pool_state(p, node, &s);
    p->node[node].class = classes_join(&p->classes, &s, node);
}

static void leave_class(struct pool *p, uint32_t node)
{
    if (p->node[node].open)
        classes_leave(&p->classes, p->node[node].class, node);
}

/* ---- nodes ---- */

static bool labels_equal(const struct pool_labels *a, const struct pool_labels *b)
{
    return !memcmp(a, b, sizeof *a);
}

static int find_kind(struct pool *p, const struct pool_labels *labels, uint32_t *out)
{
    for (uint32_t i = 0; i < p->kind_count; i++)
        if (labels_equal(&p->kind[i], labels)) {
            *out = i;
            return 0;
        }
    if (array_reserve(&p->kind, &p->kind_room, p->kind_count + 1, sizeof *p->kind))
        return -SL_INTERNAL;
    p->kind[p->kind_count] = *labels;
    *out = p->kind_count++;
    return 0;
}

/* A device that nobody shares, or in pieces that are isolated, has no lower class. */
static int check_over(const struct pool_device *d, struct sl_err *err)
{
    if (!d->over_permille && !d->over_mem_bytes)
        return 0;
    if (d->sharing != POOL_TIME && d->sharing != POOL_SPATIAL)
        return sl_fail(err, SL_INVALID,
                       "only devices shared by time or in space are over-committed");
    if (d->over_mem_bytes > DEVICE_OVER_MEM_MAX)
        return sl_fail(err, SL_INVALID,
                       "a device lends less than 2^48 bytes above its own");
    return 0;
}

static int check_node(const struct pool *p, const struct pool_node *n, struct sl_err *err)
{
    if (n->device_count > POOL_MAX_DEVICES)
        return sl_fail(err, SL_INVALID, "a node has at most %d devices, not %u",
                       POOL_MAX_DEVICES, n->device_count);
    for (uint32_t i = 0; i < n->device_count; i++)
        if (n->device[i].model >= POOL_MAX_MODELS)
            return sl_fail(err, SL_INVALID, "a pool has at most %d models",
                           POOL_MAX_MODELS);
    for (uint32_t i = 0; i < n->device_count; i++)
        if (!(POOL_ALL_SHARING >> n->device[i].sharing & 1))
            return sl_fail(err, SL_INVALID, "a device is shared in no way %u",
                           n->device[i].sharing);
    for (uint32_t i = 0; i < n->device_count; i++)
        if (n->device[i].sharing == POOL_PROFILE && !p->profiles[n->device[i].model].count)
            return sl_fail(err, SL_INVALID, "model %u has no profiles", n->device[i].model);
    for (uint32_t i = 0; i < n->device_count; i++)
        if (check_over(&n->device[i], err))
            return -SL_INVALID;
    return 0;
}

int pool_add_node(struct pool *p, const struct pool_node *n, uint32_t *node,
                  struct sl_err *err)
{
    int rc = check_node(p, n, err);
    struct node_near near;
    uint32_t kind;
    if (!rc)
        rc = near_reserve(&p->near, n, &near, err);
    if (rc)
        return rc;
    if (array_reserve(&p->node, &p->node_room, p->node_count + 1, sizeof *p->node) ||
        classes_reserve(&p->classes, p->node_count + 1) || find_kind(p, &n->labels, &kind))
        return sl_fail(err, SL_INTERNAL, "pool: out of memory");
    struct pool_slot *slot = &p->node[p->node_count];
    memset(slot, 0, sizeof *slot);
    slot->is = *n;
    slot->cpu_free = n->cpu_milli;
    slot->lower_cpu_free = n->over_cpu_milli;
    slot->lower_host_mem_free = n->over_host_mem_bytes;
    slot->host_mem_free = n->host_mem_bytes;
    slot->kind = kind;
    slot->near = near;
    slot->open = true;
    for (uint32_t i = 0; i < n->device_count; i++) {
        p->cut_models[n->device[i].model] |= n->device[i].sharing == POOL_PROFILE;
        slot->device[i].now = device_empty(p, &n->device[i]);
    }
    for (uint32_t i = 1; i < n->device_count; i++) {
        p->mixed |= n->device[i].model != n->device[0].model;
        p->mixed_sharing |= n->device[i].sharing != n->device[0].sharing;
    }
    *node = p->node_count++;
    near_enter(&p->near, &near, *node, n);
    enter_class(p, *node);
    return 0;
}

/* Its free devices count for its rack and zone while it is open. */
static void count_whole(struct pool *p, const struct pool_slot *n, int32_t more)
{
    for (uint32_t i = 0; i < n->is.device_count; i++)
        if (!n->device[i].users)
            near_count(&p->near, &n->near, n->device[i].now.model, more);
}

void pool_set_open(struct pool *p, uint32_t node, bool open)
{
    if (p->node[node].open == open)
        return;
    leave_class(p, node);
    p->node[node].open = open;
    enter_class(p, node);
    count_whole(p, &p->node[node], open ? 1 : -1);
}

uint32_t pool_node_count(const struct pool *p)
{
    return p->node_count;
}

const struct pool_node *pool_node_at(const struct pool *p, uint32_t node)
{
    return &p->node[node].is;
}

void pool_free_at(const struct pool *p, uint32_t node, struct pool_free *out)
{
    const struct pool_slot *n = &p->node[node];
    *out =
        (struct pool_free){ .cpu_milli = n->cpu_free, .host_mem_bytes = n->host_mem_free };
    for (uint32_t i = 0; i < n->is.device_count; i++) {
        out->permille[i] = n->device[i].now.permille;
        out->mem_bytes[i] = n->device[i].now.mem_bytes;
    }
}

void pool_lower_free_at(const struct pool *p, uint32_t node, struct pool_free *out)
{
    const struct pool_slot *n = &p->node[node];
    *out = (struct pool_free){ .cpu_milli = n->lower_cpu_free,
                               .host_mem_bytes = n->lower_host_mem_free };
    for (uint32_t i = 0; i < n->is.device_count; i++) {
        if (n->is.device[i].sharing == POOL_PROFILE)
            continue;
        out->permille[i] = n->device[i].now.lower.permille;
        out->mem_bytes[i] = n->device[i].now.lower.mem_bytes;
    }
}

/* ---- fit ---- */

uint64_t ask_hash(const struct pool_ask *a)
{
    return hash_mix(ask_hash_unowned(a), a->owner);
}

uint64_t ask_hash_unowned(const struct pool_ask *a)
{
    uint64_t h = hash_mix(a->mem_bytes, (uint64_t)a->devices << 32 | a->permille);
    h = hash_mix(hash_mix(h, a->host_mem_bytes), a->cpu_milli);
    h = hash_mix(hash_mix(h, a->models), (uint64_t)a->sharing << 1 | a->lower);
    for (int i = 0; i < POOL_LABEL_WORDS; i++)
        h = hash_mix(hash_mix(h, a->need.bits[i]), a->avoid.bits[i]);
    return h;
}

bool ask_equal(const struct pool_ask *a, const struct pool_ask *b)
{
    return a->owner == b->owner && ask_equal_unowned(a, b);
}

bool ask_equal_unowned(const struct pool_ask *a, const struct pool_ask *b)
{
    return a->devices == b->devices && a->permille == b->permille &&
           a->mem_bytes == b->mem_bytes && a->cpu_milli == b->cpu_milli &&
           a->host_mem_bytes == b->host_mem_bytes && a->models == b->models &&
           a->sharing == b->sharing && a->lower == b->lower &&
           !memcmp(&a->need, &b->need, sizeof a->need) &&
           !memcmp(&a->avoid, &b->avoid, sizeof a->avoid);
}

bool pool_kind_suits(const struct pool *p, const struct pool_ask *a, uint32_t kind)
{
    const struct pool_labels *has = &p->kind[kind];
    for (int i = 0; i < POOL_LABEL_WORDS; i++)
        if ((a->need.bits[i] & ~has->bits[i]) || (a->avoid.bits[i] & has->bits[i]))
            return false;
    return true;
}

bool pool_ask_possible(const struct pool *p, const struct pool_ask *a, uint32_t node)
{
    const struct pool_slot *n = &p->node[node];
    uint32_t suits = 0;
    if ((a->lower ? n->is.over_cpu_milli : n->is.cpu_milli) < a->cpu_milli ||
        (a->lower ? n->is.over_host_mem_bytes : n->is.host_mem_bytes) < a->host_mem_bytes ||
        !pool_kind_suits(p, a, n->kind))
        return false;
    for (uint32_t i = 0; i < n->is.device_count; i++) {
        struct class_device empty = device_empty(p, &n->is.device[i]);
        suits += pool_device_suits(p, a, &empty);
    }
    return suits >= a->devices;
}

bool pool_ask_has_room(const struct pool *p, const struct pool_ask *a, uint32_t node)
{
    const struct pool_slot *n = &p->node[node];
    uint32_t suits = 0;
    if (slot_cpu_free(n, a) < a->cpu_milli ||
        slot_host_mem_free(n, a) < a->host_mem_bytes || !pool_kind_suits(p, a, n->kind))
        return false;
    for (uint32_t i = 0; i < n->is.device_count; i++)
        suits += pool_device_suits(p, a, &n->device[i].now);
    return suits >= a->devices;
}

bool pool_ask_fits(const struct pool *p, const struct pool_ask *a, uint32_t node)
{
    return p->node[node].open && pool_ask_has_room(p, a, node);
}

uint32_t pool_ask_copies(const struct pool *p, const struct pool_ask *a, uint32_t node)
{
    const struct pool_slot *n = &p->node[node];
    uint64_t copies = UINT16_MAX, of_devices = 0;
    if (!pool_ask_fits(p, a, node))
        return 0;
    copies = times_in(slot_cpu_free(n, a), a->cpu_milli, copies);
    copies = times_in(slot_host_mem_free(n, a), a->host_mem_bytes, copies);
    for (uint32_t i = 0; a->devices && i < n->is.device_count; i++)
        of_devices += device_holds(p, a, &n->device[i].now, UINT16_MAX);
    if (a->devices && of_devices / a->devices < copies)
        copies = of_devices / a->devices;
    return (uint32_t)copies;
}

bool pool_place_fits(const struct pool *p, const struct pool_ask *a,
                     const struct pool_place *at)
{
    if (at->node >= p->node_count || at->device_count != a->devices ||
        !pool_ask_has_room(p, a, at->node))
        return false;
    const struct pool_slot *n = &p->node[at->node];
    for (uint32_t i = 0; i < at->device_count; i++)
        if (at->device[i] >= n->is.device_count ||
            (i && at->device[i] <= at->device[i - 1]) ||
            !pool_device_suits(p, a, &n->device[at->device[i]].now) ||
            (n->is.device[at->device[i]].sharing == POOL_PROFILE && !a->lower &&
             !cut_suits(p, a, &n->device[at->device[i]].now, at->cut[i])))
            return false;
    return true;
}

void pool_place_cut(const struct pool *p, const struct pool_ask *a, struct pool_place *at)
{
    for (uint32_t i = 0; i < at->device_count; i++) {
        const struct class_device *d = &p->node[at->node].device[at->device[i]].now;
        at->cut[i] = (struct pool_cut){ 0 };
        if (class_sharing(d) == POOL_PROFILE && !a->lower)
            cut_find(p, a, d, &at->cut[i]);
    }
}

/* ---- taking and giving ---- */

static void check_host(const struct pool_slot *n)
{
    assert(n->cpu_free <= n->is.cpu_milli && n->host_mem_free <= n->is.host_mem_bytes);
    assert(n->lower_cpu_free <= n->is.over_cpu_milli &&
           n->lower_host_mem_free <= n->is.over_host_mem_bytes);
}

/* The node only, not its class. */
static void change_slot(struct pool *p, const struct pool_ask *a,
                        const struct pool_place *at, bool take)
{
    struct pool_slot *n = &p->node[at->node];
    *(a->lower ? &n->lower_cpu_free : &n->cpu_free) += take ? -a->cpu_milli : a->cpu_milli;
    *(a->lower ? &n->lower_host_mem_free : &n->host_mem_free) +=
        take ? -a->host_mem_bytes : a->host_mem_bytes;
    check_host(n);
    for (uint32_t i = 0; i < at->device_count; i++) {
        struct pool_slot_device *d = &n->device[at->device[i]];
        if (take)
            device_take(p, a, d, at->cut[i]);
        else
            device_give(p, a, d, &n->is.device[at->device[i]], at->cut[i]);
    }
}

static void change(struct pool *p, const struct pool_ask *a, const struct pool_place *at,
                   bool take)
{
    leave_class(p, at->node);
    change_slot(p, a, at, take);
    const struct pool_slot *n = &p->node[at->node];
    for (uint32_t i = 0; n->open && !a->lower && i < at->device_count; i++) {
        const struct pool_slot_device *d = &n->device[at->device[i]];
        if (d->users == take) /* the first came, the last went */
            near_count(&p->near, &n->near, d->now.model, take ? -1 : 1);
    }
    enter_class(p, at->node);
}

void pool_lift(struct pool *p, const struct pool_ask *a, const struct pool_place *at)
{
    change_slot(p, a, at, false);
}

void pool_lay(struct pool *p, const struct pool_ask *a, const struct pool_place *at)
{
    change_slot(p, a, at, true);
}

static void remember(struct pool *p, const struct pool_ask *a, const struct pool_place *at,
                     bool took)
{
    if (!p->trying)
        return;
    assert(p->try_count < p->try_room);
    p->try_step[p->try_count++] = (struct pool_step){ .ask = *a, .at = *at, .took = took };
}

void pool_take(struct pool *p, const struct pool_ask *a, const struct pool_place *at)
{
    assert(pool_place_fits(p, a, at));
    remember(p, a, at, true);
    change(p, a, at, true);
}

void pool_give(struct pool *p, const struct pool_ask *a, const struct pool_place *at)
{
    remember(p, a, at, false);
    change(p, a, at, false);
}

/* ---- trying ---- */

int pool_try(struct pool *p, uint32_t steps)
{
    assert(!p->trying);
    if (array_reserve(&p->try_step, &p->try_room, steps, sizeof *p->try_step))
        return -SL_INTERNAL;
    p->trying = true;
    p->try_count = 0;
    return 0;
}

uint32_t pool_mark(const struct pool *p)
{
    assert(p->trying);
    return p->try_count;
}

void pool_undo_to(struct pool *p, uint32_t mark)
{
    assert(p->trying && mark <= p->try_count);
    while (p->try_count > mark) {
        const struct pool_step *s = &p->try_step[--p->try_count];
        change(p, &s->ask, &s->at, !s->took);
    }
}

void pool_undo(struct pool *p)
{
    pool_undo_to(p, 0);
    p->trying = false;
}

void pool_keep(struct pool *p)
{
    assert(p->trying);
    p->trying = false;
    p->try_count = 0;
}

/* ---- the invariants ---- */

/* The state is what its cuts make, whatever came and went. */
static void check_cuts(const struct pool *p, const struct pool_slot_device *d,
                       const struct pool_device *is)
{
    const struct pool_profiles *t = &p->profiles[is->model];
    uint32_t users = 0, compute = 0, slots = 0, full = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        users += d->cuts[i];
        compute += d->cuts[i] * t->profile[i].compute_slots;
        slots += d->cuts[i] * t->profile[i].mem_slots;
        full |= (uint32_t)(d->cuts[i] == t->profile[i].most) << i;
        assert(d->cuts[i] <= t->profile[i].most);
    }
    assert(users == d->users && compute <= t->compute_slots && full == d->now.cut.full);
    assert(d->now.permille == (t->compute_slots - compute) * 1000 / t->compute_slots);
    assert(slots == (uint32_t)__builtin_popcount(d->now.cut.slots));
    assert(d->now.mem_bytes == (t->mem_slots - slots) * (is->mem_bytes / t->mem_slots));
}

static void check_slot(const struct pool *p, uint32_t node)
{
    const struct pool_slot *n = &p->node[node];
    check_host(n);
    for (uint32_t i = 0; i < n->is.device_count; i++) {
        const struct pool_slot_device *d = &n->device[i];
        assert(d->now.permille <= 1000 && d->now.mem_bytes <= n->is.device[i].mem_bytes);
        assert(!d->users == !(d->now.flags & CLASS_USED));
        struct class_device empty = device_empty(p, &n->is.device[i]);
        assert(d->users || d->lower_users || !memcmp(&d->now, &empty, sizeof empty));
        if (n->is.device[i].sharing != POOL_PROFILE)
            assert(d->now.lower.permille <= empty.lower.permille &&
                   d->now.lower.mem_bytes <= empty.lower.mem_bytes &&
                   (d->lower_users || d->now.more == empty.more));
        /* the lower class leaves no trace in the first */
        empty.more = d->now.more;
        assert(d->users || !memcmp(&d->now, &empty, sizeof empty));
        assert(class_sharing(&d->now) != POOL_EXCLUSIVE || d->users <= 1);
        if (class_sharing(&d->now) == POOL_PROFILE)
            check_cuts(p, d, &n->is.device[i]);
    }
    if (n->open) {
        struct class_state s;
        pool_state(p, node, &s);
        assert(!memcmp(&s, &p->classes.class[n->class].state, sizeof s));
    }
}

static void check_vertex(const struct pool *p, const struct vertex *v)
{
    uint32_t free[POOL_MAX_MODELS] = { 0 }, all[POOL_MAX_MODELS] = { 0 };
    for (uint32_t i = 0; i < v->node_count; i++) {
        const struct pool_slot *n = &p->node[v->node[i]];
        assert((v->level == POOL_RACK ? n->is.rack : n->is.zone) == v->number);
        for (uint32_t k = 0; k < n->is.device_count; k++) {
            all[n->is.device[k].model]++;
            free[n->is.device[k].model] += n->open && !n->device[k].users;
        }
    }
    assert(!memcmp(free, v->whole_free, sizeof free));
    assert(!memcmp(all, v->whole_all, sizeof all));
}

void pool_check(const struct pool *p)
{
    uint32_t open = 0, members = 0, live = 0;
    for (uint32_t i = 0; i < p->near.count; i++)
        check_vertex(p, &p->near.vertex[i]);
    for (uint32_t i = 0; i < p->node_count; i++) {
        check_slot(p, i);
        open += p->node[i].open;
    }
    for (uint32_t i = 0; i < p->classes.room; i++) {
        members += p->classes.class[i].count;
        live += p->classes.class[i].count != 0;
    }
    assert(open == members && live == p->classes.live);
}
