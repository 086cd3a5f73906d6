/*
 * What jobs ran before, to predict how long one like them will.
 *
 * A prediction is the mean of the last two ended runs of the same owner, model and
 * number of devices; without one, the mean of all ended runs of the same owner; then of
 * everybody's; then an hour.  Only ended jobs are known.
 */
#ifndef SIM_JOBS_HISTORY_H
#define SIM_JOBS_HISTORY_H

#include "sim/trace.h"

#define HISTORY_RUNS 2

struct history_kind {
    uint32_t owner, model, devices;
    uint32_t runs; /* ended; 0: a free slot */
    uint64_t last_us[HISTORY_RUNS];
};

struct history_mean {
    uint64_t runs, sum_us;
};

struct history {
    struct history_kind *kinds;  /* open addressing */
    uint32_t slots;              /* a power of two, more than there are jobs */
    struct history_mean *owners; /* of each owner, and behind them of all */
    uint32_t owner_count;
};

/* 0, or -1 when out of memory. */
int history_init(struct history *h, const struct trace *trace);
void history_finish(struct history *h);

void history_add(struct history *h, const struct trace_job *job, uint64_t ran_us);
uint64_t history_predict_us(const struct history *h, const struct trace_job *job);

#endif
