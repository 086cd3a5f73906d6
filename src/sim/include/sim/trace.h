/*
 * A job trace: who asked for how many devices, when, and for how long, whatever
 * format it was written in.  Plain arrays; the caller frees them by trace_finish.
 *
 *   muri     Muri's simulator traces: work and its stages per iteration
 *   philly   timestamp,duration,num_gpus,cluster (seconds; the cluster is the owner)
 *   chronus  Chronus' traces, in minutes, with deadlines
 *   csv      our own: job_id,submit_s,gpu_num,duration_s and, where wanted,
 *            owner,model,share_permille,mem_bytes,priority,deadline_s
 *
 * These always hold after a reader succeeded:
 *   - there is at least one job; jobs are in order of submit_ms, equal ones in the
 *     order of the file;
 *   - duration_ms >= 1: what a file gives as 0 (or less than that) counts as 1 ms;
 *   - ids are unique within a file.
 */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "sim/names.h"
#include "sim/text.h"

#define TRACE_NONE        UINT32_MAX
#define TRACE_MAX_MS      1000000000000ull /* about 31 years: more is absurd */
#define TRACE_MAX_DEVICES 1000000u
#define TRACE_STAGES      3
#define TRACE_MAX_STEPS   8

struct trace_job {
    uint64_t submit_ms;      /* since the begin of the trace */
    uint64_t duration_ms;    /* of its whole work, alone on its devices */
    uint64_t mem_bytes;      /* on each device; 0: the file does not say */
    uint32_t devices;        /* 0: a job of CPU only */
    uint32_t share_permille; /* of each device; 1000: whole ones */
    uint32_t priority;       /* as in the file; 0 where it has none */
    uint32_t id;             /* in trace.ids; TRACE_NONE: the format has none */
    uint32_t owner;          /* in trace.owners, or TRACE_NONE */
    uint32_t model;          /* what it trains, in trace.models, or TRACE_NONE */
    uint32_t stages;         /* in trace.stages, or TRACE_NONE */
    uint32_t deadline;       /* in trace.deadlines; TRACE_NONE: best effort */
    uint32_t line;           /* of the file, for messages */
};

/* How long one iteration uses each of the resources that jobs on the same devices can
 * take turns at (Muri, SIGCOMM 2022): resource_time_0, _1, _2 of the file. */
struct trace_stages {
    uint64_t iterations;
    uint32_t batch_size;
    uint32_t iteration_us;
    uint32_t stage_us[TRACE_STAGES];
};

/* What finishing is worth: value[i] up to after_ms[i] from submission, nothing after
 * the last.  Times ascend.  Strict: one step, and missing it is a broken promise. */
struct trace_deadline {
    bool strict;
    uint32_t steps;
    uint64_t after_ms[TRACE_MAX_STEPS];
    uint32_t value[TRACE_MAX_STEPS];
};

struct trace {
    struct trace_job *jobs;
    struct trace_stages *stages;
    struct trace_deadline *deadlines;
    uint32_t job_count, stages_count, deadline_count;
    uint64_t begin_ms; /* wall clock of submit_ms 0, taken for UTC; 0: the file has none */
    struct names ids, owners, models;
};

/* By the format's name; -SL_INVALID for an unknown one.  *out is written on success. */
int trace_read(const char *format, const struct text *text, struct trace *out,
               struct sl_err *err);
int trace_open(const char *format, const char *path, struct trace *out, struct sl_err *err);

/* "muri, philly, …": for help and messages. */
#define TRACE_FORMATS "muri, philly, chronus, csv"

void trace_finish(struct trace *t);

#define AUTO_TRACE __attribute__((cleanup(trace_finish)))

#endif
