/* The Nth allocation fails: an event is refused or decided, and the state holds. */
#include "../rows.h"

#include "../nth_alloc.h"
#include "pools.h"
#include "sched/explain.h"

static bool failed, planned;
static uint64_t now_ms;

static void apply(struct sched *s, struct sched_event *e)
{
    const struct sched_decision *d;
    uint32_t count;
    e->now_ms = now_ms;
    int rc = sched_apply(s, e, &d, &count, NULL);
    failed |= rc == -SL_INTERNAL;
}

static void submit(struct sched *s, uint64_t id, uint32_t priority, uint32_t gang,
                   uint32_t permille)
{
    struct sched_option o = {
        .group_count = 1,
        .group = { { { .devices = 1, .permille = permille }, gang } },
        .within = gang > 1 ? POOL_ZONE : POOL_ANYWHERE,
        .within_required = gang == 2,
    };
    struct sched_event e = { .kind = SCHED_SUBMIT };
    e.submit = (struct sched_request){
        .id = id, .priority = priority, .preemptible = true, .option_count = 1, .option = &o
    };
    if (gang == 2)
        e.submit.ties =
            (struct sched_ties){ 1, 1, { 7 }, { { 7, POOL_NODE, true, true } } };
    apply(s, &e);
}

static void restore(struct sched *s, uint64_t id)
{
    struct sched_option o = { .group_count = 1,
                              .group = { { { .devices = 1, .permille = 1000 }, 1 } } };
    struct pool_place at = { .node = 2, .device_count = 1, .device = { 1 } };
    struct sched_event e = { .kind = SCHED_RESTORE };
    e.restore.request = (struct sched_request){ .id = id, .option_count = 1, .option = &o };
    e.restore.place_count = 1;
    e.restore.place = &at;
    apply(s, &e);
}

static void explain(struct sched *s, uint64_t id)
{
    struct sched_explanation x;
    AUTO_BUF struct buf text = { 0 };
    failed |= sched_explain(s, id, &x) == -SL_INTERNAL;
    if (!failed)
        sched_explanation_text(&text, &x);
    failed |= buf_failed(&text);
}

/* Grants, a gang, waiting, eviction, a nomination that is broken off, ends. */
static bool a_life(void)
{
    struct sched_policy policy;
    struct sched *s;
    struct sched_view view;
    uint64_t start_ms;
    enum sched_basis basis;
    failed = false;
    now_ms = 0;
    sched_policy_init(&policy);
    if (sched_create(&policy, &s, NULL))
        return false;
    for (int i = 0; i < 3; i++) {
        struct sched_event e = { .kind = SCHED_ADD_NODE, .node = node_of(2, 0, 16, 8) };
        e.node.rack = e.node.zone = 1 + (uint32_t)i / 2;
        apply(s, &e);
    }
    restore(s, 99);
    for (uint64_t id = 1; id <= 70; id++)
        submit(s, id, 10, 1, 150);
    submit(s, 100, 50, 3, 800);
    submit(s, 101, 60, 1, 1000);
    submit(s, 102, 70, 2, 900);
    explain(s, 70);
    explain(s, 101);
    submit(s, 103, 10, 1, 1000);
    now_ms = 15 * 60 * 1000; /* who waits has a planned place */
    for (int i = 0; i < 2; i++) {
        struct sched_event e = { .kind = SCHED_TICK };
        apply(s, &e);
    }
    planned |= !sched_find(s, 103, &view) && view.basis;
    submit(s, 104, 10, 1, 100);
    submit(s, 105, 10, 1, 1000);
    failed |= sched_estimate(s, 105, &start_ms, &basis) == -SL_INTERNAL;
    for (uint32_t node = 0; node < 2; node++) {
        struct sched_event e = { .kind = SCHED_OPEN_NODE };
        e.open.node = node;
        apply(s, &e);
        e.open.open = true;
        apply(s, &e);
    }
    for (uint64_t id = 1; id <= 105; id++) {
        struct sched_event e = { .kind = SCHED_END, .end = id };
        apply(s, &e);
    }
    if (!fail_at) /* the check itself allocates */
        sched_check(s);
    sched_destroy(s);
    return !failed;
}

static void the_nth_allocation_fails(void **state)
{
    static const struct nth_alloc_row row = { "a life in the scheduler core", a_life };
    nth_alloc_rows(&row, 1);
    ROW("somebody was given a planned place", planned);
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(the_nth_allocation_fails) };
ROWS_MAIN(tests)
