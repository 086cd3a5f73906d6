/* Work that can wait: plans by hand, the oracle against every possibility, grids made up. */
#include "../rows.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/shift.h"

#define DAYS 20

static struct sl_err err;

static void plans(void **state)
{
    static const struct {
        const char *label;
        double cost[4];
        uint32_t due[4], room;
        const char *want;
    } rows[] = {
        { "the cheapest hour in time", { 5, 3, 1, 9 }, { 0, 0, 0, 4 }, 9, "0 0 4 0 " },
        { "no more than there is room", { 5, 3, 1, 9 }, { 0, 0, 0, 4 }, 3, "0 1 3 0 " },
        { "what is due is not kept back", { 5, 3, 1, 0 }, { 2, 0, 1, 1 }, 9, "2 0 1 1 " },
        { "the first of equal hours", { 3, 3, 3, 3 }, { 0, 0, 0, 4 }, 9, "4 0 0 0 " },
        { "nothing to do", { 3, 3, 3, 3 }, { 0, 0, 0, 0 }, 9, "0 0 0 0 " },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint32_t run[4];
        char have[40] = "";
        shift_plan(rows[i].cost, 4, rows[i].due, rows[i].room, run);
        for (unsigned h = 0; h < 4; h++)
            snprintf(have + strlen(have), sizeof have - strlen(have), "%u ", run[h]);
        ROW_STR(rows[i].label, have, rows[i].want);
    }
}

/* Can these hours' work be such pieces, all in time?  The first that came first. */
static bool is_possible(const uint32_t *run, uint32_t hours, const struct shift_load *l)
{
    uint32_t waiting[16] = { 0 }, from = 0;
    for (uint32_t h = 0; h < hours; h++) {
        waiting[h] = l->movable;
        for (uint32_t left = run[h]; left; left--) {
            while (from <= h && !waiting[from])
                from++;
            if (from > h)
                return false;
            waiting[from]--;
        }
        if (h >= l->wait_h && waiting[h - l->wait_h])
            return false;
    }
    for (uint32_t h = 0; h < hours; h++)
        if (waiting[h])
            return false;
    return true;
}

static double cost_of(const double *cost, const uint32_t *run, uint32_t hours)
{
    double sum = 0;
    for (uint32_t h = 0; h < hours; h++)
        sum += cost[h] * run[h];
    return sum;
}

/* The least cost of all possibilities. */
static double cheapest(const double *cost, uint32_t hours, const struct shift_load *l,
                       uint32_t *run, uint32_t at)
{
    double best = INFINITY;
    if (at == hours)
        return is_possible(run, hours, l) ? cost_of(cost, run, hours) : INFINITY;
    for (run[at] = 0; run[at] <= l->devices - l->fixed; run[at]++)
        best = fmin(best, cheapest(cost, hours, l, run, at + 1));
    return best;
}

static void nothing_is_better_than_the_oracle(void **state)
{
    uint32_t seed = 3, run[6], other[6];
    for (int round = 0; round < 100; round++) {
        double cost[6];
        struct shift_load l = { .devices = 4,
                                .fixed = (uint32_t)round % 2,
                                .movable = 1 + (uint32_t)round % 3,
                                .wait_h = 1 + (uint32_t)round % 4 };
        for (unsigned h = 0; h < 6; h++) {
            seed = seed * 1664525u + 1013904223u;
            cost[h] = seed >> 28;
        }
        assert_int_equal(shift_oracle(cost, 6, &l, run, &err), 0);
        ROW("all in time", is_possible(run, 6, &l));
        ROW("at the least cost", cost_of(cost, run, 6) == cheapest(cost, 6, &l, other, 0));
    }
}

/* g CO2 a kWh: clean at night. */
static void make_grid(struct carbon *out, unsigned first_clean_h)
{
    *out = (struct carbon){ .hours = DAYS * 24 };
    out->micro_g_per_kwh = calloc(out->hours, sizeof *out->micro_g_per_kwh);
    assert_non_null(out->micro_g_per_kwh);
    for (uint32_t i = 0; i < out->hours; i++)
        out->micro_g_per_kwh[i] = (i + 24 - first_clean_h) % 24 < 6 ? 100000000 : 500000000;
}

static const struct shift_load load = {
    .devices = 100, .fixed = 10, .movable = 10, .wait_h = 24, .idle_w = 0, .dynamic_w = 100
};

static void what_repeats_is_known_after_a_day(void **state)
{
    struct carbon grid;
    struct shift_result r;
    make_grid(&grid, 18);
    assert_int_equal(shift_in_time(&grid, &load, &r, &err), 0);
    double part = (r.at_once_g - r.ours_g) / (r.at_once_g - r.oracle_g);
    ROW("nearly all that is possible", part > 0.9 && part <= 1);
    /* 20 pieces of 100 Wh an hour, 18 h at 500 and 6 at 100 g a kWh */
    ROW("at once, by hand", fabs(r.at_once_g - DAYS * 2.0 * (18 * 500 + 6 * 100)) < 1e-6);
    grid.micro_g_per_kwh[0] = 500000000;
    grid.micro_g_per_kwh[5] = CARBON_UNKNOWN;
    assert_int_equal(shift_in_time(&grid, &load, &r, &err), 0);
    ROW("an unknown hour is as the one before",
        fabs(r.at_once_g - DAYS * 2.0 * (18 * 500 + 6 * 100)) < 1e-6);
    carbon_finish(&grid);
}

static void places(void **state)
{
    struct carbon grids[2];
    struct shift_result r;
    make_grid(&grids[0], 0);
    make_grid(&grids[1], 12);
    assert_int_equal(shift_in_place(grids, 2, &load, &r, &err), 0);
    /* each hour 10 fixed pieces in both, 20 that move: 12 h a day one is clean */
    double fixed = 2 * DAYS * 1.0 * (18 * 500 + 6 * 100);
    ROW("the oracle, by hand",
        fabs(r.oracle_g - fixed - DAYS * 2.0 * (12 * 500 + 12 * 100)) < 1e-6);
    /* an hour late at four changes a day: two of them in favour of the dirty one */
    ROW("ours knows an hour late", r.ours_g > r.oracle_g && r.ours_g < r.at_once_g);
    grids[1].begin_s = 3600;
    ROW("not the same hours", shift_in_place(grids, 2, &load, &r, &err) == -SL_INVALID);
    carbon_finish(&grids[0]);
    carbon_finish(&grids[1]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(plans),
    cmocka_unit_test(nothing_is_better_than_the_oracle),
    cmocka_unit_test(what_repeats_is_known_after_a_day),
    cmocka_unit_test(places),
};

ROWS_MAIN(tests)
