/*
 * Random mixes of busy leases: whatever stands beside whatever, each gets what
 * filling the device by weight gives it.
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

static const struct sim_program programs[] = {
    { .kernel_ns = 200 * US },
    { .kernel_ns = MS, .host_ns = 200 * US, .batch = 1 },
    { .kernel_ns = 300 * US, .host_ns = 600 * US, .batch = 3 },
    { .kernel_ns = 4 * MS, .host_ns = 100 * US, .batch = 1 },
    { .kernel_ns = 3 * MS },
};

static const char *const modes[] = { "hard", "burst", "besteffort" };

struct member {
    enum proto_mode mode;
    uint32_t request, limit, priority;
    size_t program;
    double want;
    bool full;
};

static uint64_t rnd(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

/* Fill `room` by weight among those of the group, nobody above its limit. */
static double fill(struct member *m, uint32_t count, bool besteffort, double room)
{
    for (uint32_t i = 0; i < count; i++)
        m[i].full = false;
    for (uint32_t round = 0; round <= count; round++) {
        double weight = 0, left = room;
        for (uint32_t i = 0; i < count; i++) {
            if ((m[i].mode == PROTO_BESTEFFORT) != besteffort)
                continue;
            if (m[i].full)
                left -= m[i].limit;
            else
                weight += besteffort ? 1 : m[i].request;
        }
        bool again = false;
        for (uint32_t i = 0; i < count; i++) {
            if ((m[i].mode == PROTO_BESTEFFORT) != besteffort || m[i].full)
                continue;
            m[i].want = left * (besteffort ? 1 : m[i].request) / weight;
            if (m[i].want >= m[i].limit) {
                m[i].want = m[i].limit;
                m[i].full = again = true;
            }
        }
        if (!again)
            break;
    }
    for (uint32_t i = 0; i < count; i++)
        if ((m[i].mode == PROTO_BESTEFFORT) == besteffort)
            room -= m[i].want;
    return room > 0 ? room : 0;
}

static uint32_t make_mix(uint64_t *x, struct member *m)
{
    uint32_t count = rnd(x) % 4 + 2, left = 1000;
    for (uint32_t i = 0; i < count; i++) {
        m[i].mode = (enum proto_mode)(rnd(x) % 5 % 3);
        m[i].priority = rnd(x) % 2 ? 50 : rnd(x) % 101;
        m[i].program = rnd(x) % ARRAY_LEN(programs);
        uint32_t request = rnd(x) % 3 ? rnd(x) % left + 1 : left;
        if (i + 1 < count)
            request = rnd(x) % (left - count + i + 1) + 1;
        if (request < 10) /* one turn in half a second: another test's matter */
            request = left > 60 ? 10 : request;
        m[i].request = m[i].mode == PROTO_BESTEFFORT ? 0 : request;
        m[i].limit = m[i].mode == PROTO_HARD ? request
                     : rnd(x) % 2            ? 1000
                                  : m[i].request + rnd(x) % (1001 - m[i].request);
        m[i].limit = max_u64(m[i].limit, 1);
        left -= m[i].request;
    }
    return count;
}

static void run_mix(uint64_t seed)
{
    uint64_t x = seed * 2654435761u + 1, leases[8];
    struct member m[8];
    struct sim_error error[8];
    double want[8];
    for (int i = 0; i < 8; i++)
        rnd(&x);
    uint32_t count = make_mix(&x, m);
    fill(m, count, true, fill(m, count, false, 1000));

    struct sim *s = sim_create((uint32_t)seed);
    sim_device(s, 0, false);
    for (uint32_t i = 0; i < count; i++) {
        leases[i] = i + 1;
        want[i] = m[i].want;
        assert_int_equal(
            sim_lease(s, i + 1, m[i].mode, m[i].request, m[i].limit, m[i].priority), 0);
        sim_process(s, i + 1, &programs[m[i].program]);
    }
    sim_run(s, sim_now(s) + 5 * NS_PER_S);
    sim_measure(s, 40, leases, want, count, error);
    bool good = true;
    for (uint32_t i = 0; i < count; i++)
        good = good && error[i].p95_10s <= 10 && error[i].mean >= want[i] - 2 &&
               error[i].mean <= want[i] + 2;
    for (uint32_t i = 0; i < count && (!good || getenv("SHOW")); i++)
        print_message(
            "mix %3lu: %-10s %4u..%4u priority %3u, program %lu: promised %7.2f, mean "
            "%7.2f, 10 s p95 %5.2f\n",
            (unsigned long)seed, modes[m[i].mode], m[i].request, m[i].limit, m[i].priority,
            (unsigned long)m[i].program, want[i], error[i].mean, error[i].p95_10s);
    if (!good)
        fail_msg("mix %lu", (unsigned long)seed);
    sim_destroy(s);
}

static void test_random_mixes(void **state)
{
    const char *only = getenv("MIX"), *most = getenv("MIXES");
    if (only) {
        run_mix(strtoul(only, NULL, 10));
        return;
    }
    for (uint64_t seed = 1; seed <= (most ? strtoul(most, NULL, 10) : 60); seed++)
        run_mix(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_random_mixes) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
