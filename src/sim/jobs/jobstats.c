/* Averages, percentiles, and how they are written. */
#include "sim/jobstats.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json.h"

#define BEYOND_A_PERCENTILE 10 /* samples, at least */

static int by_size(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* The smallest sample that `percent` of them do not exceed (nearest rank). */
static double percentile_s(const uint64_t *sorted_us, uint32_t count, uint32_t percent)
{
    uint32_t rank = (uint32_t)(((uint64_t)count * percent + 99) / 100);
    if (count - rank < BEYOND_A_PERCENTILE)
        return JOBSTATS_NONE;
    return (double)sorted_us[rank - 1] / 1e6;
}

static double mean_s(const uint64_t *us, uint32_t count)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += (double)us[i];
    return count ? sum / count / 1e6 : JOBSTATS_NONE;
}

/* The mean of `runs` values, one more than before. */
static void add_to(double *mean, double value, uint32_t runs)
{
    *mean += (value - *mean) / runs;
}

static void add_times(struct jobstats *s, uint64_t *jct_us, uint64_t *wait_us)
{
    double avg_s = mean_s(jct_us, s->jobs);
    qsort(jct_us, s->jobs, sizeof *jct_us, by_size);
    qsort(wait_us, s->jobs, sizeof *wait_us, by_size);
    add_to(&s->avg_jct_s, avg_s, s->runs);
    add_to(&s->p50_jct_s, percentile_s(jct_us, s->jobs, 50), s->runs);
    add_to(&s->p99_jct_s, percentile_s(jct_us, s->jobs, 99), s->runs);
    add_to(&s->avg_wait_s, mean_s(wait_us, s->jobs), s->runs);
    add_to(&s->p99_wait_s, percentile_s(wait_us, s->jobs, 99), s->runs);
    s->least_avg_jct_s = s->runs == 1 ? avg_s : fmin(s->least_avg_jct_s, avg_s);
    s->largest_avg_jct_s = s->runs == 1 ? avg_s : fmax(s->largest_avg_jct_s, avg_s);
}

int jobstats_add(struct jobstats *s, const struct trace *trace,
                 const struct jobsim_result *r, struct sl_err *err)
{
    AUTO_FREE uint64_t *jct_us = malloc(r->count * sizeof *jct_us);
    AUTO_FREE uint64_t *wait_us = malloc(r->count * sizeof *wait_us);
    uint64_t last_us = 0, preemptions = 0;
    if (!jct_us || !wait_us)
        return sl_fail(err, SL_INTERNAL, "out of memory");
    s->jobs = s->cpu_jobs = s->rejected = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        const struct jobsim_outcome *o = &r->outcomes[i];
        s->cpu_jobs += o->fate == JOBSIM_CPU;
        s->rejected += o->fate == JOBSIM_REJECTED;
        if (o->fate != JOBSIM_ENDED)
            continue;
        jct_us[s->jobs] = o->end_us - trace->jobs[i].submit_ms * 1000;
        wait_us[s->jobs] = jct_us[s->jobs] - o->ran_us;
        s->jobs++;
        last_us = o->end_us > last_us ? o->end_us : last_us;
        preemptions += o->preemptions;
    }
    s->runs++;
    add_times(s, jct_us, wait_us);
    uint64_t first_us = trace->jobs[0].submit_ms * 1000;
    double makespan_s = s->jobs ? (double)(last_us - first_us) / 1e6 : JOBSTATS_NONE;
    add_to(&s->makespan_s, makespan_s, s->runs);
    add_to(&s->preemptions, (double)preemptions, s->runs);
    add_to(&s->held_pct, r->held_pct, s->runs);
    return 0;
}

/* To the millisecond. */
static json_t *seconds(double s)
{
    return s < 0 ? json_null() : json_real(round(s * 1000) / 1000);
}

json_t *jobstats_json(const struct jobstats *s, const char *policy)
{
    bool ok = true;
    json_t *j = json_object();
    json_put(j, "policy", json_string(policy), &ok);
    json_put(j, "jobs", json_integer(s->jobs), &ok);
    json_put(j, "cpu_jobs", json_integer(s->cpu_jobs), &ok);
    json_put(j, "rejected", json_integer(s->rejected), &ok);
    json_put(j, "orders", json_integer(s->runs), &ok);
    json_put(j, "avg_jct_s", seconds(s->avg_jct_s), &ok);
    json_put(j, "least_avg_jct_s", seconds(s->least_avg_jct_s), &ok);
    json_put(j, "largest_avg_jct_s", seconds(s->largest_avg_jct_s), &ok);
    json_put(j, "p50_jct_s", seconds(s->p50_jct_s), &ok);
    json_put(j, "p99_jct_s", seconds(s->p99_jct_s), &ok);
    json_put(j, "avg_wait_s", seconds(s->avg_wait_s), &ok);
    json_put(j, "p99_wait_s", seconds(s->p99_wait_s), &ok);
    json_put(j, "makespan_s", seconds(s->makespan_s), &ok);
    json_put(j, "preemptions", seconds(s->preemptions), &ok);
    json_put(j, "held_pct", seconds(s->held_pct), &ok);
    if (!ok) {
        json_decref(j);
        return NULL;
    }
    return j;
}
