/*
 * What a run of the job simulator comes to: averages and percentiles over the jobs that
 * asked for devices and ran, and their mean over several runs of one trace.
 *
 * A job's completion time (JCT) runs from its submission to its end; it waits whenever
 * it is in the system and not on its devices.  A percentile is given only where at least
 * ten samples lie beyond it.
 */
#ifndef SIM_JOBSTATS_H
#define SIM_JOBSTATS_H

#include <jansson.h>
#include <stdint.h>

#include "sim/jobsim.h"

#define JOBSTATS_NONE (-1.0) /* too few jobs */

struct jobstats {
    uint32_t runs;
    uint32_t jobs, cpu_jobs, rejected; /* of one run; the same in all */
    /* Means over the runs, and the least and largest average of one. */
    double avg_jct_s, p50_jct_s, p99_jct_s;
    double least_avg_jct_s, largest_avg_jct_s;
    double avg_wait_s, p99_wait_s;
    double makespan_s; /* from the first submission to the last end */
    double preemptions;
    double held_pct;
};

/* Counts one more run; start from `struct jobstats s = { 0 }`. */
int jobstats_add(struct jobstats *s, const struct trace *trace,
                 const struct jobsim_result *r, struct sl_err *err);

/* NULL when out of memory. */
json_t *jobstats_json(const struct jobstats *s, const char *policy);

#endif
