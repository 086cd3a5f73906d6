/*
 * Bytes: every row leaves the ledger whole, never over, never negative.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/err.h"
#include "core/macros.h"
#include "ledger/ledger.h"

#define MIB (1ull << 20)

static struct ledger *fresh(void)
{
    struct ledger *l = ledger_init(calloc(1, ledger_size()));
    struct ledger_device d = { 1024 * MIB, 24 * MIB, false };
    assert_int_equal(ledger_set_device(l, 0, &d, 1), 0);
    return l;
}

static int grant(struct ledger *l, uint64_t number, uint64_t epoch, uint64_t request,
                 uint64_t limit, uint64_t *over)
{
    struct ledger_lease lease = { .number = number,
                                  .epoch = epoch,
                                  .mode = PROTO_BURST,
                                  .slice_count = 1,
                                  .slice = { { 0, 100, 1000, request, limit } } };
    uint64_t over_bytes[PROTO_MAX_SLOTS] = { 0 };
    int rc = ledger_set_lease(l, &lease, over_bytes, 1);
    if (over)
        *over = over_bytes[0];
    return rc;
}

static struct proto_page *join(struct ledger *l, uint32_t client, uint64_t lease)
{
    struct proto_page *page = aligned_alloc(64, (sizeof(*page) + 63) / 64 * 64);
    memset(page, 0, sizeof(*page));
    assert_int_equal(ledger_join(l, client, lease, page, 1), 0);
    return page;
}

static void test_sizes(void **state)
{
    static const struct {
        const char *label;
        uint64_t bytes;
        int want;
        uint64_t free_bytes;
    } rows[] = {
        { "nothing is not a reservation", 0, -SL_INVALID, 0 },
        { "one byte", 1, 0, 0 },
        { "exactly the limit", 100 * MIB, 0, 0 },
        { "one byte over the limit", 100 * MIB + 1, -SL_NO_CAPACITY, 100 * MIB },
        { "the largest number", UINT64_MAX, -SL_NO_CAPACITY, 100 * MIB },
        { "would overflow when added", UINT64_MAX - 50 * MIB, -SL_NO_CAPACITY, 100 * MIB },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ledger *l = fresh();
        grant(l, 1, 1, 100 * MIB, 100 * MIB, NULL);
        struct proto_page *page = join(l, 0, 1);
        uint64_t name = 0, free_bytes = 0;
        int rc = ledger_reserve(l, 0, 0, rows[i].bytes, &name, &free_bytes);
        ledger_check(l);
        if (rc != rows[i].want || free_bytes != rows[i].free_bytes ||
            (rc == 0) != (name != 0))
            fail_msg("%s: rc %d, free %lu", rows[i].label, rc, (unsigned long)free_bytes);
        free(page);
        free(l);
    }
}

static void test_life_of_a_reservation(void **state)
{
    struct ledger *l = fresh();
    grant(l, 1, 1, 100 * MIB, 100 * MIB, NULL);
    struct proto_page *a = join(l, 0, 1), *b = join(l, 1, 1);
    uint64_t r1 = 0, r2 = 0, free_bytes = 0;

    assert_int_equal(ledger_reserve(l, 0, 0, 60 * MIB, &r1, NULL), 0);
    assert_int_equal(ledger_reserve(l, 1, 0, 60 * MIB, &r2, &free_bytes), -SL_NO_CAPACITY);
    assert_int_equal(free_bytes, 40 * MIB);
    assert_int_equal(ledger_commit(l, 1, r1, 1), -SL_NOT_FOUND); /* not its own */
    assert_int_equal(ledger_commit(l, 0, r1, 50 * MIB), 0);      /* the rest returns */
    assert_int_equal(ledger_commit(l, 0, r1, 50 * MIB), -SL_NOT_FOUND);
    assert_int_equal(ledger_client_bytes(l, 0, 0), 50 * MIB);
    assert_int_equal(a->slot[0].mem_used_bytes, 50 * MIB);

    assert_int_equal(ledger_reserve(l, 1, 0, 50 * MIB, &r2, NULL), 0);
    assert_int_equal(ledger_abort(l, 1, r2), 0);
    assert_int_equal(ledger_abort(l, 1, r2), -SL_NOT_FOUND);
    assert_int_equal(ledger_reserve(l, 1, 0, 10 * MIB, &r2, NULL), 0);
    assert_int_equal(ledger_commit(l, 1, r2, 20 * MIB),
                     -SL_INVALID); /* more than reserved */
    assert_int_equal(ledger_client_bytes(l, 1, 0), 10 * MIB);

    assert_int_equal(ledger_free(l, 0, 0, 30 * MIB), 0);
    assert_int_equal(ledger_free(l, 0, 0, 30 * MIB), -SL_INVALID); /* freed twice: cut */
    assert_int_equal(ledger_client_bytes(l, 0, 0), 0);
    assert_int_equal(ledger_free(l, 0, 0, UINT64_MAX), -SL_INVALID);
    assert_int_equal(ledger_client_bytes(l, 1, 0), 10 * MIB); /* the other's is untouched */
    ledger_check(l);
    free(a);
    free(b);
    free(l);
}

static void test_killed_between_reserve_and_commit(void **state)
{
    struct ledger *l = fresh();
    grant(l, 1, 1, 100 * MIB, 100 * MIB, NULL);
    struct proto_page *a = join(l, 0, 1), *b = join(l, 1, 1);
    uint64_t r1 = 0, r2 = 0;
    assert_int_equal(ledger_reserve(l, 0, 0, 100 * MIB, &r1, NULL), 0);
    assert_int_equal(ledger_reserve(l, 1, 0, 1, &r2, NULL), -SL_NO_CAPACITY);
    ledger_leave(l, 0, 2);
    ledger_check(l);
    assert_int_equal(ledger_commit(l, 0, r1, 1), -SL_NOT_FOUND);
    assert_int_equal(ledger_reserve(l, 1, 0, 100 * MIB, &r2, NULL), 0);
    assert_int_equal(ledger_commit(l, 1, r1, 1),
                     -SL_NOT_FOUND); /* an old name of the record */
    ledger_check(l);
    free(a);
    free(b);
    free(l);
}

static void test_admission(void **state)
{
    static const struct {
        const char *label;
        uint64_t request, limit;
        int want;
    } rows[] = {
        /* beside a lease of 480 MiB on a device of 1,000 */
        { "the rest fits exactly", 520, 520, 0 },
        { "one MiB more does not", 521, 521, -SL_NO_CAPACITY },
        { "limits may exceed the device", 520, 1000, 0 },
        { "a request above its limit", 20, 10, -SL_INVALID },
        { "an absurd request", UINT64_MAX / MIB, UINT64_MAX / MIB, -SL_NO_CAPACITY },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ledger *l = fresh();
        assert_int_equal(grant(l, 1, 1, 480 * MIB, 480 * MIB, NULL), 0);
        int rc = grant(l, 2, 1, rows[i].request * MIB, rows[i].limit * MIB, NULL);
        ledger_check(l);
        if (rc != rows[i].want)
            fail_msg("%s: rc %d", rows[i].label, rc);
        free(l);
    }
}

static void test_borrowed_memory_never_takes_a_promise(void **state)
{
    struct ledger *l = fresh();
    grant(l, 1, 1, 400 * MIB, 400 * MIB, NULL);
    grant(l, 2, 1, 100 * MIB, 1000 * MIB, NULL);
    struct proto_page *a = join(l, 0, 1), *b = join(l, 1, 2);
    uint64_t name, free_bytes = 0;
    assert_int_equal(ledger_reserve(l, 1, 0, 601 * MIB, &name, &free_bytes),
                     -SL_NO_CAPACITY);
    assert_int_equal(free_bytes, 600 * MIB);
    assert_int_equal(ledger_reserve(l, 1, 0, 600 * MIB, &name, NULL), 0);
    assert_int_equal(ledger_reserve(l, 0, 0, 400 * MIB, &name, NULL), 0);
    ledger_check(l);
    free(a);
    free(b);
    free(l);
}

static void test_resize(void **state)
{
    struct ledger *l = fresh();
    uint64_t name, over = 0, free_bytes = 0;
    grant(l, 1, 5, 100 * MIB, 100 * MIB, NULL);
    struct proto_page *page = join(l, 0, 1);
    assert_int_equal(ledger_reserve(l, 0, 0, 80 * MIB, &name, NULL), 0);
    assert_int_equal(ledger_commit(l, 0, name, 80 * MIB), 0);

    assert_int_equal(grant(l, 1, 4, 10 * MIB, 10 * MIB, NULL), -SL_STALE);
    assert_int_equal(grant(l, 1, 6, 50 * MIB, 50 * MIB, &over), 0);
    assert_int_equal(over, 30 * MIB);
    ledger_check(l);
    assert_int_equal(ledger_reserve(l, 0, 0, 1, &name, &free_bytes), -SL_NO_CAPACITY);
    assert_int_equal(free_bytes, 0);
    assert_int_equal(ledger_free(l, 0, 0, 40 * MIB), 0);
    assert_int_equal(ledger_reserve(l, 0, 0, 10 * MIB, &name, NULL), 0);
    ledger_check(l);
    assert_int_equal(grant(l, 1, 7, 1001 * MIB, 1001 * MIB, &over), -SL_NO_CAPACITY);
    assert_int_equal(page->slot[0].mem_limit_bytes, 50 * MIB); /* nothing changed */
    assert_int_equal(grant(l, 1, 7, 1000 * MIB, 1000 * MIB, &over), 0);
    assert_int_equal(over, 0);
    assert_int_equal(page->slot[0].mem_limit_bytes, 1000 * MIB);
    free(page);
    free(l);
}

static void test_suspect_recovered_and_dropped(void **state)
{
    struct ledger *l = fresh();
    uint64_t name, record[PROTO_MAX_SLOTS] = { 70 * MIB };
    grant(l, 1, 1, 100 * MIB, 100 * MIB, NULL);
    assert_int_equal(ledger_recover(l, 0, 1, record), 0);
    ledger_check(l);
    struct proto_page *b = join(l, 1, 1);
    assert_int_equal(ledger_reserve(l, 1, 0, 31 * MIB, &name, NULL), -SL_NO_CAPACITY);
    struct proto_page *a = join(l, 0, 1); /* it came back */
    assert_int_equal(ledger_client_bytes(l, 0, 0), 70 * MIB);

    ledger_suspect(l, 0, 2);
    assert_int_equal(ledger_reserve(l, 0, 0, 1, &name, NULL), -SL_NO_CAPACITY);
    assert_int_equal(ledger_client_bytes(l, 0, 0), 70 * MIB);
    assert_int_equal(ledger_drop_lease(l, 1, 1, 3), 0);
    assert_int_equal(ledger_reserve(l, 1, 0, 1, &name, NULL), -SL_NO_CAPACITY);
    ledger_leave(l, 1, 4);
    assert_int_equal(ledger_lease_epoch(l, 1), 1); /* its bytes are still held */
    ledger_leave(l, 0, 5);
    assert_int_equal(ledger_lease_epoch(l, 1), 0);
    ledger_check(l);
    free(a);
    free(b);
    free(l);
}

/* What a process counted stays the lease's when it comes back with a new page, and when it
 * ends. */
static void test_counters_outlive_a_page(void **state)
{
    struct ledger *l = fresh();
    struct proto_ctl m = { 0 };
    grant(l, 1, 1, 100 * MIB, 100 * MIB, NULL);
    struct proto_page *first = join(l, 0, 1);
    atomic_store(&first->slot[0].kernels, 5);
    atomic_store(&first->slot[0].ungated, 2);
    ledger_suspect(l, 0, 2);
    struct proto_page *second = join(l, 0, 1);
    atomic_store(&second->slot[0].kernels, 3);
    atomic_store(&second->slot[0].copies, 1);
    assert_int_equal(ledger_stat_lease(l, 1, &m, 3), 0);
    assert_int_equal(m.lease_stat.slice[0].kernels, 8);
    assert_int_equal(m.lease_stat.slice[0].copies, 1);
    assert_int_equal(m.lease_stat.slice[0].ungated, 2);
    ledger_leave(l, 0, 4);
    assert_int_equal(ledger_stat_lease(l, 1, &m, 5), 0);
    assert_int_equal(m.lease_stat.slice[0].kernels, 8);
    free(first);
    free(second);
    free(l);
}

static uint64_t rnd(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

/* Two processes, the last byte, 10,000 times, in any order of their steps. */
static void test_races_for_the_last_byte(void **state)
{
    struct ledger *l = fresh();
    uint64_t seed = 42, won[2] = { 0 }, name[2];
    grant(l, 1, 1, 100, 100, NULL);
    struct proto_page *page[2] = { join(l, 0, 1), join(l, 1, 1) };
    assert_int_equal(ledger_reserve(l, 0, 0, 99, &name[0], NULL), 0);
    assert_int_equal(ledger_commit(l, 0, name[0], 99), 0);

    for (int race = 0; race < 10000; race++) {
        int holder = -1, step[2] = { 0 };
        while (step[0] < 3 || step[1] < 3) {
            uint32_t c = rnd(&seed) % 2;
            if (step[c] == 0) {
                int rc = ledger_reserve(l, c, 0, 1, &name[c], NULL);
                assert_int_equal(rc, holder >= 0 ? -SL_NO_CAPACITY : 0);
                holder = rc == 0 ? (int)c : holder;
                won[c] += rc == 0;
                step[c] = rc == 0 ? 1 : 3;
            } else if (step[c] == 1) {
                assert_int_equal(ledger_commit(l, c, name[c], rnd(&seed) % 4 ? 1 : 0), 0);
                step[c] = 2;
            } else if (step[c] == 2) {
                ledger_free(l, c, 0, ledger_client_bytes(l, c, 0) - (c == 0 ? 99 : 0));
                step[c] = 3;
                holder = -1;
            }
            assert_true(page[c]->slot[0].mem_used_bytes <= 100);
            if (step[c] == 2 && ledger_client_bytes(l, c, 0) == (c == 0 ? 99 : 0))
                holder = -1; /* committed nothing: the byte is free again */
            ledger_check(l);
        }
    }
    assert_true(won[0] > 3000 && won[1] > 3000);
    free(page[0]);
    free(page[1]);
    free(l);
}

/* ---- random steps against a model ------------------------------------------- */

#define CLIENTS 24
#define OPEN    16
#define LEASES  4

struct model {
    struct ledger *l;
    uint64_t seed, limit[LEASES + 1], epoch[LEASES + 1];
    struct {
        uint64_t lease, committed, name[OPEN], bytes[OPEN];
        bool suspect;
        struct proto_page *page;
    } client[CLIENTS];
};

static uint64_t model_used(const struct model *m, uint64_t lease)
{
    uint64_t used = 0;
    for (int i = 0; i < CLIENTS; i++) {
        if (m->client[i].lease != lease)
            continue;
        used += m->client[i].committed;
        for (int j = 0; j < OPEN; j++)
            used += m->client[i].bytes[j];
    }
    return used;
}

static void model_reserve(struct model *m, int c)
{
    uint64_t lease = m->client[c].lease, used = model_used(m, lease);
    uint64_t bytes =
        rnd(&m->seed) % 8 ? rnd(&m->seed) % (40 * MIB) + 1 : UINT64_MAX - rnd(&m->seed) % 3;
    int j = 0;
    while (j < OPEN && m->client[c].bytes[j])
        j++;
    if (j == OPEN)
        return;
    uint64_t free_bytes = 0, room = used < m->limit[lease] ? m->limit[lease] - used : 0;
    int rc = ledger_reserve(m->l, c, 0, bytes, &m->client[c].name[j], &free_bytes);
    bool may = !m->client[c].suspect && bytes <= room;
    assert_int_equal(rc, may ? 0 : -SL_NO_CAPACITY);
    if (rc == 0)
        m->client[c].bytes[j] = bytes;
    else
        assert_int_equal(free_bytes, m->client[c].suspect ? 0 : room);
}

static void model_finish(struct model *m, int c)
{
    int j = rnd(&m->seed) % OPEN;
    uint64_t reserved = m->client[c].bytes[j];
    if (!reserved)
        return;
    uint64_t take = rnd(&m->seed) % 3 ? reserved : rnd(&m->seed) % (reserved + 5);
    if (rnd(&m->seed) % 4 == 0) {
        assert_int_equal(ledger_abort(m->l, c, m->client[c].name[j]), 0);
        take = 0;
    } else {
        assert_int_equal(ledger_commit(m->l, c, m->client[c].name[j], take),
                         take > reserved ? -SL_INVALID : 0);
    }
    m->client[c].committed += min_u64(take, reserved);
    m->client[c].bytes[j] = 0;
}

static void model_free(struct model *m, int c)
{
    uint64_t have = m->client[c].committed;
    uint64_t bytes = rnd(&m->seed) % 5 ? rnd(&m->seed) % (have + 1) : rnd(&m->seed);
    assert_int_equal(ledger_free(m->l, c, 0, bytes), bytes > have ? -SL_INVALID : 0);
    m->client[c].committed -= min_u64(bytes, have);
}

static void model_come_and_go(struct model *m, int c)
{
    if (!m->client[c].lease) {
        m->client[c].lease = 1 + rnd(&m->seed) % LEASES;
        m->client[c].page = join(m->l, c, m->client[c].lease);
    } else if (!m->client[c].suspect && rnd(&m->seed) % 2) {
        m->client[c].suspect = true;
        ledger_suspect(m->l, c, 1);
    } else {
        ledger_leave(m->l, c, 1);
        free(m->client[c].page);
        memset(&m->client[c], 0, sizeof(m->client[c]));
    }
}

static void model_resize(struct model *m)
{
    uint64_t lease = 1 + rnd(&m->seed) % LEASES, over = 0;
    uint64_t limit = (rnd(&m->seed) % 250 + 1) * MIB, used = model_used(m, lease);
    int rc = grant(m->l, lease, ++m->epoch[lease], limit, limit, &over);
    if (rc == -SL_NO_CAPACITY) /* others are still above what they were shrunk to */
        return;
    assert_int_equal(rc, 0);
    m->limit[lease] = limit;
    assert_int_equal(over, used > limit ? used - limit : 0);
}

static void test_soak_against_a_model(void **state)
{
    static struct model m;
    memset(&m, 0, sizeof(m));
    m.l = fresh();
    m.seed = 7;
    for (uint64_t i = 1; i <= LEASES; i++) {
        m.limit[i] = 250 * MIB;
        m.epoch[i] = 1;
        assert_int_equal(grant(m.l, i, 1, m.limit[i], m.limit[i], NULL), 0);
    }
    for (int step = 0; step < 120000; step++) {
        int c = rnd(&m.seed) % CLIENTS;
        uint32_t what = rnd(&m.seed) % 100;
        if (what < 1)
            model_resize(&m);
        else if (what < 4 || !m.client[c].lease)
            model_come_and_go(&m, c);
        else if (what < 45)
            model_reserve(&m, c);
        else if (what < 80)
            model_finish(&m, c);
        else
            model_free(&m, c);
        ledger_check(m.l);
        if (m.client[c].lease)
            assert_int_equal(ledger_client_bytes(m.l, c, 0), m.client[c].committed);
    }
    for (int c = 0; c < CLIENTS; c++) {
        ledger_leave(m.l, c, 2);
        free(m.client[c].page);
    }
    struct proto_ctl stat = { 0 };
    assert_int_equal(ledger_stat_device(m.l, 0, &stat, 3), 0);
    assert_int_equal(stat.device_stat.used_bytes, 0);
    ledger_check(m.l);
    free(m.l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_life_of_a_reservation),
        cmocka_unit_test(test_killed_between_reserve_and_commit),
        cmocka_unit_test(test_admission),
        cmocka_unit_test(test_borrowed_memory_never_takes_a_promise),
        cmocka_unit_test(test_resize),
        cmocka_unit_test(test_suspect_recovered_and_dropped),
        cmocka_unit_test(test_counters_outlive_a_page),
        cmocka_unit_test(test_races_for_the_last_byte),
        cmocka_unit_test(test_soak_against_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
