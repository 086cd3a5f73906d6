/*
 * Work that can wait, on hours of differing carbon intensity: when to run it, or where.
 *
 * A pool of devices has in every hour some work that runs at once and some that may wait up
 * to `wait_h` hours, in pieces of one device for one hour.  Every piece runs in time, in no
 * hour is more run than there are devices.  What an hour costs is counted by the grid's average
 * intensity: devices x idle_w, and dynamic_w for each that works.
 *
 * This is a rule of the simulator: the scheduler core knows no carbon.
 */
#ifndef SIM_SHIFT_H
#define SIM_SHIFT_H

#include <stdint.h>

#include "core/err.h"
#include "sim/carbon.h"

#define SHIFT_MAX_WAIT_H 168

struct shift_load {
    uint32_t devices;
    uint32_t fixed, movable; /* pieces that come every hour; together at most `devices` */
    uint32_t wait_h;         /* 1 … SHIFT_MAX_WAIT_H */
    uint32_t idle_w, dynamic_w;
};

/* Grams in all.  Hours that were not measured are taken as the hour before. */
struct shift_result {
    double at_once_g, ours_g, oracle_g;
};

/*
 * Ours knows the hour at hand, and forecasts: for each hour of the day a mean of the earlier
 * days, of which each counts 0.8 of the one after it, and by how much the hour at hand
 * is off, which fades by 0.95 an hour.  Each hour it plans all that waits into the hours with the
 * least forecast, and runs what falls into the first.  The oracle knows all hours and all that
 * will come; nothing can be better.
 */
int shift_in_time(const struct carbon *grid, const struct shift_load *load,
                  struct shift_result *out, struct sl_err *err);

/*
 * `count` such pools on as many grids, the same hours of each; what is movable may run in any of
 * them but does not wait.  Ours goes by the intensities of the hour before, the oracle by the
 * hour's own.  -SL_INVALID: not the same hours.
 */
int shift_in_place(const struct carbon *grids, uint32_t count,
                   const struct shift_load *load, struct shift_result *out,
                   struct sl_err *err);

/* The parts. */

/* run[i], i < hours: how many of the pieces that wait to run in each of the coming hours, the
 * least cost first.  due[i]: pieces that must run in hour i or before. */
void shift_plan(const double *cost, uint32_t hours, const uint32_t *due, uint32_t room,
                uint32_t *run);
/* run[i]: the least cost for `movable` pieces that come in each hour and wait up to wait_h. */
int shift_oracle(const double *cost, uint32_t hours, const struct shift_load *load,
                 uint32_t *run, struct sl_err *err);

#endif
