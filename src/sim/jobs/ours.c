/*
 * Our own policies: the scheduler core decides, on the same object files that a server
 * links.  One tenant, whole devices.  What fits into a node is asked of one node, more of
 * whole nodes and one further, as the other policies have it.
 *
 *   sluice-blind    nobody knows how long a job takes: by attained service
 *   sluice-history  by what its owner ran before
 *   sluice-told     told how long each takes, as srtf and srsf are
 *   sluice          told under Muri's rules, where a job comes with its iterations and the
 *                   time of each; else blind
 *   sluice-shared   told; and who would wait may take turns with who has a lease (share.h).
 *                   When a host goes, its guests wait again; who is a guest though there is
 *                   room for it gets a lease of its own.
 */
#include <stdlib.h>

#include "core/macros.h"
#include "history.h"
#include "policy.h"
#include "share.h"
#include "sim/schedlog.h"

#define LEAST_ROUND_US 1000000u

enum knows { NOTHING, HISTORY, ALL };

struct todo {
    enum sched_event_kind kind;
    uint32_t job;
};

struct ours {
    struct sched *sched;
    enum knows knows;
    struct share *share; /* NULL: nobody shares */
    struct history history;
    uint32_t node_devices; /* of the largest node */
    uint32_t waiting;
    struct todo *todo; /* ring of events for the core, in order */
    uint32_t first, count, mask;
};

/* Room for all jobs to end, be evicted and come again at one moment. */
static void push(struct ours *o, enum sched_event_kind kind, uint32_t job)
{
    o->todo[(o->first + o->count++) & o->mask] = (struct todo){ kind, job };
}

static void ours_destroy(void *state)
{
    struct ours *o = state;
    if (!o)
        return;
    sched_destroy(o->sched);
    history_finish(&o->history);
    share_destroy(o->share);
    free(o->todo);
    free(o);
}

static int add_nodes(struct jobsim *sim, struct ours *o)
{
    const struct sched_decision *d;
    uint32_t count;
    for (uint32_t i = 0; i < sim->cluster.node_count; i++) {
        struct sched_event e = { .kind = SCHED_ADD_NODE };
        e.node.device_count = sim->cluster.nodes[i].devices;
        if (schedlog_apply(sim->options.log, o->sched, &e, &d, &count, sim->err))
            return -1;
    }
    return 0;
}

static int create(struct jobsim *sim, void **state, enum knows knows)
{
    struct sched_policy policy;
    struct ours *o = calloc(1, sizeof *o);
    uint32_t room = 64;
    if (!o)
        return -1;
    while (room < 4 * sim->job_count)
        room *= 2;
    sched_policy_init(&policy);
    policy.order = knows == NOTHING ? SCHED_BY_ATTAINED : SCHED_BY_REMAINING;
    o->knows = knows;
    o->node_devices = sim->cluster.largest_node;
    o->mask = room - 1;
    if (sim->options.log)
        schedlog_begin(sim->options.log, &policy);
    o->todo = malloc(room * sizeof *o->todo);
    if (!o->todo || history_init(&o->history, sim->trace) ||
        sched_create(&policy, &o->sched, sim->err) || add_nodes(sim, o)) {
        ours_destroy(o);
        return -1;
    }
    *state = o;
    return 0;
}

static int create_by_trace(struct jobsim *sim, void **state)
{
    return create(sim, state, sim->options.rules == JOBSIM_MURI ? ALL : NOTHING);
}
static int create_blind(struct jobsim *sim, void **state)
{
    return create(sim, state, NOTHING);
}
static int create_history(struct jobsim *sim, void **state)
{
    return create(sim, state, HISTORY);
}
static int create_told(struct jobsim *sim, void **state)
{
    return create(sim, state, ALL);
}
static int create_shared(struct jobsim *sim, void **state)
{
    if (create(sim, state, ALL))
        return -1;
    ((struct ours *)*state)->share = share_create(sim);
    return ((struct ours *)*state)->share ? 0 : -1;
}

static void submit(struct jobsim *sim, void *state, uint32_t job)
{
    push(state, SCHED_SUBMIT, job);
}

static void finish(struct jobsim *sim, void *state, uint32_t job)
{
    struct ours *o = state;
    if (!o->share || share_host(o->share, job) == job) /* else the core does not know it */
        push(o, SCHED_END, job);
    history_add(&o->history, sim->jobs[job].trace, sim->jobs[job].work_us);
}

/* ---- to the core ---- */

static uint64_t predicted_ms(struct jobsim *sim, struct ours *o, uint32_t job)
{
    switch (o->knows) {
    case NOTHING:
        return 0;
    case HISTORY:
        return history_predict_us(&o->history, sim->jobs[job].trace) / 1000;
    case ALL:
        return (jobsim_ran_us(sim, job) + jobsim_left_us(sim, job)) / 1000;
    }
    return 0;
}

static struct sched_option devices_of(const struct ours *o, uint32_t devices)
{
    struct sched_option option = { 0 };
    uint32_t whole = devices / o->node_devices, rest = devices % o->node_devices;
    struct sched_group group = { .ask = { .permille = 1000 } };
    if (whole) {
        group.ask.devices = o->node_devices;
        group.count = whole;
        option.group[option.group_count++] = group;
    }
    if (rest) {
        group.ask.devices = rest;
        group.count = 1;
        option.group[option.group_count++] = group;
    }
    return option;
}

/* The host is gone, or must go: its guests wait again. */
static void dismiss_guests(struct jobsim *sim, struct ours *o, uint32_t host)
{
    uint32_t guest[MURI_MOST_PARTNERS];
    uint32_t count = o->share ? share_guests(o->share, sim, host, guest) : 0;
    for (uint32_t i = 0; i < count; i++) {
        jobsim_stop(sim, guest[i]);
        push(o, SCHED_SUBMIT, guest[i]);
    }
}

static void take_decision(struct jobsim *sim, struct ours *o,
                          const struct sched_decision *d)
{
    uint32_t job = (uint32_t)d->id, at = 0;
    if (d->kind == SCHED_EVICT) {
        if (sim->jobs[job].state != SIM_JOB_RUNS)
            return; /* it ended at this very moment; the core hears of it next */
        jobsim_stop(sim, job);
        if (sim->options.rules == JOBSIM_HELIOS)
            jobsim_add_work(sim, job, jobsim_checkpoint_us(sim->jobs[job].trace->devices));
        dismiss_guests(sim, o, job);
        push(o, SCHED_END, job);
        push(o, SCHED_SUBMIT, job);
        return;
    }
    for (uint32_t i = 0; i < d->place_count; i++)
        for (uint32_t k = 0; k < d->place[i].device_count; k++)
            sim->device[at++] =
                sim->cluster.nodes[d->place[i].node].first + d->place[i].device[k];
    jobsim_start(sim, job, sim->device);
    if (o->share)
        share_set_host(o->share, job, job);
    o->waiting--;
}

static void apply(struct jobsim *sim, struct ours *o, const struct todo *t)
{
    const struct sched_decision *d;
    uint32_t count;
    struct sched_option option;
    struct sched_event e = { .kind = t->kind, .now_ms = sim->now_us / 1000 };
    if (t->kind == SCHED_END) {
        e.end = t->job;
        dismiss_guests(sim, o, t->job);
    }
    if (t->kind == SCHED_SUBMIT) {
        option = devices_of(o, sim->jobs[t->job].trace->devices);
        e.submit = (struct sched_request){
            .id = t->job,
            .preemptible = true,
            .work_ms = predicted_ms(sim, o, t->job),
            .attained_ms = jobsim_ran_us(sim, t->job) / 1000,
            .option_count = 1,
            .option = &option,
        };
        o->waiting++;
    }
    if (schedlog_apply(sim->options.log, o->sched, &e, &d, &count, NULL))
        jobsim_violation(sim, "the scheduler core has no memory");
    for (uint32_t i = 0; i < count; i++)
        take_decision(sim, o, &d[i]);
}

/* When a running job's service will next be twice as much: who waits may evict it then. */
static uint64_t next_level_us(const struct jobsim *sim)
{
    uint64_t at = JOBSIM_NEVER;
    for (uint32_t i = 0; i < sim->running; i++) {
        uint32_t job = sim->ends[i];
        uint64_t devices = sim->jobs[job].trace->devices, ran_us = jobsim_ran_us(sim, job);
        uint64_t level_s = 1;
        while (level_s * 1000000 <= ran_us * devices)
            level_s *= 2;
        uint64_t need_us = (level_s * 1000000 + devices - 1) / devices;
        need_us += 1000 - need_us % 1000; /* the core counts milliseconds */
        at = min_u64(at, sim->now_us + max_u64(need_us - ran_us, LEAST_ROUND_US));
    }
    return at;
}

static void apply_all(struct jobsim *sim, struct ours *o)
{
    while (!sim->rc && o->count) {
        struct todo t = o->todo[o->first++ & o->mask];
        o->count--;
        apply(sim, o, &t);
    }
}

/* A guest for whom there is room gets a lease of its own. */
static void part(struct jobsim *sim, struct ours *o)
{
    uint32_t *guest = sim->scratch;
    uint32_t count = share_list(o->share, sim, SIM_JOB_RUNS, true, guest);
    for (uint32_t i = 0; i < count && !sim->rc; i++) {
        const struct sim_job *j = &sim->jobs[guest[i]];
        if (j->state != SIM_JOB_RUNS || share_host(o->share, guest[i]) == guest[i] ||
            !cluster_find_best(&sim->cluster, j->trace->devices, sim->device))
            continue;
        jobsim_stop(sim, guest[i]);
        push(o, SCHED_SUBMIT, guest[i]);
        apply_all(sim, o);
    }
}

/* Who waits becomes a guest, if that is a gain; to the core it is over. */
static void join(struct jobsim *sim, struct ours *o)
{
    uint32_t *job = sim->scratch;
    uint32_t count = share_list(o->share, sim, SIM_JOB_WAITS, false, job);
    share_forget(o->share);
    for (uint32_t i = 0; i < count && !sim->rc; i++) {
        uint32_t host = sim->jobs[job[i]].state == SIM_JOB_WAITS
                            ? share_find(o->share, sim, job[i])
                            : JOBSIM_NONE;
        if (host == JOBSIM_NONE)
            continue;
        jobsim_join(sim, job[i], host);
        share_set_host(o->share, job[i], host);
        o->waiting--;
        push(o, SCHED_END, job[i]);
        apply_all(sim, o);
    }
}

static uint64_t decide(struct jobsim *sim, void *state)
{
    struct ours *o = state;
    bool settled = false;
    while (!sim->rc && !settled) {
        apply_all(sim, o);
        if (o->waiting) /* last: who may be evicted has changed by then */
            apply(sim, o, &(struct todo){ .kind = SCHED_TICK });
        settled = !o->count;
    }
    if (o->share) {
        part(sim, o);
        join(sim, o);
    }
    return o->waiting && o->knows == NOTHING ? next_level_us(sim) : JOBSIM_NEVER;
}

#define OURS(create)                                 \
    {                                                \
        create, submit, finish, decide, ours_destroy \
    }

const struct job_policy job_policy_sluice_shared = OURS(create_shared);
const struct job_policy job_policy_sluice = OURS(create_by_trace);
const struct job_policy job_policy_sluice_blind = OURS(create_blind);
const struct job_policy job_policy_sluice_history = OURS(create_history);
const struct job_policy job_policy_sluice_told = OURS(create_told);
