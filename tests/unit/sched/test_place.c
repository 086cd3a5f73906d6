/* Rows for placement: hand-made choices, and the order over classes against a full scan. */
#include "../rows.h"

#include "pools.h"

#include "sched/place.h"
#include "worth.h"

/* ---- choices that can be said in a sentence ---- */

struct use {
    uint32_t node, device, permille;
    uint64_t gib;
    uint32_t cpu_milli;
};

static const struct place_shape quarters_and_wholes[] = {
    { { .devices = 1, .permille = 250, .mem_bytes = 4 * GIB, .cpu_milli = 1000 }, 50 },
    { { .devices = 1, .permille = 1000, .cpu_milli = 2000 }, 50 },
};
static const struct place_shape some_want_model_1[] = {
    { { .devices = 1, .permille = 500 }, 50 },
    { { .devices = 1, .permille = 500, .models = 2 }, 50 },
};

static const struct place_shape wholes_and_model_1[] = {
    { { .devices = 1, .permille = 1000 }, 50 },
    { { .devices = 1, .permille = 500, .models = 2 }, 50 },
};

static const struct {
    const char *label;
    struct pool_node node[3];
    struct use use[3];
    const struct place_shape *target;
    uint32_t target_count;
    enum place_rule rule;
    uint32_t scarcity_permille; /* 0: the default */
    struct pool_ask ask;
    uint32_t want_node, want_device; /* UINT32_MAX: nowhere */
} choices[] = {
    { "best fit goes to the fuller device", .node = { { 0 } }, .use = { { 0, 1, 500, 1 } },
      .rule = PLACE_BEST_FIT, .ask = { .devices = 1, .permille = 250 }, .want_device = 1 },
    { "spread goes to the emptier device", .use = { { 0, 0, 500, 1 } },
      .rule = PLACE_SPREAD, .ask = { .devices = 1, .permille = 250 }, .want_device = 1 },
    { "a quarter goes beside a quarter, not to a whole device", .use = { { 0, 1, 250, 4 } },
      .target = quarters_and_wholes, .target_count = 2,
      .ask = { .devices = 1, .permille = 250, .mem_bytes = 4 * GIB }, .want_device = 1 },
    { "a small slice goes where compute is of no use to others",
      .use = { { 0, 0, 900, 1 }, { 0, 1, 250, 4 } }, .target = quarters_and_wholes,
      .target_count = 2, .ask = { .devices = 1, .permille = 100, .mem_bytes = GIB },
      .want_device = 0 },
    { "compute without memory beside it is of no use either", .use = { { 0, 0, 250, 15 } },
      .target = quarters_and_wholes, .target_count = 2,
      .ask = { .devices = 1, .permille = 250, .mem_bytes = GIB }, .want_device = 0 },
    { "who may go anywhere leaves the wanted model alone",
      .node = { { 0 },
                { .device_count = 1,
                  .device = { { .model = 1, .mem_bytes = 16 * GIB } },
                  .cpu_milli = 8000 } },
      .target = some_want_model_1, .target_count = 2,
      .ask = { .devices = 1, .permille = 500 }, .want_node = 0 },
    { "who wants it gets it",
      .node = { { 0 },
                { .device_count = 1,
                  .device = { { .model = 1, .mem_bytes = 16 * GIB } },
                  .cpu_milli = 8000 } },
      .target = some_want_model_1, .target_count = 2,
      .ask = { .devices = 1, .permille = 500, .models = 2 }, .want_node = 1 },
    { "a half of a wanted model is taken while its price is low",
      .node = { { 0 },
                { .device_count = 1,
                  .device = { { .model = 1, .mem_bytes = 16 * GIB } },
                  .cpu_milli = 8000 } },
      .use = { { 1, 0, 500, 1 } }, .target = wholes_and_model_1, .target_count = 2,
      .scarcity_permille = 1, .ask = { .devices = 1, .permille = 500 }, .want_node = 1 },
    { "at a high price a whole device of another is broken instead",
      .node = { { 0 },
                { .device_count = 1,
                  .device = { { .model = 1, .mem_bytes = 16 * GIB } },
                  .cpu_milli = 8000 } },
      .use = { { 1, 0, 500, 1 } }, .target = wholes_and_model_1, .target_count = 2,
      .scarcity_permille = 3000, .ask = { .devices = 1, .permille = 500 }, .want_node = 0 },
    { "host work goes where no device is idle", .node = { { 0 }, { .cpu_milli = 8000 } },
      .target = quarters_and_wholes, .target_count = 2, .ask = { .cpu_milli = 7000 },
      .want_node = 1 },
    { "nothing fits", .use = { { 0, 0, 900, 1 }, { 0, 1, 900, 1 } },
      .ask = { .devices = 1, .permille = 101 }, .want_node = UINT32_MAX },
};

static struct pool *pool_in_use(const struct pool_node *nodes, const struct use *use)
{
    struct pool_node usual = node_of(2, 0, 16, 8);
    struct pool *p = pool_of(&usual, 1);
    uint32_t node;
    for (uint32_t i = 1; i < 3; i++)
        if (nodes[i].cpu_milli && pool_add_node(p, &nodes[i], &node, NULL))
            abort();
    for (uint32_t i = 0; i < 3; i++)
        if (use[i].permille)
            pool_take(p,
                      &(struct pool_ask){ .devices = 1,
                                          .permille = use[i].permille,
                                          .mem_bytes = use[i].gib * GIB },
                      &(struct pool_place){ .node = use[i].node,
                                            .device_count = 1,
                                            .device = { (uint8_t)use[i].device } });
    return p;
}

static void choices_are_as_said(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(choices); i++) {
        const char *label = choices[i].label;
        struct pool *p = pool_in_use(choices[i].node, choices[i].use);
        struct place_policy policy;
        struct placer *pl;
        struct pool_place at = { 0 };
        place_policy_init(&policy);
        policy.rule = choices[i].rule;
        if (choices[i].scarcity_permille)
            policy.scarcity_permille = choices[i].scarcity_permille;
        ROW(label, !placer_create(p, &policy, &pl, NULL));
        ROW(label,
            !placer_set_target(pl, choices[i].target, choices[i].target_count, NULL));
        int rc = placer_find(pl, &choices[i].ask, NULL, &at);
        if (choices[i].want_node == UINT32_MAX) {
            ROW(label, rc == -SL_NO_CAPACITY);
        } else {
            ROW(label, rc == 0 && at.node == choices[i].want_node);
            ROW(label, !at.device_count || at.device[0] == choices[i].want_device);
        }
        placer_destroy(pl);
        pool_destroy(p);
    }
}

static void a_target_needs_a_device(void **state)
{
    struct rng r = { 5 };
    struct pool *p = mixed_pool(&r, 3, 0);
    struct place_policy policy;
    struct placer *pl;
    struct sl_err err;
    struct place_shape host_only = { { .cpu_milli = 1 }, 1 };
    place_policy_init(&policy);
    assert_int_equal(placer_create(p, &policy, &pl, NULL), 0);
    assert_int_equal(placer_set_target(pl, &host_only, 1, &err), -SL_INVALID);
    assert_string_equal(err.msg, "placement target: no shape asks for a device");
    placer_destroy(pl);
    pool_destroy(p);
}

/* ---- the order over classes is the scan ---- */

#define HELD 300

struct held {
    struct pool_ask ask;
    struct pool_place at;
};

static bool not_every_third(void *ctx, uint32_t node)
{
    return (node + *(uint32_t *)ctx) % 3 != 0;
}

static void random_target(struct placer *pl, struct rng *r)
{
    struct place_shape shape[90];
    uint32_t count = 1 + rng_below(r, ARRAY_LEN(shape));
    for (uint32_t i = 0; i < count; i++) {
        shape[i].ask = random_ask(r);
        shape[i].popularity = rng_below(r, 1000);
    }
    shape[0] = (struct place_shape){ { .devices = 1, .permille = 500 }, 100 };
    if (placer_set_target(pl, shape, count, NULL))
        abort();
}

static void same_as_scan(struct placer *pl, struct pool *p, const struct pool_ask *a,
                         const struct place_filter *filter, struct held *held,
                         uint32_t *count)
{
    struct pool_place found = { 0 }, scanned = { 0 };
    int rc = placer_find(pl, a, filter, &found);
    ROW("find and scan agree whether it fits", rc == placer_scan(pl, a, filter, &scanned));
    ROW("find and scan agree where", !memcmp(&found, &scanned, sizeof found));
    if (rc || *count == HELD)
        return;
    ROW("what was found fits", pool_place_fits(p, a, &found));
    pool_take(p, a, &found);
    held[(*count)++] = (struct held){ *a, found };
}

static void one_pool(struct rng *r, enum place_rule rule, int steps)
{
    struct pool *p =
        mixed_pool(r, 2 + rng_below(r, 60), rng_below(r, POOL_ALL_SHARING + 1));
    struct place_policy policy;
    struct placer *pl;
    struct held held[HELD];
    struct pool_ask shapes[24];
    uint32_t count = 0, skip = 0;
    uint32_t some[30];
    struct place_filter filter = { not_every_third, &skip }, few = { .node = some };
    place_policy_init(&policy);
    policy.rule = rule;
    if (placer_create(p, &policy, &pl, NULL))
        abort();
    random_target(pl, r);
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        shapes[i] = random_ask(r);
    for (int i = 0; i < steps; i++) {
        uint32_t dice = rng_below(r, 100);
        skip = rng_below(r, 3);
        few.node_ok = skip ? NULL : not_every_third;
        few.ctx = &skip;
        few.node_count = 0;
        for (uint32_t k = rng_below(r, 4);
             k < pool_node_count(p) && few.node_count < ARRAY_LEN(some);
             k += 1 + rng_below(r, 4))
            some[few.node_count++] = k;
        if (dice < 40 && count) {
            uint32_t k = rng_below(r, count);
            pool_give(p, &held[k].ask, &held[k].at);
            held[k] = held[--count];
        } else if (dice < 42) {
            pool_set_open(p, rng_below(r, pool_node_count(p)), rng_below(r, 2));
        } else if (dice < 43) {
            random_target(pl, r);
        } else if (dice < 44) {
            struct pool_node n = node_of(4, 1, 32, 16);
            uint32_t node;
            n.labels.bits[0] = rng_below(r, 1000);
            if (pool_add_node(p, &n, &node, NULL))
                abort();
        } else if (dice < 46 && count < HELD - 20) {
            /* a try that is undone, with finds in between */
            uint32_t before = count;
            if (pool_try(p, 20))
                abort();
            for (int k = 0; k < 20; k++)
                same_as_scan(pl, p, &shapes[rng_below(r, ARRAY_LEN(shapes))], NULL, held,
                             &count);
            pool_undo(p);
            count = before;
        } else {
            same_as_scan(pl, p, &shapes[rng_below(r, ARRAY_LEN(shapes))],
                         dice < 55   ? &filter
                         : dice < 65 ? &few
                                     : NULL,
                         held, &count);
        }
    }
    pool_check(p);
    placer_destroy(pl);
    pool_destroy(p);
}

static void find_is_scan(void **state)
{
    const char *more = getenv("SLUICE_SEQUENCES");
    int rounds = more ? atoi(more) : 30;
    for (int i = 0; i < rounds; i++) {
        struct rng r = { 1000 + (uint64_t)i };
        one_pool(&r,
                 i % 5 == 3   ? PLACE_BEST_FIT
                 : i % 5 == 4 ? PLACE_SPREAD
                              : PLACE_FILL,
                 400);
    }
}

/* More shapes than orders are kept: the one unused longest makes room. */
static void many_shapes(void **state)
{
    struct rng r = { 77 };
    struct pool *p = mixed_pool(&r, 8, 0);
    struct place_policy policy;
    struct placer *pl;
    struct held held[HELD];
    uint32_t count = 0;
    place_policy_init(&policy);
    assert_int_equal(placer_create(p, &policy, &pl, NULL), 0);
    random_target(pl, &r);
    for (int i = 0; i < 1500; i++) {
        struct pool_ask a = { .devices = 1,
                              .permille = 10,
                              .mem_bytes = (uint64_t)(i % 700) };
        same_as_scan(pl, p, &a, NULL, held, &count);
    }
    pool_check(p);
    placer_destroy(pl);
    pool_destroy(p);
}

/* Whoever may use few of many classes gets an order of its own in the end. */
static void choosy_asks(void **state)
{
    struct rng r = { 5 };
    struct pool *p = pool_of(NULL, 0);
    struct place_policy policy;
    struct placer *pl;
    struct held held[HELD];
    uint32_t count = 0, node;
    for (uint32_t i = 0; i < 2500; i++) {
        struct pool_node n = node_of(2, i % 2, 16, 8);
        n.cpu_milli += i; /* a class each */
        n.labels.bits[0] = i % 300 == 7;
        assert_int_equal(pool_add_node(p, &n, &node, NULL), 0);
    }
    place_policy_init(&policy);
    assert_int_equal(placer_create(p, &policy, &pl, NULL), 0);
    random_target(pl, &r);
    for (int i = 0; i < 60; i++) {
        struct pool_ask a = { .devices = 1, .permille = 300, .mem_bytes = GIB };
        a.need.bits[0] = i % 3 != 0;
        a.models = i % 3 == 1 ? 2 : 0;
        same_as_scan(pl, p, &a, NULL, held, &count);
    }
    pool_check(p);
    placer_destroy(pl);
    pool_destroy(p);
}

/* What was asked before does not matter, whatever states it made the placer remember. */
static void history_is_forgotten(void **state)
{
    struct rng r = { 9 };
    struct pool *p = pool_of(NULL, 0);
    struct place_policy policy;
    struct placer *old, *fresh;
    uint32_t node;
    for (uint32_t i = 0; i < 64; i++) {
        struct pool_node n = node_of(4, 0, 16, 8);
        n.cpu_milli = 8000 ^ i * 64; /* less of one, more of the other */
        n.host_mem_bytes = (uint64_t)i * 64 << 32;
        assert_int_equal(pool_add_node(p, &n, &node, NULL), 0);
    }
    place_policy_init(&policy);
    assert_int_equal(placer_create(p, &policy, &old, NULL), 0);
    random_target(old, &r);
    for (int i = 0; i < 200; i++) {
        struct pool_ask a = random_ask(&r);
        struct pool_place by_old = { 0 }, by_fresh = { 0 };
        struct rng again = { 9 };
        assert_int_equal(placer_create(p, &policy, &fresh, NULL), 0);
        random_target(fresh, &again);
        int rc = placer_find(old, &a, NULL, &by_old);
        assert_int_equal(placer_find(fresh, &a, NULL, &by_fresh), rc);
        assert_memory_equal(&by_old, &by_fresh, sizeof by_old);
        if (!rc)
            pool_take(p, &a, &by_old);
        placer_destroy(fresh);
    }
    placer_destroy(old);
    pool_destroy(p);
}

/* ---- the inner loops ---- */

static void random_state(struct rng *r, struct class_state *s)
{
    memset(s, 0, sizeof *s);
    s->cpu_milli = rng_below(r, 100000);
    s->host_mem_bytes = rng_below(r, 500) * GIB;
    s->device_count = rng_below(r, POOL_MAX_DEVICES + 1);
    for (uint32_t i = 0; i < s->device_count; i++) {
        s->device[i] = (struct class_device){ .mem_bytes = rng_below(r, 80) * GIB,
                                              .permille = (uint16_t)rng_below(r, 1001),
                                              .model = (uint8_t)rng_below(r, 3) };
        s->idle_permille += s->device[i].permille;
    }
}

/* F by its definition, a shape at a time. */
static int64_t plain_frag(const struct target *t, const struct pool *p,
                          const struct class_state *s)
{
    int64_t f = 0;
    for (int i = 0; i < TARGET_LANES; i++) {
        const struct pool_ask *a = &t->shape[i];
        uint32_t fit = 0, unfit = 0;
        for (uint32_t k = 0; k < s->device_count; k++) {
            const struct class_device *d = &s->device[k];
            bool ok = d->permille >= a->permille &&
                      (!a->models || a->models >> d->model & 1) &&
                      lane_down(d->mem_bytes, LANE_MEM_UNIT) >=
                          lane_up(a->mem_bytes, LANE_MEM_UNIT);
            fit += ok;
            unfit += ok ? 0 : d->permille;
        }
        bool can = fit >= a->devices && pool_kind_suits(p, a, s->kind) &&
                   lane_down(s->cpu_milli, LANE_CPU_UNIT) >=
                       lane_up(a->cpu_milli, LANE_CPU_UNIT) &&
                   lane_down(s->host_mem_bytes, LANE_HOST_UNIT) >=
                       lane_up(a->host_mem_bytes, LANE_HOST_UNIT);
        f += (int64_t)t->frag.weight[i] * (can ? unfit : s->idle_permille);
    }
    return f;
}

/* One sequence filling a node, by its definition. */
static int64_t plain_waste(const struct target *t, const struct pool *p,
                           struct class_state s, int lane)
{
    int64_t left = s.idle_permille;
    for (int d = 0; d < WASTE_DRAWS; d++) {
        const struct pool_ask *a = &t->draw[d][lane];
        uint32_t fit = 0, open = a->devices;
        int least = LANE_MAX;
        bool ok[POOL_MAX_DEVICES];
        for (uint32_t k = 0; k < s.device_count; k++) {
            const struct class_device *v = &s.device[k];
            ok[k] = v->permille >= a->permille && v->mem_bytes >= a->mem_bytes &&
                    (!a->models || a->models >> v->model & 1);
            fit += ok[k];
            if (ok[k] && v->permille < least)
                least = v->permille;
        }
        if (fit < a->devices || s.cpu_milli < a->cpu_milli ||
            !pool_kind_suits(p, a, s.kind) || s.host_mem_bytes < a->host_mem_bytes)
            continue;
        s.cpu_milli -= a->cpu_milli;
        s.host_mem_bytes -= a->host_mem_bytes;
        for (uint32_t k = 0; k < s.device_count && open; k++)
            if (ok[k] && (a->devices > 1 || s.device[k].permille == least)) {
                s.device[k].permille -= (uint16_t)a->permille;
                s.device[k].mem_bytes -= a->mem_bytes;
                left -= a->permille;
                open--;
            }
    }
    return left;
}

static void inner_loops_are_their_definition(void **state)
{
    struct rng r = { 42 };
    struct pool *p = mixed_pool(&r, 30, 0);
    struct place_shape shape[200];
    const struct worth_table *table[] = { &worth_any, worth_table() };
    for (int round = 0; round < 20; round++) {
        struct target *t;
        for (size_t i = 0; i < ARRAY_LEN(shape); i++)
            shape[i] = (struct place_shape){ random_ask(&r), 1 + rng_below(&r, 100) };
        for (size_t i = 0; i < ARRAY_LEN(shape); i++) {
            /* amounts in whole lanes, so that the plain way is exact */
            shape[i].ask.host_mem_bytes &= ~(LANE_HOST_UNIT - 1);
            shape[i].ask.cpu_milli -= shape[i].ask.cpu_milli % LANE_CPU_UNIT;
        }
        assert_int_equal(target_create(p, shape, ARRAY_LEN(shape), &t, NULL), 0);
        for (int i = 0; i < 300; i++) {
            struct class_state s;
            struct worth_frag w;
            int64_t waste = 0;
            random_state(&r, &s);
            s.cpu_milli -= s.cpu_milli % LANE_CPU_UNIT;
            s.kind = rng_below(&r, t->kind_count);
            for (int lane = 0; lane < WASTE_LANES; lane++)
                waste += plain_waste(t, p, s, lane);
            for (size_t k = 0; k < ARRAY_LEN(table); k++) {
                table[k]->frag(t, &s, &w);
                ROW("F is the sum over the shapes", w.frag == plain_frag(t, p, &s));
                ROW("waste is what the sequences leave", table[k]->waste(t, &s) == waste);
                if (!s.device_count)
                    continue;
                struct class_state after = s;
                uint32_t d = rng_below(&r, s.device_count);
                after.device[d].permille /= 2;
                after.device[d].mem_bytes /= 2;
                after.idle_permille -= s.device[d].permille - after.device[d].permille;
                after.cpu_milli /= 2;
                ROW("F after one device's change is F of the new state",
                    table[k]->frag_after(t, &s, &w, d, &after.device[d], after.cpu_milli,
                                         after.host_mem_bytes) == plain_frag(t, p, &after));
            }
        }
        target_destroy(t);
    }
    pool_destroy(p);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(choices_are_as_said),
    cmocka_unit_test(a_target_needs_a_device),
    cmocka_unit_test(find_is_scan),
    cmocka_unit_test(many_shapes),
    cmocka_unit_test(choosy_asks),
    cmocka_unit_test(history_is_forgotten),
    cmocka_unit_test(inner_loops_are_their_definition),
};
ROWS_MAIN(tests)
