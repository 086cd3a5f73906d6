/* The cost table: which prediction wins, that it is bounded, what it learns. */
#include "front_test.h"

#include <stdlib.h>
#include <string.h>

#include "front/cost.h"

static struct cost_table *fresh(void)
{
    struct cost_table *t = aligned_alloc(64, sizeof *t);
    memset(t, 0, sizeof *t);
    return t;
}

static void prediction_order(void **state)
{
    struct cost_table *t = fresh();
    struct cost_entry *a = cost_find(t, 1, 100, 64);
    cost_learn(a, 5000);
    for (int i = 0; i < 2; i++) /* the first one may have compiled */
        cost_learn(cost_find(t, 1, 200, 128), 90000);

    static const struct {
        const char *label;
        uint64_t kernel, shape, items, want;
    } cases[] = {
        { "the exact shape wins", 1, 100, 64, 5000 },
        { "another shape of as many items takes theirs", 1, 101, 64, 5000 },
        { "another number of items takes the kernel's maximum", 1, 300, 256, 90000 },
        { "another kernel is unknown", 2, 100, 64, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t got =
            cost_predict(cost_find(t, cases[i].kernel, cases[i].shape, cases[i].items));
        if (got != cases[i].want)
            fail_msg("%s: %llu", cases[i].label, (unsigned long long)got);
    }
    assert_int_equal(cost_predict(NULL), 0);
    assert_ptr_equal(cost_find(t, 1, 100, 64), a);
    free(t);
}

static void bounded(void **state)
{
    struct cost_table *t = fresh();
    struct cost_entry *first = cost_find(t, 9, 0, 1);
    cost_learn(first, 7000);
    assert_ptr_not_equal(cost_find(t, 8, 1, 1), cost_find(t, 9, 0, 1));
    for (uint64_t shape = 1; shape < 3 * COST_ENTRIES; shape++) {
        struct cost_entry *e = cost_find(t, 9, shape, shape);
        assert_non_null(e);
        assert_true(e >= t->entry && e < t->entry + COST_ENTRIES);
    }
    assert_true(atomic_load(&t->used) <= COST_ENTRIES / 4 * 3);
    assert_ptr_equal(cost_find(t, 9, 0, 1), first);
    /* a shape without room shares the kernel's maximum */
    assert_int_equal(cost_predict(cost_find(t, 9, 1u << 30, 1u << 30)), 7000);
    assert_null(cost_find(t, 10, 1, 1));
    free(t);
}

static void learning(void **state)
{
    struct cost_table *t = fresh();
    struct cost_entry *e = cost_find(t, 1, 1, 1);
    cost_learn(e, 50000000);
    cost_learn(e, 20000);
    assert_int_equal(cost_predict(e), 20000); /* the first one compiled */
    for (int i = 0; i < 40; i++)
        cost_learn(e, 40000);
    assert_in_range(cost_predict(e), 39000, 40000);
    for (int i = 0; i < 40; i++)
        cost_learn(e, 1);
    assert_int_equal(cost_predict(e), COST_MIN_NS);
    cost_learn(e, UINT64_MAX);
    assert_true(cost_predict(e) <= COST_MAX_NS);
    free(t);
}

static void scaling(void **state)
{
    struct cost_table *t = fresh();
    struct cost_entry *e = cost_find(t, 1, 1, 1);
    cost_learn(e, 10000);
    for (int i = 0; i < 60; i++) /* batches of 20 take 400 us */
        cost_scale(e, 400000, 20 * cost_predict(e));
    assert_in_range(cost_predict(e), 19000, 21000);
    cost_doubt(e);
    assert_int_equal(atomic_load(&e->ns), 0); /* to be sensed again */
    free(t);
}

#define cmocka_row(label, function)          \
    {                                        \
        .name = label, .test_func = function \
    }

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest rows[] = {
        cmocka_row("the exact key wins, then work items, then the kernel's maximum",
                   prediction_order),
        cmocka_row("the table is bounded and keeps what it has", bounded),
        cmocka_row("a compilation in the first sample is forgotten, steps follow",
                   learning),
        cmocka_row("a batch's time is divided by its predicted parts", scaling),
    };
    return cmocka_run_group_tests(rows, NULL, NULL);
}
