/*
 * Processes that stop, hang, lie, die or come by the hundred: the others keep what
 * they were promised, and the ledger stays whole.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/macros.h"
#include "sim.h"

#define US NS_PER_US
#define MS NS_PER_MS
#define S  NS_PER_S

static const struct sim_program async = { .kernel_ns = 200 * US };
static const struct sim_program wait_loop = { .kernel_ns = MS,
                                              .host_ns = 200 * US,
                                              .batch = 1 };

static double share_over(struct sim *s, uint64_t lease, uint64_t ns)
{
    uint64_t held = sim_held(s, lease), all = sim_deliverable(s, 0);
    sim_run(s, sim_now(s) + ns);
    return (double)(sim_held(s, lease) - held) * 1000 /
           (double)(sim_deliverable(s, 0) - all);
}

static void check_range(const char *label, double got, double least, double most)
{
    bool good = got >= least && got <= most;
    if (getenv("SHOW") || !good)
        print_message("%-64s %9.2f in %.2f..%.2f\n", label, got, least, most);
    if (!good)
        fail_msg("%s: %.2f is not in %.2f..%.2f", label, got, least, most);
}

static bool has_flag(struct sim *s, uint64_t lease, uint32_t flag)
{
    return (sim_slice(s, lease, 0).flags & flag) != 0;
}

static struct sim *pair(uint32_t seed, const struct sim_program *first, uint32_t *client,
                        const struct sim_program *second)
{
    struct sim *s = sim_create(seed);
    sim_device(s, 0, false);
    sim_lease(s, 1, PROTO_BURST, 500, 1000, 0);
    sim_lease(s, 2, PROTO_BURST, 500, 1000, 0);
    *client = sim_process(s, 1, first);
    sim_process(s, 2, second);
    return s;
}

static void run_until_holds(struct sim *s, uint64_t lease)
{
    for (int i = 0; i < 1000 && !has_flag(s, lease, SLICE_HOLDS); i++)
        sim_run(s, sim_now(s) + 200 * US);
    sim_run(s, sim_now(s) + 500 * US);
    assert_true(has_flag(s, lease, SLICE_HOLDS));
}

static void test_stopped_process_that_holds_a_turn(void **state)
{
    uint32_t client;
    struct sim *s = pair(1, &async, &client, &wait_loop);
    sim_run(s, sim_now(s) + S);
    run_until_holds(s, 1);
    sim_stop(s, client);
    sim_take_longest_wait(s, 2);
    uint64_t done = sim_completed(s, 2);
    sim_run(s, sim_now(s) + 500 * MS);
    assert_true(has_flag(s, 1, SLICE_LATE));
    assert_int_equal(*(uint32_t *)&sim_slot(s, client, 0)->state, SLOT_NONE);
    check_range("the other waited for deadline, rest and 50 ms",
                (double)sim_take_longest_wait(s, 2) / MS, 50, 10 + 2 + 50 + 2);
    check_range("and then had the device, in 1.2 ms rounds",
                (double)(sim_completed(s, 2) - done), 350, 420);
    double late = share_over(s, 1, S);
    check_range("what the stopped one keeps is charged to it", late, 999, 1001);

    uint64_t held = sim_held(s, 1);
    sim_continue(s, client);
    sim_run(s, sim_now(s) + 30 * MS);
    assert_false(has_flag(s, 1, SLICE_LATE));
    check_range("it owes what it kept", (double)(sim_held(s, 1) - held) / MS, 0, 25);
    sim_run(s, sim_now(s) + 3 * S);
    check_range("and has its half again later", share_over(s, 1, 5 * S), 495, 505);
    sim_destroy(s);
}

/* What it owes is at most what one command may run: 10 s. */
static void test_stopped_for_a_night(void **state)
{
    uint32_t client;
    struct sim *s = pair(10, &async, &client, &wait_loop);
    sim_run(s, sim_now(s) + S);
    run_until_holds(s, 1);
    sim_stop(s, client);
    sim_run(s, sim_now(s) + 60 * S);
    assert_true(has_flag(s, 1, SLICE_STUCK));
    sim_continue(s, client);
    sim_run(s, sim_now(s) + 11 * S);
    check_range("stopped for a minute, 11 s later", share_over(s, 1, 5 * S), 490, 510);
    sim_destroy(s);
}

/* Between two launches it holds the turn with nothing in flight. */
static void test_stopped_process_that_is_idle(void **state)
{
    struct sim_program slow = { .kernel_ns = MS, .host_ns = 900 * US, .batch = 1 };
    uint32_t client;
    struct sim *s = pair(2, &slow, &client, &async);
    sim_run(s, sim_now(s) + S);
    for (int i = 0; i < 10000; i++) {
        sim_run(s, sim_now(s) + 100 * US);
        if (atomic_load(&sim_slot(s, client, 0)->state) == SLOT_HELD)
            break;
    }
    sim_stop(s, client);
    sim_take_longest_wait(s, 2);
    sim_run(s, sim_now(s) + 500 * MS);
    assert_false(has_flag(s, 1, SLICE_LATE));
    check_range("the other waits for tau only (ms)",
                (double)sim_take_longest_wait(s, 2) / MS, 0, 11);
    check_range("and has it all", share_over(s, 2, S), 999, 1000);
    sim_destroy(s);
}

static void test_kernel_that_never_ends(void **state)
{
    struct sim_program hangs = { .kernel_ns = SIM_HANGS };
    uint32_t client;
    struct sim *s = pair(3, &hangs, &client, &wait_loop);
    sim_run(s, sim_now(s) + S);
    assert_true(has_flag(s, 1, SLICE_LATE));
    assert_false(has_flag(s, 1, SLICE_STUCK));
    check_range("the other has the device", share_over(s, 2, 5 * S), 999, 1000);
    sim_run(s, sim_now(s) + 5 * S);
    assert_true(has_flag(s, 1, SLICE_STUCK));
    assert_int_equal(sim_slice(s, 1, 0).turns, 1);

    sim_kill(s, client);
    assert_false(has_flag(s, 1, SLICE_LATE | SLICE_STUCK));
    sim_process(s, 1, &wait_loop);
    uint64_t owed = sim_held(s, 1) / 2;
    sim_run(s, sim_now(s) + owed + 3 * S);
    sim_destroy(s);
}

/* Alone nobody minds a long kernel; who comes then waits for it a bounded time. */
static void test_long_kernel_alone(void **state)
{
    struct sim_program hangs = { .kernel_ns = SIM_HANGS };
    struct sim_program comes = wait_loop;
    uint32_t client;
    comes.start_ns = 20 * S;
    struct sim *s = pair(4, &hangs, &client, &comes);
    sim_run(s, sim_now(s) + 19 * S);
    assert_false(has_flag(s, 1, SLICE_LATE | SLICE_STUCK));
    sim_run(s, sim_now(s) + 2 * S);
    assert_true(has_flag(s, 1, SLICE_LATE));
    check_range("who comes to a hang waits 50 ms", (double)sim_take_longest_wait(s, 2) / MS,
                50, 53);
    sim_destroy(s);
}

/* It never gives back, says that all is complete and predicts no end.  Each of its
 * turns lasts a second longer, and it pays for that. */
static void test_liar(void **state)
{
    struct sim_program liar = async;
    uint32_t client;
    liar.liar = true;
    struct sim *s = pair(5, &liar, &client, &wait_loop);
    sim_run(s, sim_now(s) + 2 * S);
    check_range("beside a liar", share_over(s, 2, 60 * S), 480, 1000);
    check_range("its longest wait (ms)", (double)sim_take_longest_wait(s, 2) / MS, 0, 1075);
    sim_destroy(s);
}

/* Anything may stand in the page at any moment. */
static void test_scribbled_page(void **state)
{
    for (uint32_t seed = 1; seed <= 6; seed++) {
        uint32_t client;
        struct sim *s = pair(seed, &wait_loop, &client, &wait_loop);
        struct proto_slot *slot = sim_slot(s, client, 0);
        uint64_t x = seed * 7919, held = sim_held(s, 2), all = sim_deliverable(s, 0);
        for (int i = 0; i < 20000; i++) {
            sim_run(s, sim_now(s) + 500 * US);
            x = x * 6364136223846793005u + 1442695040888963407u;
            uint64_t value = x >> 60 < 4 ? 0 : x >> 60 < 8 ? UINT64_MAX : x;
            switch (x >> 33 & 7) {
            case 0:
                atomic_store(&slot->state, (uint32_t)value);
                break;
            case 1:
                atomic_store(&slot->state, SLOT_HELD | (x >> 40 & 1));
                break;
            case 2:
                atomic_store(&slot->idle_since_ns, value);
                break;
            case 3:
                atomic_store(&slot->submitted, value);
                break;
            case 4:
                atomic_store(&slot->completed, value);
                break;
            case 5:
                atomic_store(&slot->predicted_end_ns, value);
                break;
            case 6:
                atomic_store(&slot->deadline_ns, value);
                break;
            case 7:
                atomic_store(&slot->grants, (uint32_t)value);
                break;
            }
        }
        double got =
            (double)(sim_held(s, 2) - held) * 1000 / (double)(sim_deliverable(s, 0) - all);
        check_range("beside one that scribbles in its page", got, 450, 1000);
        ledger_check(sim_ledger(s));
        sim_destroy(s);
    }
}

static void test_suspect_loses_its_turn(void **state)
{
    uint32_t client;
    struct sim *s = pair(6, &async, &client, &async);
    sim_run(s, sim_now(s) + S);
    run_until_holds(s, 1);
    sim_suspect(s, client);
    assert_false(has_flag(s, 1, SLICE_HOLDS));
    check_range("the other has it all", share_over(s, 2, S), 999, 1000);
    sim_destroy(s);
}

static void test_dropped_lease_gets_no_turn(void **state)
{
    uint32_t client;
    struct sim *s = pair(7, &async, &client, &async);
    sim_run(s, sim_now(s) + S);
    run_until_holds(s, 1);
    ledger_drop_lease(sim_ledger(s), 1, 1, sim_now(s));
    sim_run(s, sim_now(s) + 5 * MS);
    check_range("the other has it all", share_over(s, 2, S), 999, 1000);
    ledger_check(sim_ledger(s));
    sim_destroy(s);
}

static void test_300_processes_of_one_lease(void **state)
{
    struct sim *s = sim_create(8);
    struct sim_program small = { .kernel_ns = 300 * US, .host_ns = 500 * US, .batch = 1 };
    sim_device(s, 0, false);
    sim_lease(s, 1, PROTO_BURST, 300, 1000, 0);
    sim_lease(s, 2, PROTO_BURST, 700, 1000, 0);
    sim_process(s, 2, &async);
    for (int i = 0; i < 300; i++)
        sim_process(s, 1, &small);
    sim_run(s, sim_now(s) + 2 * S);
    check_range("300 processes of a lease of 300", share_over(s, 1, 20 * S), 295, 305);
    for (uint32_t i = 1; i <= 300; i++)
        if (atomic_load(&sim_slot(s, i, 0)->completed) < 20)
            fail_msg("process %u of 300 completed %lu kernels", i,
                     (unsigned long)atomic_load(&sim_slot(s, i, 0)->completed));
    sim_destroy(s);
}

static void test_2000_clients(void **state)
{
    struct sim *s = sim_create(9);
    struct sim_program few = {
        .kernel_ns = 100 * US, .host_ns = 50 * MS, .batch = 1, .count = 5
    };
    sim_device(s, 0, false);
    for (uint32_t i = 1; i <= 10; i++)
        sim_lease(s, i, PROTO_BURST, 100, 1000, 0);
    for (uint32_t i = 0; i < 2000; i++)
        sim_process(s, i % 10 + 1, &few);
    sim_run(s, sim_now(s) + 20 * S);
    uint64_t done = 0;
    for (uint32_t i = 1; i <= 10; i++)
        done += sim_completed(s, i);
    assert_int_equal(done, 10000);
    sim_destroy(s);
}

/* ---- any message in any order --------------------------------------------------- */

#define CLIENTS 40

static uint64_t rnd(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

static void set_random_lease(struct ledger *l, uint64_t *x, uint64_t epoch, uint64_t now)
{
    struct ledger_lease lease = { .number = rnd(x) % 8 + 1,
                                  .epoch = epoch,
                                  .mode = (enum proto_mode)(rnd(x) % 3),
                                  .priority = rnd(x) % 101,
                                  .max_kernel_ns = rnd(x) % S };
    lease.slice_count = lease.number < 3 ? 2 : 1;
    for (uint32_t i = 0; i < lease.slice_count; i++) {
        uint32_t request = rnd(x) % 200 + 1;
        lease.slice[i] = (struct proto_slice){ (lease.number + i * 2) % 5, request,
                                               request + rnd(x) % (1001 - request), 0, 1 };
    }
    ledger_set_lease(l, &lease, NULL, now);
}

static void test_soak_of_turns(void **state)
{
    struct ledger *l = ledger_init(calloc(1, ledger_size()));
    struct proto_page *page[CLIENTS] = { NULL };
    uint64_t x = 4711, now = S, next = 0, turns = 0;
    for (uint32_t i = 0; i < 5; i++) {
        struct ledger_device d = { 1 << 20, 0, i == 4 };
        ledger_set_device(l, i, &d, now);
    }
    for (int step = 0; step < 150000; step++) {
        uint32_t c = rnd(&x) % CLIENTS, slot = rnd(&x) % 2;
        now += rnd(&x) % 8 ? rnd(&x) % (200 * US) : rnd(&x) % (30 * MS);
        uint64_t what = rnd(&x) % 1000;
        if (what < 5)
            set_random_lease(l, &x, step, now);
        else if (what < 6)
            ledger_drop_lease(l, rnd(&x) % 8 + 1, step, now);
        else if (what < 20 && page[c]) {
            ledger_leave(l, c, now);
            free(page[c]);
            page[c] = NULL;
        } else if (what < 30)
            ledger_suspect(l, c, now);
        else if (what < 80 && !ledger_client_lease(l, c)) {
            struct proto_page *p = aligned_alloc(64, (sizeof(*p) + 63) / 64 * 64);
            memset(p, 0, sizeof(*p));
            if (ledger_join(l, c, rnd(&x) % 8 + 1, p, now))
                free(p);
            else
                page[c] = p;
        } else if (what < 500)
            ledger_want(l, c, slot, now);
        else if (what < 600)
            ledger_release(l, c, slot, rnd(&x) % 2, now);
        else if (page[c]) { /* a front at work, or a liar */
            struct proto_slot *p = &page[c]->slot[slot];
            uint32_t held = atomic_load(&p->state);
            atomic_fetch_add(&p->submitted, rnd(&x) % 2);
            if (rnd(&x) % 2)
                atomic_store(&p->completed, atomic_load(&p->submitted));
            if (held & SLOT_HELD)
                atomic_store(&p->state,
                             rnd(&x) % 3 ? SLOT_HELD | (rnd(&x) % 3) : SLOT_NONE);
            if (rnd(&x) % 50 == 0)
                atomic_store(&p->state, (uint32_t)rnd(&x));
            atomic_store(&p->idle_since_ns, rnd(&x) % 2 ? now : rnd(&x));
        }
        if (rnd(&x) % 4 || now >= next) {
            next = ledger_run(l, now);
            assert_true(next >= now);
            while (ledger_take_wake(l) != UINT32_MAX)
                turns++;
        }
        ledger_check(l);
    }
    assert_true(turns > 10000);
    for (uint32_t c = 0; c < CLIENTS; c++) {
        ledger_leave(l, c, now);
        free(page[c]);
    }
    ledger_run(l, now);
    ledger_check(l);
    for (uint64_t i = 0; i < 5; i++) {
        struct proto_ctl m = { 0 };
        assert_int_equal(ledger_stat_device(l, i, &m, now), 0);
        assert_int_equal(m.device_stat.holder, 0);
        assert_int_equal(m.device_stat.waiting, 0);
    }
    free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stopped_process_that_holds_a_turn),
        cmocka_unit_test(test_stopped_for_a_night),
        cmocka_unit_test(test_stopped_process_that_is_idle),
        cmocka_unit_test(test_kernel_that_never_ends),
        cmocka_unit_test(test_long_kernel_alone),
        cmocka_unit_test(test_liar),
        cmocka_unit_test(test_scribbled_page),
        cmocka_unit_test(test_suspect_loses_its_turn),
        cmocka_unit_test(test_dropped_lease_gets_no_turn),
        cmocka_unit_test(test_300_processes_of_one_lease),
        cmocka_unit_test(test_2000_clients),
        cmocka_unit_test(test_soak_of_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
