/* Rows for the pool: what fits, what is taken and given, what a try leaves behind. */
#include "../rows.h"

#include "pools.h"

static const struct {
    const char *label;
    struct pool_ask ask;
    bool possible,
        fits; /* when empty; when one device has half its compute and 12 GiB lent */
} fit_rows[] = {
    { "a whole device", { .devices = 1, .permille = 1000 }, true, true },
    { "both devices whole", { .devices = 2, .permille = 1000 }, true, false },
    { "both devices by half", { .devices = 2, .permille = 500 }, true, true },
    { "three of two devices", { .devices = 3, .permille = 100 }, false, false },
    { "exactly the memory of each",
      { .devices = 2, .permille = 1, .mem_bytes = 4 * GIB },
      true,
      true },
    { "one byte over",
      { .devices = 2, .permille = 1, .mem_bytes = 4 * GIB + 1 },
      true,
      false },
    { "more memory than a device has",
      { .devices = 1, .permille = 1, .mem_bytes = 16 * GIB + 1 },
      false,
      false },
    { "no device, all CPU that is left", { .cpu_milli = 7000 }, true, true },
    { "no device, more CPU than is left", { .cpu_milli = 7001 }, true, false },
    { "more CPU than the node has", { .cpu_milli = 8001 }, false, false },
    { "more host memory than is left", { .host_mem_bytes = 31 * GIB }, true, false },
    { "a model that is here", { .devices = 1, .permille = 10, .models = 2 }, true, true },
    { "a model that is not here",
      { .devices = 1, .permille = 10, .models = 1 },
      false,
      false },
    { "a label the node has",
      { .devices = 1, .permille = 10, .need = { { 0, 4 } } },
      true,
      true },
    { "a label it lacks",
      { .devices = 1, .permille = 10, .need = { { 4 } } },
      false,
      false },
    { "a label to avoid",
      { .devices = 1, .permille = 10, .avoid = { { 0, 4 } } },
      false,
      false },
    { "another owner beside the first",
      { .devices = 2, .permille = 10, .owner = 7 },
      true,
      false },
    { "another owner on the free device",
      { .devices = 1, .permille = 10, .owner = 7 },
      true,
      true },
};

static void what_fits(void **state)
{
    struct pool_node n = node_of(2, 1, 16, 8);
    n.labels.bits[1] = 4;
    struct pool *p = pool_of(&n, 1);
    struct pool_ask half = { .devices = 1,
                             .permille = 500,
                             .mem_bytes = 12 * GIB,
                             .cpu_milli = 1000,
                             .host_mem_bytes = 2 * GIB };
    pool_take(p, &half, &(struct pool_place){ .device_count = 1, .device = { 1 } });
    for (size_t i = 0; i < ARRAY_LEN(fit_rows); i++) {
        ROW(fit_rows[i].label,
            pool_ask_possible(p, &fit_rows[i].ask, 0) == fit_rows[i].possible);
        ROW(fit_rows[i].label, pool_ask_fits(p, &fit_rows[i].ask, 0) == fit_rows[i].fits);
    }
    pool_set_open(p, 0, false);
    ROW("a closed node takes nothing", !pool_ask_fits(p, &fit_rows[0].ask, 0));
    pool_check(p);
    pool_destroy(p);
}

/* Two leases that both span the same two cards could each hold one card's turn. */
static void one_spanning_lease(void **state)
{
    struct pool_node n = node_of(2, 0, 16, 8);
    struct pool *p = pool_of(&n, 1);
    struct pool_ask pair = { .devices = 2, .permille = 300 },
                    one = { .devices = 1, .permille = 300 };
    struct pool_place at = { .device_count = 2, .device = { 0, 1 } };
    pool_take(p, &pair, &at);
    ROW("a second pair would share a card with the first", !pool_ask_fits(p, &pair, 0));
    ROW("a single slice may share with a pair",
        pool_place_fits(p, &one,
                        &(struct pool_place){ .device_count = 1, .device = { 0 } }));
    pool_take(p, &one, &(struct pool_place){ .device_count = 1, .device = { 0 } });
    pool_give(p, &pair, &at);
    ROW("when the pair is gone another may come", pool_ask_fits(p, &pair, 0));
    pool_check(p);
    pool_destroy(p);
}

/* Whatever it is asked for, the rest of an exclusive device is not lendable meanwhile. */
static void one_lease_on_an_exclusive_device(void **state)
{
    struct pool_node n = node_of(1, 0, 16, 8);
    n.device[0].sharing = POOL_EXCLUSIVE;
    struct pool *p = pool_of(&n, 1);
    struct pool_ask tenth = { .devices = 1, .permille = 100, .mem_bytes = GIB },
                    nothing = { .devices = 1 };
    struct pool_place at = { .device_count = 1 };
    struct pool_free left;
    pool_take(p, &tenth, &at);
    pool_free_at(p, 0, &left);
    ROW("nothing is free beside it", !left.permille[0] && !left.mem_bytes[0]);
    ROW("nobody fits beside it, not even who asks for nothing",
        !pool_ask_fits(p, &nothing, 0));
    pool_check(p);
    pool_give(p, &tenth, &at);
    pool_free_at(p, 0, &left);
    ROW("it is free again", left.permille[0] == 1000 && left.mem_bytes[0] == 16 * GIB);
    pool_check(p);
    pool_destroy(p);
}

/* ---- devices of profiles ---- */

/* Asks "PERMILLE:GIB" one after the other on a card of 40 GiB; "-N": the N-th goes.  The
 * answer has profile@start of each, "-" for who finds none. */
static const struct {
    const char *label, *asks, *want;
    struct pool_profile only; /* instead of the usual table */
} cut_rows[] = {
    { "the smallest that covers both: compute and memory", "142:5", "0@0", { 0 } },
    { "more memory beside the same compute", "142:6", "5@0", { 0 } },
    { "a permille over a seventh is two slots", "143:5", "1@0", { 0 } },
    { "half a card is four slots", "500:1", "3@0", { 0 } },
    { "memory alone can want the whole", "0:21", "4@0", { 0 } },
    { "a byte over a card is none", "0:41", "-", { 0 } },
    { "each at the first start that is free",
      "142:5 142:5 142:5 428:20 142:5",
      "0@0 0@1 0@2 2@4 0@3",
      { 0 } },
    { "a piece that went is filled first",
      "142:5 142:5 142:5 -1 142:5",
      "0@0 0@1 0@2 0@0",
      { 0 } },
    { "seven at most: compute ends before memory",
      "142:5 142:5 142:5 142:5 142:5 142:5 142:5 142:5",
      "0@0 0@1 0@2 0@3 0@4 0@5 0@6 -",
      { 0 } },
    { "six slots free, and no start for four (fragmentation inside the card)",
      "142:5 142:5 142:5 142:5 142:5 -2 -3 -4 428:20 -1 428:20",
      "0@0 0@1 0@2 0@3 0@4 - 2@0",
      { 0 } },
    { "no larger one instead", "428:20 428:20 428:10", "2@0 2@4 -", { 0 } },
    { "as many of one profile as the table says",
      "100:5 100:5 100:5 -1 100:5",
      "0@0 0@1 - 0@0",
      { 1, 1, 0xff, 2 } },
    { "nothing but the whole card", "1:1 1:1 -1 1:1", "0@0 - 0@0", { 7, 8, 1, 1 } },
};

static void cut_one(struct pool *p, const char *text, struct pool_ask *ask,
                    struct pool_place *at, uint32_t *count, char *answer)
{
    struct pool_ask *a = &ask[*count];
    struct pool_place *here = &at[*count];
    char *gib;
    if (*text == '-') {
        uint32_t i = (uint32_t)atoi(text + 1) - 1;
        pool_give(p, &ask[i], &at[i]);
        return;
    }
    *a = (struct pool_ask){ .devices = 1, .permille = (uint32_t)strtoul(text, &gib, 10) };
    a->mem_bytes = strtoull(gib + 1, NULL, 10) * GIB;
    *here = (struct pool_place){ .device_count = 1 };
    pool_place_cut(p, a, here);
    const char *gap = answer[0] ? " " : "";
    if (!pool_ask_fits(p, a, 0)) {
        sprintf(answer + strlen(answer), "%s-", gap);
        return;
    }
    pool_take(p, a, here);
    ++*count;
    sprintf(answer + strlen(answer), "%s%u@%u", gap, here->cut[0].profile,
            here->cut[0].start);
}

static void cards_are_cut_as_said(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(cut_rows); i++) {
        struct pool_profiles only = { 7, 8, 1, { cut_rows[i].only } };
        struct pool_node n = node_of(1, 0, 40, 8);
        struct pool *p = pool_of(NULL, 0);
        struct pool_ask ask[16];
        struct pool_place at[16];
        uint32_t node, count = 0;
        char asks[100], answer[100] = "", *rest = asks, *one;
        n.device[0].sharing = POOL_PROFILE;
        if (pool_set_profiles(p, 0, only.profile[0].most ? &only : profiles_of(0), NULL) ||
            pool_add_node(p, &n, &node, NULL))
            abort();
        snprintf(asks, sizeof asks, "%s", cut_rows[i].asks);
        while ((one = strsep(&rest, " "))) {
            cut_one(p, one, ask, at, &count, answer);
            pool_check(p);
        }
        ROW_STR(cut_rows[i].label, answer, cut_rows[i].want);
        pool_destroy(p);
    }
}

static void bad_profiles(void **state)
{
    static const struct {
        const char *want;
        struct pool_profiles t;
    } rows[] = {
        { "profiles: a device has 1 to 7 compute and 1 to 8 memory slots",
          { 8, 8, 1, { { 1, 1, 1, 1 } } } },
        { "profiles: 1 to 8, not 0", { 7, 8, 0, { { 1, 1, 1, 1 } } } },
        { "profiles: no device can carry number 0", { 4, 4, 1, { { 5, 1, 1, 1 } } } },
        { "profiles: number 1 starts nowhere, or ends behind the device",
          { 7, 8, 2, { { 1, 1, 0xff, 1 }, { 1, 2, 0xff, 1 } } } },
    };
    struct pool *p = pool_of(NULL, 0);
    struct pool_node n = node_of(1, 0, 16, 8);
    struct sl_err err;
    uint32_t node;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        ROW(rows[i].want, pool_set_profiles(p, 0, &rows[i].t, &err) == -SL_INVALID);
        ROW_STR(rows[i].want, err.msg, rows[i].want);
    }
    n.device[0].sharing = POOL_PROFILE;
    ROW("a good one", !pool_set_profiles(p, 0, profiles_of(0), &err));
    ROW("a device of it", !pool_add_node(p, &n, &node, &err));
    ROW("then it is too late",
        pool_set_profiles(p, 0, profiles_of(0), &err) == -SL_CONFLICT);
    pool_destroy(p);
}

static void bad_nodes(void **state)
{
    struct pool *p = pool_of(NULL, 0);
    struct sl_err err;
    struct pool_node n = node_of(1, 0, 16, 8);
    uint32_t node;
    n.device_count = POOL_MAX_DEVICES + 1;
    ROW("too many devices", pool_add_node(p, &n, &node, &err) == -SL_INVALID);
    ROW_STR("too many devices", err.msg, "a node has at most 16 devices, not 17");
    n = node_of(1, POOL_MAX_MODELS, 16, 8);
    ROW("a model out of range", pool_add_node(p, &n, &node, &err) == -SL_INVALID);
    n = node_of(1, 0, 16, 8);
    n.device[0].sharing = POOL_PROFILE + 1;
    ROW("shared in no known way", pool_add_node(p, &n, &node, &err) == -SL_INVALID);
    n.device[0].sharing = POOL_EXCLUSIVE;
    n.device[0].over_permille = 1;
    ROW("above capacity of what nobody shares",
        pool_add_node(p, &n, &node, &err) == -SL_INVALID);
    n.device[0].over_permille = 0;
    n.device[0].sharing = POOL_TIME;
    n.device[0].over_mem_bytes = 1ull << 48;
    ROW("too many bytes above", pool_add_node(p, &n, &node, &err) == -SL_INVALID);
    n.device[0].over_mem_bytes = 0;
    n.device[0].sharing = POOL_PROFILE;
    ROW("a model without profiles", pool_add_node(p, &n, &node, &err) == -SL_INVALID);
    ROW_STR("a model without profiles", err.msg, "model 0 has no profiles");
    ROW("none was added", pool_node_count(p) == 0);
    pool_destroy(p);
}

/* ---- random takes and gives ---- */

#define HELD 64

struct held {
    struct pool_ask ask;
    struct pool_place at;
};

/* Any devices that suit, found the plain way. */
static bool some_place(const struct pool *p, const struct pool_ask *a, uint32_t node,
                       struct pool_place *out)
{
    *out = (struct pool_place){ .node = node };
    for (uint32_t i = 0;
         i < pool_node_at(p, node)->device_count && out->device_count < a->devices; i++) {
        struct pool_ask one = *a;
        struct pool_place at = { .node = node,
                                 .device_count = 1,
                                 .device = { (uint8_t)i } };
        one.devices = 1;
        pool_place_cut(p, &one, &at);
        /* as several: a spanned device would not do */
        if (pool_place_fits(p, &one, &at))
            out->device[out->device_count++] = (uint8_t)i;
    }
    pool_place_cut(p, a, out);
    return pool_place_fits(p, a, out);
}

static void step(struct pool *p, struct rng *r, struct held *held, uint32_t *count)
{
    if (*count && (*count == HELD || rng_below(r, 3) == 0)) {
        uint32_t i = rng_below(r, *count);
        pool_give(p, &held[i].ask, &held[i].at);
        held[i] = held[--*count];
        return;
    }
    struct held *h = &held[*count];
    h->ask = random_ask(r);
    if (some_place(p, &h->ask, rng_below(r, pool_node_count(p)), &h->at)) {
        pool_take(p, &h->ask, &h->at);
        ++*count;
    }
}

static void a_try_leaves_nothing(void **state)
{
    struct rng r = { 11 };
    for (int round = 0; round < 40; round++) {
        struct pool *p = mixed_pool(&r, 1 + rng_below(&r, 20), 0);
        struct pool_free before[20], after;
        struct held held[HELD], tried[HELD];
        uint32_t count = 0, tried_count;
        for (int i = 0; i < 60; i++)
            step(p, &r, held, &count);
        for (uint32_t i = 0; i < pool_node_count(p); i++)
            pool_free_at(p, i, &before[i]);
        memcpy(tried, held, sizeof held);
        tried_count = count;
        assert_int_equal(pool_try(p, 50), 0);
        for (int i = 0; i < 50; i++)
            step(p, &r, tried, &tried_count);
        pool_undo(p);
        for (uint32_t i = 0; i < pool_node_count(p); i++) {
            pool_free_at(p, i, &after);
            ROW("an undone try leaves the node as it was",
                !memcmp(&before[i], &after, sizeof after));
        }
        pool_check(p);
        while (count--)
            pool_give(p, &held[count].ask, &held[count].at);
        pool_check(p);
        pool_destroy(p);
    }
}

/* What fits and is free in the first class is the same whatever the lower class has. */
static void the_lower_class_leaves_no_trace(void **state)
{
    struct rng r = { 21 };
    for (int round = 0; round < 30; round++) {
        uint32_t nodes = 1 + rng_below(&r, 20),
                 tenancy = rng_below(&r, POOL_ALL_SHARING + 1);
        struct rng same = r;
        struct pool *p = mixed_pool(&r, nodes, tenancy);
        struct pool *plain = mixed_pool(&same, nodes, tenancy);
        struct held held[HELD];
        uint32_t count = 0, lower = 0;
        for (int i = 0; i < 300; i++) {
            if (count && (count == HELD || rng_below(&r, 3) == 0)) {
                uint32_t k = rng_below(&r, count);
                pool_give(p, &held[k].ask, &held[k].at);
                if (!held[k].ask.lower)
                    pool_give(plain, &held[k].ask, &held[k].at);
                held[k] = held[--count];
                continue;
            }
            struct held *h = &held[count];
            uint32_t node = rng_below(&r, nodes);
            h->ask = random_ask(&r);
            h->ask.lower |= rng_below(&r, 2);
            if (!h->ask.lower)
                ROW("what fits does not depend on the lower class",
                    pool_ask_fits(p, &h->ask, node) == pool_ask_fits(plain, &h->ask, node));
            if (!some_place(p, &h->ask, node, &h->at))
                continue;
            lower += h->ask.lower;
            pool_take(p, &h->ask, &h->at);
            if (!h->ask.lower)
                pool_take(plain, &h->ask, &h->at);
            count++;
        }
        for (uint32_t i = 0; i < nodes; i++) {
            struct pool_free a, b;
            pool_free_at(p, i, &a);
            pool_free_at(plain, i, &b);
            ROW("nor does what is free", !memcmp(&a, &b, sizeof a));
        }
        pool_check(p);
        while (count--)
            pool_give(p, &held[count].ask, &held[count].at);
        pool_check(p);
        pool_destroy(p);
        pool_destroy(plain);
        ROW("there was some", lower || tenancy != POOL_ALL_SHARING);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_fits),
    cmocka_unit_test(one_spanning_lease),
    cmocka_unit_test(one_lease_on_an_exclusive_device),
    cmocka_unit_test(cards_are_cut_as_said),
    cmocka_unit_test(bad_profiles),
    cmocka_unit_test(the_lower_class_leaves_no_trace),
    cmocka_unit_test(bad_nodes),
    cmocka_unit_test(a_try_leaves_nothing),
};
ROWS_MAIN(tests)
