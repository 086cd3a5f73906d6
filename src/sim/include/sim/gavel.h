/*
 * The Gavel data set (OSDI 2020): how fast each kind of job runs on each kind of GPU,
 * alone and beside another, and traces of arrivals.  Plain arrays; the caller frees.
 *
 * Speeds are measured numbers: iterations a second in millionths, rounded.
 */
#ifndef SIM_GAVEL_H
#define SIM_GAVEL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "sim/names.h"
#include "sim/text.h"

#define GAVEL_NONE     UINT32_MAX
#define GAVEL_UNKNOWN  UINT64_MAX
#define GAVEL_MAX_GPUS 64u
#define GAVEL_MAX_JOBS 4096u

/* ---- simulation_throughputs.json ---- */

/* A kind of job: a model with its batch size, spread over so many GPUs. */
struct gavel_job {
    uint32_t model; /* in models: "ResNet-18 (batch size 16)" */
    uint32_t gpus;
};

/* Two kinds of job on the same GPUs; both orders of a pair are there as in the file. */
struct gavel_pair {
    uint32_t gpu, job, other;
    uint64_t job_micro, other_micro; /* iterations a second x 10^6; 0: it does not fit */
};

struct gavel_speeds {
    struct names gpus; /* "v100", "v100_unconsolidated" (spread over nodes), … */
    struct names models;
    struct names keys; /* of jobs, as in the file: "('A3C', 1)" */
    struct gavel_job *jobs;
    uint64_t *alone_micro;    /* [gpu * job_count + job]; GAVEL_UNKNOWN: not measured */
    struct gavel_pair *pairs; /* sorted by gpu, job, other */
    uint32_t job_count, pair_count;
};

int gavel_speeds_read(const struct text *text, struct gavel_speeds *out,
                      struct sl_err *err);
void gavel_speeds_finish(struct gavel_speeds *s);

/* GAVEL_NONE if it was not measured. */
uint32_t gavel_find_job(const struct gavel_speeds *s, const char *model, uint32_t gpus);
/* NULL if they were not measured together. */
const struct gavel_pair *gavel_find_pair(const struct gavel_speeds *s, uint32_t gpu,
                                         uint32_t job, uint32_t other);

/* ---- traces (msr): seven fields between tabs, no header ---- */

struct gavel_arrival {
    uint64_t arrival_ms; /* since the begin of the trace */
    uint64_t steps;
    uint32_t model; /* in models */
    uint32_t gpus;
    uint32_t line;
};

/* In order of arrival, equal ones in the order of the file; at least one. */
struct gavel_trace {
    struct gavel_arrival *arrivals;
    uint32_t count;
    struct names models;
};

int gavel_trace_read(const struct text *text, struct gavel_trace *out, struct sl_err *err);
void gavel_trace_finish(struct gavel_trace *t);

#endif
