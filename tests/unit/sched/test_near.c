/*
 * Gangs of whole devices within a node, rack or zone, against all ways of placing them:
 * one is found if and only if there is one.
 */
#include "../rows.h"

#include "pools.h"
#include "sched/sched.h"

#define NODES 6

struct small {
    struct rng rng;
    struct sched *s;
    uint32_t free[NODES]; /* whole devices */
    uint32_t nodes, requests;
};

static int apply(struct small *t, struct sched_event *e)
{
    const struct sched_decision *d;
    uint32_t count;
    int rc = sched_apply(t->s, e, &d, &count, NULL);
    sched_check(t->s);
    return rc;
}

/* Each one device, or part of one, wherever the scheduler likes. */
static void fill(struct small *t)
{
    struct sched_option o = { .group_count = 1 };
    struct sched_event e = { .kind = SCHED_SUBMIT };
    for (uint32_t i = rng_below(&t->rng, 10); i--;) {
        uint32_t permille = rng_below(&t->rng, 2) ? 1000 : 300;
        o.group[0] = (struct sched_group){ { .devices = 1, .permille = permille }, 1 };
        e.submit =
            (struct sched_request){ .id = ++t->requests, .option_count = 1, .option = &o };
        apply(t, &e);
    }
}

static void begin(struct small *t, uint64_t seed)
{
    struct sched_policy policy;
    *t = (struct small){ .rng = { seed } };
    sched_policy_init(&policy);
    if (sched_create(&policy, &t->s, NULL))
        abort();
    t->nodes = 1 + rng_below(&t->rng, NODES);
    for (uint32_t i = 0; i < t->nodes; i++) {
        struct sched_event e = { .kind = SCHED_ADD_NODE };
        e.node = node_of(rng_below(&t->rng, 5), 0, 16, 64);
        e.node.rack = rng_below(&t->rng, 4);
        e.node.zone = e.node.rack % 3; /* 3: a rack without a zone */
        apply(t, &e);
    }
    fill(t);
    for (uint32_t i = 0; i < t->nodes; i++) {
        struct pool_free f;
        pool_free_at(sched_pool(t->s), i, &f);
        for (uint32_t k = 0; k < pool_node_at(sched_pool(t->s), i)->device_count; k++)
            t->free[i] += f.permille[k] == 1000;
    }
}

static bool together(const struct pool_node *a, const struct pool_node *b,
                     enum pool_level level)
{
    if (a == b)
        return true;
    if (level == POOL_NODE)
        return false;
    if (a->rack && a->rack == b->rack)
        return true;
    return level == POOL_ZONE && a->zone && a->zone == b->zone;
}

/* All ways: the asks from the i-th on, on what the nodes near `first` have free. */
static bool some_way(struct small *t, const uint32_t *ask, uint32_t asks, uint32_t first,
                     enum pool_level level)
{
    const struct pool *p = sched_pool(t->s);
    if (!asks)
        return true;
    for (uint32_t n = 0; n < t->nodes; n++) {
        if (t->free[n] < ask[0] ||
            !together(pool_node_at(p, first), pool_node_at(p, n), level))
            continue;
        t->free[n] -= ask[0];
        bool found = some_way(t, ask + 1, asks - 1, first, level);
        t->free[n] += ask[0];
        if (found)
            return true;
    }
    return false;
}

static void one_gang(struct small *t)
{
    struct sched_option o = { .group_count = 1 + rng_below(&t->rng, 3),
                              .within = POOL_NODE + rng_below(&t->rng, 3),
                              .within_required = true };
    uint32_t ask[6], asks = 0;
    bool want = false;
    for (uint32_t g = 0; g < o.group_count; g++) {
        uint32_t devices = 1 + rng_below(&t->rng, 3);
        o.group[g] = (struct sched_group){ { .devices = devices, .permille = 1000 },
                                           1 + rng_below(&t->rng, 2) };
        for (uint32_t i = 0; i < o.group[g].count; i++)
            ask[asks++] = devices;
    }
    for (uint32_t n = 0; n < t->nodes; n++)
        want |= some_way(t, ask, asks, n, o.within);
    struct sched_event e = { .kind = SCHED_SUBMIT };
    e.submit =
        (struct sched_request){ .id = ++t->requests, .option_count = 1, .option = &o };
    apply(t, &e);
    struct sched_view v;
    ROW("it is known", !sched_find(t->s, t->requests, &v));
    ROW("a place is found if there is one", (v.state == SCHED_RUNNING) == want);
    ROW("small searches come to an end", !v.unproven);
    ROW("what has no place may be impossible, what has one is not",
        !want || v.verdict == SCHED_NOT_WAITING);
}

/* The least number of nodes that give `count` devices, `least` or more each; 0: none. */
static uint32_t fewest_nodes(const struct small *t, uint32_t count, uint32_t least)
{
    uint32_t best = 0;
    for (uint32_t set = 1; set < 1u << t->nodes; set++) {
        uint32_t nodes = (uint32_t)__builtin_popcount(set), have = 0;
        bool ok = nodes * least <= count;
        for (uint32_t n = 0; n < t->nodes; n++)
            if (set >> n & 1) {
                have += t->free[n];
                ok &= t->free[n] >= least;
            }
        if (ok && have >= count && (!best || nodes < best))
            best = nodes;
    }
    return best;
}

static void split_over_the_fewest(void **state)
{
    const char *more = getenv("SLUICE_SEQUENCES");
    int rounds = more ? atoi(more) : 2000, granted = 0;
    for (int i = 0; i < rounds; i++) {
        struct small t;
        struct sched_view v;
        struct sched_event e = { .kind = SCHED_SUBMIT };
        struct sched_option o = { .group_count = 1 };
        begin(&t, 100 + (uint64_t)i);
        uint32_t count = 1 + rng_below(&t.rng, 9), least = 1 + rng_below(&t.rng, 3);
        uint32_t on[NODES] = { 0 }, nodes = 0;
        o.group[0] =
            (struct sched_group){ { .devices = 1, .permille = 1000 }, count, false, least };
        e.submit =
            (struct sched_request){ .id = ++t.requests, .option_count = 1, .option = &o };
        apply(&t, &e);
        ROW("it is known", !sched_find(t.s, t.requests, &v));
        for (uint32_t k = 0; k < v.place_count; k++)
            nodes += !on[v.place[k].node]++;
        ROW("as few nodes as can be", nodes == fewest_nodes(&t, count, least));
        for (uint32_t n = 0; n < t.nodes; n++)
            ROW("none gives less than the least", !on[n] || on[n] >= least);
        granted += nodes != 0;
        sched_destroy(t.s);
    }
    print_message("%d splits, %d granted\n", rounds, granted);
}

static void found_if_there_is_one(void **state)
{
    const char *more = getenv("SLUICE_SEQUENCES");
    int rounds = more ? atoi(more) : 2000, granted = 0;
    for (int i = 0; i < rounds; i++) {
        struct small t;
        struct sched_view v;
        begin(&t, 100 + (uint64_t)i);
        one_gang(&t);
        granted += !sched_find(t.s, t.requests, &v) && v.state == SCHED_RUNNING;
        sched_destroy(t.s);
    }
    print_message("%d gangs, %d granted\n", rounds, granted);
}

static void a_rack_lies_in_one_zone(void **state)
{
    struct pool *p = pool_of(NULL, 0);
    struct pool_node n = node_of(1, 0, 16, 8);
    struct sl_err err;
    uint32_t node;
    n.rack = 7;
    n.zone = 1;
    assert_int_equal(pool_add_node(p, &n, &node, &err), 0);
    n.zone = 2;
    assert_int_equal(pool_add_node(p, &n, &node, &err), -SL_INVALID);
    assert_string_equal(err.msg, "rack 7 is in zone 1, not 2");
    n.zone = 0;
    assert_int_equal(pool_add_node(p, &n, &node, &err), -SL_INVALID);
    pool_check(p);
    pool_destroy(p);
}

/* A budget that is spent is said, not taken for an answer. */
static void a_search_may_give_up(void **state)
{
    struct small t;
    struct sched_option o = { .group_count = 3,
                              .within = POOL_RACK,
                              .within_required = true };
    static const uint32_t devices[] = { 4, 3, 2 }, counts[] = { 10, 10, 15 };
    struct sched_event e = { .kind = SCHED_ADD_NODE };
    struct sched_policy policy;
    struct sched_view v;
    t = (struct small){ .rng = { 1 } };
    sched_policy_init(&policy);
    assert_int_equal(sched_create(&policy, &t.s, NULL), 0);
    for (uint32_t i = 0; i < 20; i++) {
        e.node = node_of(5, 0, 16, 64 + i); /* each a state of its own */
        e.node.rack = 1;
        apply(&t, &e);
    }
    /* 100 of 100 devices; but beside the fours and threes only ten twos fit */
    for (uint32_t g = 0; g < 3; g++)
        o.group[g] =
            (struct sched_group){ { .devices = devices[g], .permille = 1000 }, counts[g] };
    e = (struct sched_event){ .kind = SCHED_SUBMIT };
    e.submit = (struct sched_request){ .id = 1, .option_count = 1, .option = &o };
    apply(&t, &e);
    ROW("many ways are not all tried",
        !sched_find(t.s, 1, &v) && v.verdict == SCHED_NO_ROOM && v.unproven);
    o.group[2].count = 10;
    e.submit.id = 2;
    apply(&t, &e);
    ROW("ten do fit", !sched_find(t.s, 2, &v) && v.state == SCHED_RUNNING);
    sched_destroy(t.s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(found_if_there_is_one),
    cmocka_unit_test(split_over_the_fewest),
    cmocka_unit_test(a_rack_lies_in_one_zone),
    cmocka_unit_test(a_search_may_give_up),
};
ROWS_MAIN(tests)
