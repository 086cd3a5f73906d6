/*
 * Tiresias' two-dimensional least attained service (NSDI 2019): attained time x devices
 * moves a job through queues, in each of which the first come is first served.  Devices
 * are counted; run times are unknown.
 *
 * Muri's row: three queues, thresholds of 3,250 and 7,200 GPU-seconds, asked at every
 * event and whenever a running job passes a threshold; a job goes down one queue at an
 * event, to the end of the next; those that wait go behind those that run.
 * Lucid's row: two queues, one threshold of 18,000, asked every 60 s; stopping costs.
 */
#include <stdlib.h>

#include "core/macros.h"
#include "policy.h"

#define MAX_QUEUES 3

struct config {
    unsigned thresholds;
    uint64_t device_us[MAX_QUEUES - 1];
};

struct links {
    uint32_t next, before;
    unsigned queue;
};

struct las {
    struct links *of; /* each job's */
    uint32_t head[MAX_QUEUES], tail[MAX_QUEUES];
};

static int las_create(struct jobsim *sim, void **state)
{
    struct las *l = calloc(1, sizeof *l);
    *state = l;
    if (!l)
        return -1;
    for (unsigned q = 0; q < MAX_QUEUES; q++)
        l->head[q] = l->tail[q] = JOBSIM_NONE;
    l->of = malloc(sim->job_count * sizeof *l->of);
    return l->of ? 0 : -1;
}

static void las_destroy(void *state)
{
    struct las *l = state;
    free(l->of);
    free(l);
}

static void append(struct las *l, uint32_t job, unsigned queue)
{
    l->of[job] = (struct links){ JOBSIM_NONE, l->tail[queue], queue };
    if (l->tail[queue] == JOBSIM_NONE)
        l->head[queue] = job;
    else
        l->of[l->tail[queue]].next = job;
    l->tail[queue] = job;
}

static void take_out(struct las *l, uint32_t job)
{
    const struct links *x = &l->of[job];
    if (x->before == JOBSIM_NONE)
        l->head[x->queue] = x->next;
    else
        l->of[x->before].next = x->next;
    if (x->next == JOBSIM_NONE)
        l->tail[x->queue] = x->before;
    else
        l->of[x->next].before = x->before;
}

static void las_submit(struct jobsim *sim, void *state, uint32_t job)
{
    append(state, job, 0);
}

static void las_finish(struct jobsim *sim, void *state, uint32_t job)
{
    take_out(state, job);
}

/* ---- what both do ---- */

static bool passed(const struct jobsim *sim, uint32_t job, unsigned queue)
{
    const struct config *c = sim->policy->config;
    return queue < c->thresholds &&
           device_time(jobsim_ran_us(sim, job), sim->jobs[job].trace->devices) >=
               c->device_us[queue];
}

/* Running jobs that passed their queue's threshold go one down, in the order in which
 * they came. */
static void demote(struct jobsim *sim, struct las *l)
{
    uint32_t *down = sim->scratch, count = 0;
    for (uint32_t i = 0; i < sim->running; i++) {
        uint32_t job = sim->ends[i], at = count;
        if (!passed(sim, job, l->of[job].queue))
            continue;
        for (; at && down[at - 1] > job; at--)
            down[at] = down[at - 1];
        down[at] = job;
        count++;
    }
    for (uint32_t i = 0; i < count; i++) {
        unsigned queue = l->of[down[i]].queue;
        take_out(l, down[i]);
        append(l, down[i], queue + 1);
    }
}

/* Gives devices by number, queue by queue; stops who runs and gets none.  Who waits and
 * gets some is in sim->scratch, in order; how many. */
static uint32_t share_out(struct jobsim *sim, const struct las *l,
                          void (*stop)(struct jobsim *sim, uint32_t job))
{
    uint32_t quota = sim->cluster.device_count, *start = sim->scratch, count = 0;
    for (unsigned q = 0; q < MAX_QUEUES; q++)
        for (uint32_t job = l->head[q]; job != JOBSIM_NONE; job = l->of[job].next) {
            const struct sim_job *j = &sim->jobs[job];
            bool has = j->trace->devices <= quota;
            quota -= has ? j->trace->devices : 0;
            if (has && j->state == SIM_JOB_WAITS)
                start[count++] = job;
            else if (!has && j->state == SIM_JOB_RUNS)
                stop(sim, job);
        }
    return count;
}

/* ---- Muri's ---- */

/* In each queue, those that wait behind those that run. */
static void waiting_behind(const struct jobsim *sim, struct las *l)
{
    for (unsigned q = 0; q < MAX_QUEUES; q++) {
        uint32_t last = l->tail[q], next;
        bool more = last != JOBSIM_NONE;
        for (uint32_t job = l->head[q]; more; job = next) {
            next = l->of[job].next;
            more = job != last;
            if (sim->jobs[job].state == SIM_JOB_WAITS) {
                take_out(l, job);
                append(l, job, q);
            }
        }
    }
}

/* When the first running job will have passed its threshold, in whole seconds of it. */
static uint64_t next_passing_us(const struct jobsim *sim, const struct las *l)
{
    const struct config *c = sim->policy->config;
    uint64_t at = JOBSIM_NEVER;
    for (uint32_t i = 0; i < sim->running; i++) {
        uint32_t job = sim->ends[i], devices = sim->jobs[job].trace->devices;
        unsigned queue = l->of[job].queue;
        if (queue == c->thresholds)
            continue;
        uint64_t one = devices * 1000000ull, need_us;
        need_us = (c->device_us[queue] + one - 1) / one * 1000000;
        uint64_t left_us = sub_sat_u64(need_us, jobsim_ran_us(sim, job));
        at = min_u64(at, sim->now_us + max_u64(left_us, 1));
    }
    return at;
}

static uint64_t muri_decide(struct jobsim *sim, void *state)
{
    struct las *l = state;
    demote(sim, l);
    uint32_t count = share_out(sim, l, jobsim_stop);
    for (uint32_t i = 0; i < count; i++)
        if (cluster_find_any(&sim->cluster, sim->jobs[sim->scratch[i]].trace->devices,
                             sim->device))
            jobsim_start(sim, sim->scratch[i], sim->device);
    waiting_behind(sim, l);
    return next_passing_us(sim, l);
}

/* ---- Lucid's ---- */

#define ROUND_US 60000000u

static void stop_at_a_price(struct jobsim *sim, uint32_t job)
{
    jobsim_stop(sim, job);
    jobsim_add_work(sim, job, jobsim_checkpoint_us(sim->jobs[job].trace->devices));
}

static uint64_t lucid_decide(struct jobsim *sim, void *state)
{
    struct las *l = state;
    if (sim->now_us % ROUND_US == 0) {
        demote(sim, l);
        uint32_t count = share_out(sim, l, stop_at_a_price);
        for (uint32_t i = 0; i < count; i++)
            jobsim_try_start(sim, sim->scratch[i]);
    }
    return (sim->now_us / ROUND_US + 1) * ROUND_US;
}

#define LAS(decide, config)                                              \
    {                                                                    \
        las_create, las_submit, las_finish, decide, las_destroy, &config \
    }

static const struct config muri = { 2, { 3250000000, 7200000000 } },
                           lucid = { 1, { 18000000000 } };

const struct job_policy job_policy_tiresias_muri = LAS(muri_decide, muri);
const struct job_policy job_policy_tiresias_lucid = LAS(lucid_decide, lucid);
