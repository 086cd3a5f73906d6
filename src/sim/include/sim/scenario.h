/*
 * Scenarios: nodes, tenants, jobs, events and what is expected of the scheduler, in words
 * (docs/guide/scenarios.md has them all).
 *
 *     node n1: 2 x A100 80GiB
 *     submit low: 2 x 100%, priority 40
 *     submit high: 100%, priority 60
 *     expect low is told to go for high
 *
 * They run on the scheduler core in virtual time.  One thread; the same file gives the same
 * run everywhere.
 */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include <stdint.h>

#include "core/err.h"
#include "sim/text.h"

struct scenario;

/* The whole file is read before anything runs.  -SL_INVALID with file, line and column. */
int scenario_read(const struct text *text, struct scenario **out, struct sl_err *err);
void scenario_destroy(struct scenario *s);

struct scenario_result {
    uint32_t expected, failed; /* expectations */
    uint64_t ms;               /* virtual time that passed */
};

/* A line about an expectation that did not hold: "x.scn:7: expected …; it …". */
typedef void scenario_say_fn(void *ctx, const char *line);

/* Each expectation is looked at, also after one that failed.  0 if the scenario could be
 * run, whatever came of it; -SL_INVALID, with the line, for what the core refuses (a
 * quota below what is possible, an unknown parent); -SL_INTERNAL for no memory. */
int scenario_run(const struct scenario *s, scenario_say_fn *say, void *ctx,
                 struct scenario_result *out, struct sl_err *err);

#endif
