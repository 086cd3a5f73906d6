/*
 * Shares that are promised are held: the pairs and programs of the acceptance
 * set, with the error of every window against the goal.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/macros.h"
#include "sim.h"

#define US NS_PER_US
#define MS NS_PER_MS

static const struct {
    const char *label;
    struct sim_program program;
    uint32_t processes;
} programs[] = {
    { "many small asynchronous kernels", { .kernel_ns = 150 * US }, 1 },
    { "one 1 ms kernel, then a wait",
      { .kernel_ns = MS, .host_ns = 200 * US, .batch = 1 },
      1 },
    { "gaps shorter than a drain",
      { .kernel_ns = 300 * US, .host_ns = 600 * US, .batch = 3 },
      1 },
    { "long kernels", { .kernel_ns = 5 * MS, .host_ns = 100 * US, .batch = 1 }, 1 },
    { "copies of 400 us", { .kernel_ns = 400 * US, .host_ns = 20 * US, .batch = 4 }, 1 },
    { "three processes a lease",
      { .kernel_ns = 500 * US, .host_ns = 200 * US, .batch = 2 },
      3 },
    /* the last: its neighbours borrow what it leaves, so only for hard leases */
    { "a host thread that hiccups",
      { .kernel_ns = MS,
        .host_ns = 200 * US,
        .batch = 1,
        .idle_every_ns = 300 * MS,
        .idle_ns = 2500 * US },
      1 },
};
#define STEADY (ARRAY_LEN(programs) - 1)

static const struct {
    const char *label;
    uint32_t permille[4];
} pairs[] = {
    { "50/50", { 500, 500 } }, { "30/70", { 300, 700 } },     { "10/90", { 100, 900 } },
    { "1/99", { 10, 990 } },   { "5/5/90", { 50, 50, 900 } },
};

static void check_error(const char *what, const char *pair, uint64_t lease, double promise,
                        const struct sim_error *e)
{
    bool good = e->p95_10s <= 10 && e->p95_10s <= promise * 0.05 && e->p95_60s <= 1;
    if (getenv("SHOW") || !good)
        print_message(
            "%-32s %-7s %4.0f: mean %7.2f; 10 s p95 %.2f max %.2f (%u windows, %u "
            "disjoint); 60 s p95 %.3f max %.3f permille%s\n",
            what, pair, promise, e->mean, e->p95_10s, e->max_10s, e->windows_10s,
            e->disjoint_10s, e->p95_60s, e->max_60s, good ? "" : "  <-- too far off");
    if (!good)
        fail_msg("%s, %s, lease of %.0f permille", what, pair, promise);
}

/* Equal programs complete kernels in the proportion of their shares: what the
 * ledger says was held is what the device did. */
static void check_kernels(struct sim *s, const char *what, const char *pair,
                          const double *promise, uint32_t count)
{
    double all = 0;
    for (uint32_t i = 0; i < count; i++)
        all += (double)sim_completed(s, i + 1);
    for (uint32_t i = 0; i < count; i++) {
        double got = (double)sim_completed(s, i + 1) * 1000 / all;
        bool good = got > promise[i] - 10 && got < promise[i] + 10;
        if (getenv("SHOW") || !good)
            print_message("%-32s %-7s %4.0f: %7.2f permille of the kernels\n", what, pair,
                          promise[i], got);
        if (!good)
            fail_msg("%s, %s: kernels", what, pair);
    }
}

struct delays {
    uint64_t message_ns, wake_ns, timer_ns;
};

static void run_pair(size_t p, size_t q, enum proto_mode mode, const struct delays *delays)
{
    struct sim *s = sim_create((uint32_t)(p * 10 + q + 1));
    if (delays)
        sim_set_delays(s, delays->message_ns, delays->wake_ns, delays->timer_ns);
    uint64_t leases[4];
    double promise[4];
    struct sim_error error[4];
    uint32_t count = 0;
    sim_device(s, 0, false);
    for (; count < 4 && pairs[q].permille[count]; count++) {
        leases[count] = count + 1;
        promise[count] = pairs[q].permille[count];
        uint32_t limit = mode == PROTO_HARD ? pairs[q].permille[count] : 1000;
        assert_int_equal(sim_lease(s, count + 1, mode, pairs[q].permille[count], limit, 50),
                         0);
        for (uint32_t i = 0; i < programs[p].processes; i++)
            sim_process(s, count + 1, &programs[p].program);
    }
    sim_run(s, sim_now(s) + 2 * NS_PER_S);
    sim_measure(s, 80, leases, promise, count, error);
    for (uint32_t i = 0; i < count; i++)
        check_error(programs[p].label, pairs[q].label, leases[i], promise[i], &error[i]);
    if (!delays) /* a slow hand-off costs the shorter turns more kernels */
        check_kernels(s, programs[p].label, pairs[q].label, promise, count);
    sim_destroy(s);
}

static void test_pairs_hard(void **state)
{
    for (size_t p = 0; p < ARRAY_LEN(programs); p++)
        for (size_t q = 0; q < ARRAY_LEN(pairs); q++)
            run_pair(p, q, PROTO_HARD, NULL);
}

static void test_pairs_burst(void **state)
{
    for (size_t p = 0; p < STEADY; p++)
        for (size_t q = 0; q < ARRAY_LEN(pairs); q++)
            run_pair(p, q, PROTO_BURST, NULL);
}

/* What the broker sees first, a deadline or the message that answers it, must not
 * matter, nor how slow the machine is. */
static void test_pairs_on_slow_machines(void **state)
{
    static const struct delays rows[] = {
        { 300 * US, 100 * US, 5 * US },
        { 5 * US, 5 * US, 500 * US },
        { 1 * MS, 1 * MS, 1 * MS },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (size_t p = 0; p < 3; p++) {
            run_pair(p, 1, PROTO_HARD, &rows[i]);
            run_pair(p, 1, PROTO_BURST, &rows[i]);
            run_pair(p, 2, PROTO_BURST, &rows[i]);
        }
    }
}

/* Unlike programs side by side: each has its share whatever the other does. */
static void test_unlike_programs(void **state)
{
    for (size_t p = 0; p < STEADY; p++) {
        for (size_t r = 0; r < STEADY; r++) {
            struct sim *s = sim_create((uint32_t)(p * 10 + r + 1));
            uint64_t leases[] = { 1, 2 };
            double promise[] = { 300, 700 };
            struct sim_error error[2];
            sim_device(s, 0, false);
            sim_lease(s, 1, p % 2 ? PROTO_HARD : PROTO_BURST, 300, p % 2 ? 300 : 1000, 0);
            sim_lease(s, 2, r % 2 ? PROTO_HARD : PROTO_BURST, 700, r % 2 ? 700 : 1000, 0);
            for (uint32_t i = 0; i < programs[p].processes; i++)
                sim_process(s, 1, &programs[p].program);
            for (uint32_t i = 0; i < programs[r].processes; i++)
                sim_process(s, 2, &programs[r].program);
            sim_run(s, sim_now(s) + 2 * NS_PER_S);
            sim_measure(s, 65, leases, promise, 2, error);
            check_error(programs[p].label, "30/70", 1, 300, &error[0]);
            check_error(programs[r].label, "70/30", 2, 700, &error[1]);
            sim_destroy(s);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs_hard),
        cmocka_unit_test(test_pairs_burst),
        cmocka_unit_test(test_pairs_on_slow_machines),
        cmocka_unit_test(test_unlike_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
