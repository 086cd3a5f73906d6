/* Placement on one machine: what fits, what does not, and how that is explained. */
#include "../rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "model/units.h"
#include "place.h"

#define MAX 16

/* A machine with leases on it. */
struct scene {
    struct device device[MAX];
    uint32_t count;
    struct lease lease[64];
    uint32_t lease_count;
    struct place_policy policy;
};

static void scene_init(struct scene *s, const char *machine)
{
    struct sl_err err = { 0 };
    memset(s, 0, sizeof *s);
    s->policy.mem_overcommit_permille = 1000;
    if (emulated_add(machine, s->device, MAX, &s->count, &err) < 0)
        fail_msg("%s", err.msg);
    for (uint32_t i = 0; i < s->count; i++)
        s->device[i].index = i;
}

static struct lease_request ask(uint32_t slices, uint64_t mem, uint32_t permille)
{
    struct lease_request q;
    lease_request_init(&q);
    q.slice_count = slices;
    q.mem_request_bytes = q.mem_limit_bytes = mem;
    q.compute_request_permille = q.compute_limit_permille = permille;
    return q;
}

static struct place_verdict find(struct scene *s, const struct lease_request *q,
                                 uint32_t uid)
{
    const struct lease *list[64];
    struct place_use use[MAX];
    struct place_verdict v;
    for (uint32_t i = 0; i < s->lease_count; i++)
        list[i] = &s->lease[i];
    place_sum(s->device, s->count, list, s->lease_count, NULL, use);
    place_find(s->device, use, s->count, q, uid, &s->policy, &v);
    return v;
}

/* Place it and keep it; the position of its first device, or -1. */
static int put(struct scene *s, const struct lease_request *q, uint32_t uid)
{
    struct place_verdict v = find(s, q, uid);
    if (v.code != SL_OK)
        return -1;
    struct lease *l = &s->lease[s->lease_count++];
    l->state = LEASE_ACTIVE;
    l->uid = uid;
    l->slice_count = q->slice_count;
    for (uint32_t i = 0; i < q->slice_count; i++)
        place_slice_fill(&s->device[v.device[i]], q, &l->slice[i]);
    return (int)v.device[0];
}

/* "a:mem-MiB/permille" in use, one letter a device of 1000 MiB; then what is asked. */
static void dimensions(void **state)
{
    static const struct {
        const char *label;
        uint32_t used[3][2]; /* MiB, permille */
        uint32_t slices, mib, permille;
        const char *want; /* devices, or "none: cause" */
    } rows[] = {
        { "fits exactly", { { 200, 500 }, { 1000, 0 }, { 1000, 0 } }, 1, 800, 500, "a" },
        { "one MiB short",
          { { 201, 500 }, { 1000, 0 }, { 1000, 0 } },
          1,
          800,
          500,
          "none: memory" },
        { "one permille short",
          { { 200, 501 }, { 1000, 0 }, { 1000, 0 } },
          1,
          800,
          500,
          "none: compute" },
        { "free memory on one and free time on another are no slice (failure 11)",
          { { 0, 900 }, { 900, 0 }, { 900, 900 } },
          1,
          500,
          500,
          "none: compute" },
        { "the fuller one that still fits is taken",
          { { 0, 0 }, { 500, 500 }, { 200, 200 } },
          1,
          300,
          300,
          "b" },
        { "an empty card is kept for what needs it whole",
          { { 0, 0 }, { 100, 100 }, { 1000, 0 } },
          1,
          100,
          100,
          "b" },
        { "a full share takes a card with none lent (failure 12)",
          { { 10, 1 }, { 10, 0 }, { 0, 0 } },
          1,
          10,
          1000,
          "b" },
        { "two slices stand on two devices",
          { { 0, 0 }, { 0, 0 }, { 1000, 1000 } },
          2,
          400,
          400,
          "ab" },
        { "no half gangs",
          { { 0, 0 }, { 1000, 0 }, { 1000, 0 } },
          2,
          400,
          400,
          "none: memory" },
        { "more slices than devices never fit",
          { { 0, 0 }, { 0, 0 }, { 0, 0 } },
          4,
          10,
          10,
          "none: devices" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct device d[3] = { 0 };
        struct place_use use[3] = { 0 };
        struct place_policy policy = { 1000 };
        struct place_verdict v;
        struct lease_request q = ask(rows[i].slices, rows[i].mib * MIB, rows[i].permille);
        char have[32] = "";
        for (uint32_t k = 0; k < 3; k++) {
            d[k] = (struct device){ .index = k, .memory_bytes = 1000 * MIB };
            snprintf(d[k].id, sizeof d[k].id, "%c", 'a' + k);
            use[k].mem_request_bytes = use[k].mem_limit_bytes = rows[i].used[k][0] * MIB;
            use[k].permille = rows[i].used[k][1];
        }
        place_find(d, use, 3, &q, 0, &policy, &v);
        if (v.code == SL_OK)
            for (uint32_t k = 0; k < q.slice_count; k++)
                strcat(have, d[v.device[k]].id);
        else
            snprintf(have, sizeof have, "none: %s", v.cause);
        if (strcmp(have, rows[i].want) != 0)
            print_message("%s: have %s (%s)\n", rows[i].label, have, v.why);
        ROW(rows[i].label, strcmp(have, rows[i].want) == 0);
    }
}

static void fact_1_two_of_48_do_not_fit_one_of_80(void **state)
{
    struct scene s;
    struct lease_request q = ask(1, 48 * GIB, 300);
    scene_init(&s, "a100-80g:2");
    ROW("the first takes the first card", put(&s, &q, 0) == 0);
    struct lease_request rest = ask(1, 32 * GIB - s.device[0].reserve_bytes, 300);
    ROW("the second goes to the other card", put(&s, &q, 0) == 1);
    ROW("a third finds no room", put(&s, &q, 0) == -1);
    ROW("32 GiB less the reserve stay free on the first", put(&s, &rest, 0) >= 0);

    scene_init(&s, "a100-80g");
    s.policy.mem_overcommit_permille = 1200;
    struct lease_request limits = ask(1, 30 * GIB, 300);
    limits.mem_limit_bytes = 48 * GIB;
    ROW("over-commit 1.2: one limit of 48", put(&s, &limits, 0) == 0);
    ROW("over-commit 1.2: two limits of 48, requests fit", put(&s, &limits, 0) == 0);
    ROW("over-commit 1.2: requests of 48 do not", put(&s, &q, 0) == -1);
    s.policy.mem_overcommit_permille = 1000;
    s.lease_count = 1;
    ROW("without it the limits must fit too", put(&s, &limits, 0) == -1);
}

static void fact_2_sizes_come_from_the_driver(void **state)
{
    struct scene s;
    scene_init(&s, "a100-80g");
    uint64_t mib = device_lendable_bytes(&s.device[0]) / MIB;
    ROW("an 80 GB card lends about 81,000 MiB", mib > 80900 && mib < 81920);
    ROW("part of it is reserved", s.device[0].reserve_bytes > 0);
    struct lease_request whole = ask(1, 0, 1000), name = ask(1, 80 * GIB, 1000);
    ROW("80 GiB by the name do not fit", put(&s, &name, 0) == -1);
    ROW("the whole device does", put(&s, &whole, 0) == 0);
    ROW("and is exactly what may be lent",
        s.lease[0].slice[0].mem_request_bytes == device_lendable_bytes(&s.device[0]));
}

static void fact_3_a_pool_is_no_address_space(void **state)
{
    struct scene s;
    scene_init(&s, "a100-80g:8");
    struct lease_request q = ask(1, 100 * GIB, 1000);
    struct place_verdict v = find(&s, &q, 0);
    ROW("100 GiB on one device is refused", v.code == SL_NO_CAPACITY);
    ROW("and would be for ever: waiting is vain", v.never);
    ROW("by memory", strcmp(v.cause, "memory") == 0);
    ROW("the largest slice is one card's",
        v.largest_free_bytes == device_lendable_bytes(&s.device[0]));
    ROW("the total is eight times that", v.total_free_bytes == 8 * v.largest_free_bytes);
    json_t *j = place_explain(&v, s.device, s.count, &q);
    char *text = json_dumps(j, 0);
    ROW("more devices are offered", strstr(text, "more devices: 2 x 51200MiB") ||
                                        strstr(text, "more devices: 2 x 50GiB"));
    ROW("a smaller slice is offered", strstr(text, "fits now on one device") != NULL);
    ROW("the sentence has the largest and the total",
        strstr(v.why, "79.3 GiB") && strstr(v.why, "634 GiB"));
    free(text);
    json_decref(j);

    struct lease_request small = ask(1, 2 * GIB, 100);
    scene_init(&s, "a100-80g");
    put(&s, &small, 0);
    v = find(&s, &q, 0);
    ROW("beside others, what it can lend when empty is told apart from what is free",
        strstr(v.why, "the largest can lend 79.3 GiB; ") &&
            strstr(v.why, "at most 77.3 GiB"));
    q = ask(1, GIB, 100);
    q.mem_limit_bytes = 100 * GIB;
    ROW("a limit that never fits is what was asked",
        strstr(find(&s, &q, 0).why, "asked 1 x 1.00 GiB..100 GiB"));
}

static void failure_8_the_24th_waits(void **state)
{
    struct scene s;
    scene_init(&s, "l40s");
    struct lease_request q = ask(1, 2000 * MIB, 10);
    ROW("the driver's total is 46068 MiB", s.device[0].memory_bytes == 46068 * MIB);
    s.device[0].reserve_bytes = 0;
    int fits = 0;
    while (put(&s, &q, 0) == 0)
        fits++;
    ROW("23 of 2000 MiB fit, the 24th does not", fits == 23);
    ROW("it may wait", !find(&s, &q, 0).never);
    s.lease[5].state = LEASE_DRAINING;
    ROW("one that drains still counts", put(&s, &q, 0) == -1);
    s.lease[5].state = LEASE_RELEASED;
    ROW("one that is released does not", put(&s, &q, 0) == 0);
    s.lease[7].slice[0].mem_request_bytes = s.lease[7].slice[0].mem_limit_bytes = 1 * MIB;
    s.lease[7].slice[0].mem_over_bytes = 1999 * MIB;
    ROW("a shrink that is not met frees nothing yet", put(&s, &q, 0) == -1);
    s.lease[7].slice[0].mem_over_bytes = 0;
    ROW("when it is met, it does", put(&s, &q, 0) == 0);
}

static void failure_13_whole_card_needs_both(void **state)
{
    struct scene s;
    scene_init(&s, "t4:2");
    struct lease_request small = ask(1, 1 * MIB, 1), whole = ask(1, 0, 1000);
    put(&s, &small, 0);
    ROW("a card with a sliver lent is not whole", put(&s, &whole, 0) == 1);
    ROW("and there is no second whole one", put(&s, &whole, 0) == -1);
    struct lease_request idle = ask(1, GIB, 1000);
    idle.mode = LEASE_BESTEFFORT;
    ROW("besteffort needs memory and no time", put(&s, &idle, 0) == 0);
}

static bool waiting_is_offered(const json_t *explained)
{
    char *text = json_dumps(explained, 0);
    bool offered = strstr(text, "--wait") != NULL;
    free(text);
    return offered;
}

static void names(void **state)
{
    static const struct {
        const char *label, *name, *want; /* positions, or the code's wire name */
    } rows[] = {
        { "nothing means any", "", "0123" },
        { "an id", "emu-a10-0", "2" },
        { "an index", "3", "3" },
        { "an index that is not there is no part of a name", "80", "not-found" },
        { "a model, in any case", "nvidia a10", "2" },
        { "a part of one model means any device of it", "a100", "01" },
        { "a part of an id", "g-1", "1" },
        { "the start of an id", "EMU-L4", "3" },
        { "a part of several models", "a10", "invalid" },
        { "all of the vendor's", "nvidia", "invalid" },
        { "a part of none", "mi300", "not-found" },
    };
    struct scene s;
    scene_init(&s, "a100-80g:2,a10,l4");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool named[MAX];
        char have[16] = "";
        enum sl_code code = place_named(s.device, s.count, rows[i].name, named);
        for (uint32_t k = 0; code == SL_OK && k < s.count; k++)
            if (named[k])
                snprintf(have + strlen(have), sizeof have - strlen(have), "%u", k);
        ROW_STR(rows[i].label, code ? sl_code_row(code)->wire : have, rows[i].want);
    }

    struct lease_request big = ask(1, 70 * GIB, 100);
    snprintf(big.device, sizeof big.device, "0");
    put(&s, &big, 0);
    struct place_verdict none = find(&s, &big, 0);
    ROW("what is free is that of the device named",
        none.code == SL_NO_CAPACITY && none.total_free_bytes < 10 * GIB);
    json_t *help = place_explain(&none, s.device, s.count, &big);
    ROW("waiting may help", waiting_is_offered(help));
    json_decref(help);
    big.wait_ms = 1000;
    help = place_explain(&none, s.device, s.count, &big);
    ROW("who waited is not told to wait", !waiting_is_offered(help));
    json_decref(help);

    struct lease_request q = ask(1, GIB, 100);
    snprintf(q.device, sizeof q.device, "a10");
    struct place_verdict v = find(&s, &q, 0);
    json_t *j = place_explain(&v, s.device, s.count, &q);
    ROW("of several models none is taken", v.code == SL_INVALID && v.never);
    ROW("and those that it may mean are listed",
        json_array_size(json_object_get(j, "alternatives")) == 3);
    json_decref(j);
}

static void rules(void **state)
{
    struct scene s;
    scene_init(&s, "a10:2");
    struct lease_request q = ask(1, GIB, 100), two = ask(2, GIB, 100);
    ROW("tenant 1000 gets the first card", put(&s, &q, 1000) == 0);
    ROW("tenant 1001 does not share it", put(&s, &q, 1001) == 1);
    ROW("nobody is left for tenant 1002", put(&s, &q, 1002) == -1);
    ROW("and is told why", strcmp(find(&s, &q, 1002).cause, "tenancy") == 0);
    ROW("in a whole sentence", strstr(find(&s, &q, 1002).why, " in all ") != NULL);
    s.device[0].share_tenants = s.device[1].share_tenants = true;
    ROW("the operator may waive it", put(&s, &q, 1002) >= 0);

    scene_init(&s, "a10:2");
    ROW("a spanning lease", put(&s, &two, 0) == 0);
    ROW("one at most on a device", put(&s, &two, 0) == -1);
    ROW("by cause", strcmp(find(&s, &two, 0).cause, "spanning") == 0);
    ROW("single ones beside it are fine", put(&s, &q, 0) >= 0);

    scene_init(&s, "a10,l4");
    snprintf(q.device, sizeof q.device, "%s", "emu-l4-0");
    ROW("a device by id", put(&s, &q, 0) == 1);
    snprintf(q.device, sizeof q.device, "%s", "1");
    ROW("by index", put(&s, &q, 0) == 1);
    snprintf(q.device, sizeof q.device, "%s", "nvidia l4");
    ROW("by model, any case", put(&s, &q, 0) == 1);
    snprintf(q.device, sizeof q.device, "%s", "emu-l4-9");
    ROW("one that is not there is not found", find(&s, &q, 0).code == SL_NOT_FOUND);
    s.device[1].state = DEVICE_FAILED;
    snprintf(q.device, sizeof q.device, "%s", "1");
    ROW("one that failed is not waited for", find(&s, &q, 0).never);
    s.device[1].state = DEVICE_HELD;
    snprintf(q.device, sizeof q.device, "%s", "1");
    snprintf(s.device[1].why, sizeof s.device[1].why, "the broker with pid 7 has it");
    ROW("one that is held is left alone", strcmp(find(&s, &q, 0).cause, "state") == 0);
    ROW("it may be given back", !find(&s, &q, 0).never);
    ROW("and who holds it is said",
        strstr(find(&s, &q, 0).why, "emu-l4-0 is held: the broker with pid 7 has it"));

    s.count = 0;
    q.device[0] = '\0';
    ROW("no device at all", strcmp(find(&s, &q, 0).cause, "state") == 0);
    ROW("waiting brings none", find(&s, &q, 0).never);
}

static bool suggests(const struct scene *s, const struct place_verdict *v,
                     const struct lease_request *q, const char *what)
{
    json_t *j = place_explain(v, s->device, s->count, q);
    char *text = json_dumps(j, JSON_ENSURE_ASCII);
    bool does = text && strstr(text, what);
    if (!does)
        print_message("have: %s; %s\n", v->why, text);
    free(text);
    json_decref(j);
    return does;
}

/* Two of `ask`, of which the first has `used_mib` in its programs' hands. */
static void what_is_held_counts(void **state)
{
    struct scene s;
    struct lease_request q = ask(1, GIB, 100), small = ask(1, 500 * MIB, 100);
    scene_init(&s, "t4");
    s.device[0].memory_bytes = 4 * GIB;
    s.device[0].reserve_bytes = 0;
    s.policy.mem_overcommit_permille = 4000;
    q.mem_limit_bytes = 4 * GIB;
    put(&s, &q, 0);
    snprintf(s.lease[0].name, sizeof s.lease[0].name, "m1");
    s.lease[0].slice[0].mem_used_bytes = 512 * MIB;
    ROW("a program within its request leaves room", find(&s, &q, 0).code == SL_OK);
    s.lease[0].slice[0].mem_used_bytes = 3500ull * MIB;
    struct place_verdict v = find(&s, &q, 0);
    ROW("what it holds above its request is no room", v.code == SL_NO_CAPACITY);
    ROW("by memory", strcmp(v.cause, "memory") == 0);
    ROW("it may come back", !v.never);
    ROW("who holds how much is said", strstr(v.why, "m1 holds 2.41 GiB above its request"));
    ROW("and what is free", strstr(v.why, "at most 596 MiB"));
    ROW("and what fits", suggests(&s, &v, &q, "--mem 596MiB"));
    ROW("what fits is granted", put(&s, &small, 0) == 0);
    s.lease[0].slice[0].mem_used_bytes = 4 * GIB - 1;
    s.lease_count = 1;
    const char *cause;
    struct place_use none = { 0 };
    ROW("to its holder it is no obstacle",
        place_slice_fits(&s.device[0], &none, &s.lease[0].slice[0], &s.policy, &cause));
}

static void refusals_say_what_fits(void **state)
{
    struct scene s;
    struct lease_request whole = ask(8, 0, 1000), first = ask(1, GIB, 400);
    scene_init(&s, "a100-80g:8");
    for (int i = 0; i < 4; i++) {
        struct lease_request one = ask(1, 0, 1000);
        put(&s, &one, 0);
    }
    struct place_verdict v = find(&s, &whole, 0);
    ROW("a gang is told how many devices have room",
        strstr(v.why, "only 4 devices have room for a slice now, and 8 are asked for"));
    ROW("and not what is free on one of those", !strstr(v.why, "on one device at most"));
    ROW("and how many it could have", suggests(&s, &v, &whole, "--devices 4 fits now"));

    scene_init(&s, "t4");
    s.device[0].memory_bytes = 3000ull * MIB;
    s.device[0].reserve_bytes = 0;
    first.mem_limit_bytes = 2500ull * MIB;
    put(&s, &first, 0);
    struct lease_request second = ask(1, GIB, 400);
    v = find(&s, &second, 0);
    ROW("limits that leave too little are the cause", strcmp(v.cause, "memory") == 0);
    ROW("what is free under them is said", strstr(v.why, "at most 500 MiB"));
    ROW("and what would fit", suggests(&s, &v, &second, "--mem 500MiB fits now"));
    second = ask(1, 0, 400);
    v = find(&s, &second, 0);
    ROW("of a whole device too", suggests(&s, &v, &second, "--mem 500MiB fits now"));
    second = ask(1, 400 * MIB, 400);
    second.mem_limit_bytes = GIB;
    v = find(&s, &second, 0);
    ROW("or which limit", suggests(&s, &v, &second, "\"--mem-limit 500MiB fits now"));

    struct lease_request two = ask(2, GIB, 100);
    scene_init(&s, "a10:2");
    put(&s, &two, 0);
    v = find(&s, &two, 0);
    ROW("the rule for leases on several devices is said",
        strstr(v.why, "a device can be in only one such lease"));
    first = ask(1, GIB, 100);
    put(&s, &first, 1000);
    put(&s, &first, 1000);
    v = find(&s, &first, 1001);
    ROW("how users may share is not for all to do",
        !suggests(&s, &v, &first, "sluice down"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(dimensions),
    cmocka_unit_test(what_is_held_counts),
    cmocka_unit_test(refusals_say_what_fits),
    cmocka_unit_test(fact_1_two_of_48_do_not_fit_one_of_80),
    cmocka_unit_test(fact_2_sizes_come_from_the_driver),
    cmocka_unit_test(fact_3_a_pool_is_no_address_space),
    cmocka_unit_test(failure_8_the_24th_waits),
    cmocka_unit_test(failure_13_whole_card_needs_both),
    cmocka_unit_test(names),
    cmocka_unit_test(rules),
};

ROWS_MAIN(tests)
