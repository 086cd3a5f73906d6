/* Plans and forecasts for work that can wait; the best that could be done. */
#include "sim/shift.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/macros.h"

#define DAY_H    24
#define KEPT     0.8  /* of the older days, at each new one */
#define FADES    0.95 /* what is left of a deviation after an hour */
#define MICRO    1e6
#define WH_A_KWH 1e3

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* ---- intensities ---- */

static double *intensities(const struct carbon *grid)
{
    double *g = malloc(grid->hours * sizeof *g), last = 0;
    for (uint32_t i = 0; g && i < grid->hours; i++) {
        if (grid->micro_g_per_kwh[i] != CARBON_UNKNOWN)
            last = (double)grid->micro_g_per_kwh[i] / MICRO;
        g[i] = last;
    }
    return g;
}

static double grams(const double *g_per_kwh, const uint32_t *run, uint32_t hours,
                    const struct shift_load *load)
{
    double sum = 0;
    for (uint32_t i = 0; i < hours; i++) {
        double watts = (double)load->devices * load->idle_w +
                       (double)(load->fixed + run[i]) * load->dynamic_w;
        sum += watts / WH_A_KWH * g_per_kwh[i];
    }
    return sum;
}

/* ---- the least cost first ---- */

struct hour {
    double cost;
    uint32_t at;
};

static int by_cost(const void *left, const void *right)
{
    const struct hour *a = left, *b = right;
    if (a->cost != b->cost)
        return a->cost < b->cost ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

static void sort_hours(const double *cost, uint32_t hours, struct hour *sorted)
{
    for (uint32_t i = 0; i < hours; i++)
        sorted[i] = (struct hour){ cost[i], i };
    qsort(sorted, hours, sizeof *sorted, by_cost);
}

/* What runs in hour u or later is at most what may still run then (Hall's condition). */
void shift_plan(const double *cost, uint32_t hours, const uint32_t *due, uint32_t room,
                uint32_t *run)
{
    struct hour sorted[SHIFT_MAX_WAIT_H + 1];
    sort_hours(cost, hours, sorted);
    memset(run, 0, hours * sizeof *run);
    for (uint32_t k = 0; k < hours; k++) {
        uint32_t at = sorted[k].at, more = room, may = 0, does = 0;
        for (uint32_t u = hours; u-- > 0;) {
            may += due[u];
            does += run[u];
            if (u <= at)
                more = least(more, may - does);
        }
        run[at] = more;
    }
}

/*
 * The same where pieces come in each hour: what runs in hours a … b has come in a - wait_h … b.
 * With what has come, C, and what runs, R, before an hour, that is for all a <= b
 * R(b + 1) - R(a) <= C(b + 1) - C(a - wait_h).  The hours that can be filled so are a matroid, and
 * the cheapest first are its cheapest basis.
 */
static uint32_t most_more(const uint32_t *run, uint32_t hours,
                          const struct shift_load *load, uint32_t at)
{
    int64_t ran = 0, before = INT64_MIN, behind = INT64_MAX;
    for (uint32_t i = 0; i < hours; i++) {
        int64_t come = i > load->wait_h ? (int64_t)(i - load->wait_h) * load->movable : 0;
        if (i <= at && come - ran > before)
            before = come - ran;
        ran += run[i];
        int64_t left = (int64_t)(i + 1) * load->movable - ran;
        if (i >= at && left < behind)
            behind = left;
    }
    return (uint32_t)(behind - before);
}

int shift_oracle(const double *cost, uint32_t hours, const struct shift_load *load,
                 uint32_t *run, struct sl_err *err)
{
    AUTO_FREE struct hour *sorted = malloc(hours * sizeof *sorted);
    if (!sorted)
        return sl_fail(err, SL_INTERNAL, "out of memory");
    sort_hours(cost, hours, sorted);
    memset(run, 0, hours * sizeof *run);
    for (uint32_t k = 0; k < hours; k++)
        run[sorted[k].at] =
            least(load->devices - load->fixed, most_more(run, hours, load, sorted[k].at));
    return 0;
}

/* ---- with a forecast ---- */

struct forecast {
    double mean[DAY_H]; /* of the earlier days */
    uint32_t days;
};

static void learn_day(struct forecast *f, const double *day)
{
    for (uint32_t i = 0; i < DAY_H; i++)
        f->mean[i] = f->days ? KEPT * f->mean[i] + (1 - KEPT) * day[i] : day[i];
    f->days++;
}

/* Of the hour `now` and those behind it; on the first day all are as it is. */
static void forecast(const struct forecast *f, const double *g, uint32_t now,
                     uint32_t hours, double *out)
{
    double off = g[now] - (f->days ? f->mean[now % DAY_H] : 0);
    for (uint32_t i = 0; i < hours; i++) {
        out[i] = f->days ? f->mean[(now + i) % DAY_H] + off : g[now];
        off *= FADES;
    }
    out[0] = g[now];
}

/* Each hour anew: what came waits, what falls into this hour runs, the first due first. */
static void run_planned(const double *g, uint32_t hours, const struct shift_load *load,
                        uint32_t *run)
{
    struct forecast f = { 0 };
    uint32_t due[SHIFT_MAX_WAIT_H + 2] = { 0 }, plan[SHIFT_MAX_WAIT_H + 1];
    double cost[SHIFT_MAX_WAIT_H + 1];
    for (uint32_t now = 0; now < hours; now++) {
        uint32_t ahead = least(load->wait_h + 1, hours - now);
        if (now && now % DAY_H == 0)
            learn_day(&f, g + now - DAY_H);
        due[ahead - 1] += load->movable; /* at the end of all, earlier than it could wait */
        forecast(&f, g, now, ahead, cost);
        shift_plan(cost, ahead, due, load->devices - load->fixed, plan);
        run[now] = plan[0];
        for (uint32_t left = plan[0], i = 0; i < ahead; i++) {
            uint32_t done = least(left, due[i]);
            due[i] -= done;
            left -= done;
        }
        memmove(due, due + 1, (load->wait_h + 1) * sizeof *due);
    }
}

int shift_in_time(const struct carbon *grid, const struct shift_load *load,
                  struct shift_result *out, struct sl_err *err)
{
    AUTO_FREE double *g = intensities(grid);
    AUTO_FREE uint32_t *run = malloc(grid->hours * sizeof *run);
    if (!g || !run)
        return sl_fail(err, SL_INTERNAL, "out of memory");
    for (uint32_t i = 0; i < grid->hours; i++)
        run[i] = load->movable;
    out->at_once_g = grams(g, run, grid->hours, load);
    run_planned(g, grid->hours, load, run);
    out->ours_g = grams(g, run, grid->hours, load);
    int rc = shift_oracle(g, grid->hours, load, run, err);
    out->oracle_g = grams(g, run, grid->hours, load);
    return rc;
}

/* ---- places ---- */

/* Grams of one hour in all places, the least of `known` first. */
static double place_hour(const double *known, const double *real, uint32_t count,
                         const struct shift_load *load, struct hour *sorted)
{
    uint32_t left = count * load->movable, room = load->devices - load->fixed;
    double sum = 0;
    sort_hours(known, count, sorted);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t run = least(left, room);
        sum += grams(&real[sorted[i].at], &run, 1, load);
        left -= run;
    }
    return sum;
}

static int same_hours(const struct carbon *grids, uint32_t count, struct sl_err *err)
{
    for (uint32_t i = 1; i < count; i++)
        if (grids[i].begin_s != grids[0].begin_s || grids[i].hours != grids[0].hours)
            return sl_fail(err, SL_INVALID, "the grids are not of the same hours");
    return 0;
}

int shift_in_place(const struct carbon *grids, uint32_t count,
                   const struct shift_load *load, struct shift_result *out,
                   struct sl_err *err)
{
    AUTO_FREE double **g = calloc(count, sizeof *g);
    AUTO_FREE struct hour *sorted = malloc(count * sizeof *sorted);
    AUTO_FREE double *before = calloc(count, sizeof *before);
    AUTO_FREE double *now = calloc(count, sizeof *now);
    int rc = g && sorted && before && now ? same_hours(grids, count, err)
                                          : sl_fail(err, SL_INTERNAL, "out of memory");
    for (uint32_t i = 0; i < count && rc == 0; i++)
        if (!(g[i] = intensities(&grids[i])))
            rc = sl_fail(err, SL_INTERNAL, "out of memory");
    *out = (struct shift_result){ 0 };
    for (uint32_t h = 0; rc == 0 && h < grids[0].hours; h++) {
        for (uint32_t i = 0; i < count; i++) {
            now[i] = g[i][h];
            before[i] = g[i][h ? h - 1 : 0];
            out->at_once_g += grams(&now[i], &load->movable, 1, load);
        }
        out->ours_g += place_hour(before, now, count, load, sorted);
        out->oracle_g += place_hour(now, now, count, load, sorted);
    }
    for (uint32_t i = 0; g && i < count; i++)
        free(g[i]);
    return rc;
}
