/*
 * The job simulator: a trace of jobs on a pool of devices under one policy, in virtual
 * time.  The same input gives the same result, byte for byte.  The clock counts
 * microseconds: Muri's averages depend on which jobs end at the same moment, and with
 * milliseconds one of them (trace1_pr, SRTF) is 1.4 % off.
 *
 * The published figures beside which ours stand come from two families of simulators,
 * and their rules differ in what is no scheduling at all.  The format of the trace
 * says whose rules hold (jobsim_options_of):
 *
 *   muri    Rivendile/Muri, simulator/ (SIGCOMM 2022): an iteration takes 1.015 times its
 *           measured time; a job takes the first node that fits; and AT EVERY EVENT each
 *           running job loses up to its start overhead from the progress it made since the
 *           event before (start_overhead; a quirk, kept so that the averages match).
 *   helios  S-Lab's HeliosArtifact (SC 2021): the fullest node that fits, and 7, 30 or
 *           60 s of further work for a job that is pre-empted.
 *
 * Every run checks itself and fails with -SL_INTERNAL: no device is held twice but by jobs
 * that take turns on all of theirs; a job
 * holds as many as it asked for, and runs for at least its work; the device-time that the
 * pool lent, once for each of those who took turns, equals what the jobs held; all jobs end; no policy waits for ever.
 */
#ifndef SIM_JOBSIM_H
#define SIM_JOBSIM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "sim/cluster.h"
#include "sim/trace.h"

enum jobsim_rules { JOBSIM_HELIOS, JOBSIM_MURI, JOBSIM_RULES };

struct schedlog; /* sim/schedlog.h */

struct jobsim_options {
    enum jobsim_rules rules;
    bool start_overhead; /* counts under Muri's rules only */
    /* Jobs submitted at the same moment come in the order of the file (0), or in an order
     * drawn by this seed.  Logs say nothing about it, and averages depend on it. */
    uint64_t tie_order;
    /* What the scheduler core of our own policies is told and decides is written here; or
     * NULL. */
    struct schedlog *log;
};

/* How the trace of this format is run where nothing else was asked for. */
struct jobsim_options jobsim_options_of(const char *format);

enum jobsim_fate {
    JOBSIM_ENDED,
    JOBSIM_CPU,     /* asked for no device: it ran beside, and is in no average */
    JOBSIM_REJECTED /* does not fit into the empty pool: it never ran */
};

/* What became of one job of the trace. */
struct jobsim_outcome {
    enum jobsim_fate fate;
    uint32_t preemptions;
    uint64_t start_us, end_us; /* first start; end */
    uint64_t ran_us;           /* on its devices, all turns together */
};

struct jobsim_result {
    struct jobsim_outcome *outcomes; /* of each job of the trace, in its order */
    uint32_t count;
    uint64_t decisions; /* how often the policy was asked */
    double held_pct;    /* of all device-time from the first submission to the last end */
};

/* -SL_INVALID for an unknown policy.  The caller frees *out by _finish. */
int jobsim_run(const char *policy, const struct trace *trace, const char *nodes,
               const struct jobsim_options *options, struct jobsim_result *out,
               struct sl_err *err);
void jobsim_result_finish(struct jobsim_result *r);

/* The name and one line about the i-th policy; NULL after the last. */
const char *jobsim_policy_name(unsigned i);
const char *jobsim_policy_about(unsigned i);
/* Can it be run by these rules? */
bool jobsim_policy_under(unsigned i, enum jobsim_rules rules);
/* Is it on the scheduler core?  Only such a one writes a log. */
bool jobsim_policy_has_log(unsigned i);

#define AUTO_JOBSIM_RESULT __attribute__((cleanup(jobsim_result_finish)))

#endif
