/* The job simulator's clock: what happens when, how work shrinks, and that it all adds up. */
#include "sim/jobsim.h"

#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "policy.h"
#include "sim/random.h"

/* Muri's simulator lets an iteration take this much of its measured time (jobs.py). */
#define MURI_ITERATION_PERMILLE 1015u

/* A policy that is asked again and again while nothing runs waits for ever. */
#define MAX_IDLE_DECISIONS 1000

struct jobsim_options jobsim_options_of(const char *format)
{
    bool muri = !strcmp(format, "muri");
    return (struct jobsim_options){ .rules = muri ? JOBSIM_MURI : JOBSIM_HELIOS,
                                    .start_overhead = muri };
}

/* The first violation counts. */
static void violation(struct jobsim *sim, uint32_t job, const char *what)
{
    if (sim->rc == 0)
        sim->rc =
            sl_fail(sim->err, SL_INTERNAL, "at %llu us, job of line %u: %s",
                    (unsigned long long)sim->now_us, sim->jobs[job].trace->line, what);
}

void jobsim_violation(struct jobsim *sim, const char *what)
{
    if (sim->rc == 0)
        sim->rc = sl_fail(sim->err, SL_INTERNAL, "at %llu us: %s",
                          (unsigned long long)sim->now_us, what);
}

/* ---- the ends: a heap, the earliest first, equal ones in the order of the trace ---- */

static bool ends_before(const struct jobsim *sim, uint32_t a, uint32_t b)
{
    uint64_t ta = sim->jobs[a].end_us, tb = sim->jobs[b].end_us;
    return ta != tb ? ta < tb : a < b;
}

static void put_at(struct jobsim *sim, uint32_t at, uint32_t job)
{
    sim->ends[at] = job;
    sim->jobs[job].heap_at = at;
}

/* Let the job whose end changed find its place. */
static void sift(struct jobsim *sim, uint32_t job)
{
    uint32_t at = sim->jobs[job].heap_at;
    for (uint32_t up; at && ends_before(sim, job, sim->ends[up = (at - 1) / 2]); at = up)
        put_at(sim, at, sim->ends[up]);
    for (uint32_t down; (down = 2 * at + 1) < sim->running; at = down) {
        if (down + 1 < sim->running &&
            ends_before(sim, sim->ends[down + 1], sim->ends[down]))
            down++;
        if (!ends_before(sim, sim->ends[down], job))
            break;
        put_at(sim, at, sim->ends[down]);
    }
    put_at(sim, at, job);
}

static void ends_add(struct jobsim *sim, uint32_t job)
{
    sim->jobs[job].heap_at = sim->running++;
    sift(sim, job);
}

static void ends_remove(struct jobsim *sim, uint32_t job)
{
    uint32_t at = sim->jobs[job].heap_at, last = sim->ends[--sim->running];
    if (last == job)
        return;
    sim->jobs[last].heap_at = at;
    sift(sim, last);
}

/* ---- work ---- */

/* Beside others it does in a cycle what takes own_ns alone. */
static uint64_t work_of(const struct sim_job *j, uint64_t us)
{
    if (j->cycle_ns == j->own_ns)
        return us;
    return (uint64_t)((unsigned __int128)us * j->own_ns / j->cycle_ns);
}

/* The least time in which it does what is left. */
static uint64_t time_for_left(const struct sim_job *j)
{
    if (j->cycle_ns == j->own_ns)
        return j->left_us;
    return (uint64_t)(((unsigned __int128)j->left_us * j->cycle_ns + j->own_ns - 1) /
                      j->own_ns);
}

uint64_t jobsim_left_us(const struct jobsim *sim, uint32_t job)
{
    const struct sim_job *j = &sim->jobs[job];
    uint64_t done_us = j->state == SIM_JOB_RUNS ? work_of(j, sim->now_us - j->since_us) : 0;
    return sub_sat_u64(j->left_us, done_us);
}

uint64_t jobsim_ran_us(const struct jobsim *sim, uint32_t job)
{
    const struct sim_job *j = &sim->jobs[job];
    return j->outcome->ran_us + (j->state == SIM_JOB_RUNS ? sim->now_us - j->since_us : 0);
}

/* A running job's account up to now, of which lost_us brought nothing. */
static void settle(struct jobsim *sim, struct sim_job *j, uint64_t lost_us)
{
    uint64_t ran_us = sim->now_us - j->since_us;
    j->outcome->ran_us += ran_us;
    j->left_us = sub_sat_u64(j->left_us, work_of(j, sub_sat_u64(ran_us, lost_us)));
    j->since_us = sim->now_us;
    j->end_us = sim->now_us + time_for_left(j);
}

/* Muri's quirk. */
static void lose_start_overhead(struct jobsim *sim)
{
    uint32_t running = sim->running;
    sim->running = 0;
    for (uint32_t i = 0; i < running; i++) { /* a new heap, from the left */
        struct sim_job *j = &sim->jobs[sim->ends[i]];
        settle(sim, j, j->all_lost_us);
        ends_add(sim, sim->ends[i]);
    }
}

/* ---- partners: a ring of the jobs that run on the same devices ---- */

/* From now on its jobs run at the pace of those that are in it now. */
static void set_pace(struct jobsim *sim, uint32_t first)
{
    const struct trace_stages *stages[MURI_MOST_PARTNERS];
    uint32_t count = 0, job = first;
    uint64_t lost_us = 0, cycle_ns = sim->jobs[first].own_ns;
    do {
        const struct sim_job *j = &sim->jobs[job];
        lost_us += j->lost_us;
        if (sim->jobs[job].own_ns)
            stages[count++] = &sim->trace->stages[j->trace->stages];
        job = j->partner;
    } while (job != first);
    if (count > 1)
        cycle_ns = muri_cycle_ns(stages, count);
    do {
        struct sim_job *j = &sim->jobs[job];
        settle(sim, j, 0);
        j->cycle_ns = max_u64(cycle_ns, j->own_ns);
        j->all_lost_us = lost_us;
        j->end_us = sim->now_us + time_for_left(j);
        j->stale = false;
        sift(sim, job);
        job = j->partner;
    } while (job != first);
}

/* Its partners keep the devices. */
static void leave_partners(struct jobsim *sim, uint32_t job)
{
    struct sim_job *j = &sim->jobs[job];
    uint32_t before = j->partner;
    while (sim->jobs[before].partner != job)
        before = sim->jobs[before].partner;
    sim->jobs[before].partner = j->partner;
    sim->jobs[before].stale = true;
    sim->doubled -= j->trace->devices;
    j->partner = job;
}

static void mend_paces(struct jobsim *sim)
{
    for (uint32_t i = 0; i < sim->running;) {
        bool stale = sim->jobs[sim->ends[i]].stale;
        if (stale)
            set_pace(sim, sim->ends[i]);
        i = stale ? 0 : i + 1; /* the heap has moved */
    }
}

/* ---- what a policy does ---- */

static void begin_to_run(struct jobsim *sim, uint32_t job)
{
    struct sim_job *j = &sim->jobs[job];
    j->state = SIM_JOB_RUNS;
    j->cycle_ns = j->own_ns;
    j->all_lost_us = j->lost_us;
    j->stale = false;
    j->since_us = sim->now_us;
    j->end_us = sim->now_us + j->left_us;
    ends_add(sim, job);
    sim->starts++;
    if (j->outcome->start_us == JOBSIM_NEVER)
        j->outcome->start_us = sim->now_us;
}

void jobsim_start(struct jobsim *sim, uint32_t job, const uint32_t *device)
{
    struct sim_job *j = &sim->jobs[job];
    uint32_t count = j->trace->devices;
    if (j->state != SIM_JOB_WAITS) {
        violation(sim, job, "started though it does not wait");
        return;
    }
    if (!cluster_take(&sim->cluster, job, device, count)) {
        violation(sim, job, "put on a device that is held");
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        sim->next_device[device[i]] = i + 1 < count ? device[i + 1] : JOBSIM_NONE;
    j->first_device = device[0];
    j->partner = job;
    begin_to_run(sim, job);
}

void jobsim_join(struct jobsim *sim, uint32_t job, uint32_t host)
{
    struct sim_job *j = &sim->jobs[job], *h = &sim->jobs[host];
    uint32_t count = 1;
    for (uint32_t i = host; sim->jobs[i].partner != host; i = sim->jobs[i].partner)
        count++;
    if (j->state != SIM_JOB_WAITS || h->state != SIM_JOB_RUNS || !j->own_ns || !h->own_ns ||
        j->trace->devices != h->trace->devices || count == MURI_MOST_PARTNERS) {
        violation(sim, job, "shares devices of a job with which it cannot take turns");
        return;
    }
    j->first_device = h->first_device;
    j->partner = h->partner;
    h->partner = job;
    sim->doubled += j->trace->devices;
    begin_to_run(sim, job);
    set_pace(sim, host);
}

bool jobsim_try_start(struct jobsim *sim, uint32_t job)
{
    static cluster_search *const search[] = {
        [JOBSIM_HELIOS] = cluster_find_best,
        [JOBSIM_MURI] = cluster_find_first,
    };
    if (!search[sim->options.rules](&sim->cluster, sim->jobs[job].trace->devices,
                                    sim->device))
        return false;
    jobsim_start(sim, job, sim->device);
    return true;
}

static void give_devices(struct jobsim *sim, uint32_t job)
{
    const struct sim_job *j = &sim->jobs[job];
    uint32_t device = j->first_device;
    if (j->partner != job) {
        leave_partners(sim, job);
        return;
    }
    for (uint32_t i = 0; i < j->trace->devices; i++) {
        cluster_give(&sim->cluster, device);
        device = sim->next_device[device];
    }
}

void jobsim_stop(struct jobsim *sim, uint32_t job)
{
    struct sim_job *j = &sim->jobs[job];
    if (j->state != SIM_JOB_RUNS) {
        violation(sim, job, "stopped though it does not run");
        return;
    }
    settle(sim, j, 0);
    give_devices(sim, job);
    ends_remove(sim, job);
    j->state = SIM_JOB_WAITS;
    mend_paces(sim);
    if (j->stopped_at != sim->decisions)
        sim->stopped[sim->stopped_count++] = job;
    j->stopped_at = sim->decisions;
}

void jobsim_add_work(struct jobsim *sim, uint32_t job, uint64_t us)
{
    if (sim->jobs[job].state != SIM_JOB_WAITS)
        violation(sim, job, "given more work though it does not wait");
    sim->jobs[job].left_us += us;
}

uint64_t jobsim_checkpoint_us(uint32_t devices)
{
    return (devices == 1 ? 7 : devices <= 8 ? 30 : 60) * 1000000ull;
}

/* ---- the moments ---- */

static void end_job(struct jobsim *sim, uint32_t job)
{
    struct sim_job *j = &sim->jobs[job];
    settle(sim, j, 0);
    give_devices(sim, job);
    ends_remove(sim, job);
    j->state = SIM_JOB_OUTSIDE;
    j->outcome->end_us = sim->now_us;
    sim->live--;
    if (j->outcome->ran_us < j->work_us)
        violation(sim, job, "ended before its work was done");
    sim->policy->finish(sim, sim->state, job);
}

/* A job of CPU only runs beside; one that no pool of this shape can hold never does. */
static void submit_job(struct jobsim *sim, uint32_t job)
{
    struct sim_job *j = &sim->jobs[job];
    if (j->outcome->fate != JOBSIM_ENDED)
        return;
    j->state = SIM_JOB_WAITS;
    sim->live++;
    sim->policy->submit(sim, sim->state, job);
}

static void decide(struct jobsim *sim)
{
    sim->decisions++;
    sim->stopped_count = 0;
    uint64_t starts = sim->starts;
    sim->tick_us = sim->policy->decide(sim, sim->state);
    for (uint32_t i = 0; i < sim->stopped_count; i++) {
        struct sim_job *j = &sim->jobs[sim->stopped[i]];
        j->outcome->preemptions += j->state == SIM_JOB_WAITS;
    }
    if (sim->tick_us <= sim->now_us)
        jobsim_violation(sim, "the policy asks for a time that is past");
    bool idle = sim->starts == starts && !sim->running && sim->next_job == sim->job_count;
    sim->idle_decisions = idle && sim->live ? sim->idle_decisions + 1 : 0;
    if (sim->idle_decisions > MAX_IDLE_DECISIONS)
        jobsim_violation(sim, "jobs wait for ever");
}

static uint64_t next_moment(const struct jobsim *sim)
{
    uint64_t at = sim->live ? sim->tick_us : JOBSIM_NEVER;
    if (sim->running)
        at = min_u64(at, sim->jobs[sim->ends[0]].end_us);
    if (sim->next_job < sim->job_count)
        at = min_u64(at, sim->jobs[sim->next_job].submit_us);
    return at;
}

static void advance(struct jobsim *sim, uint64_t to_us)
{
    uint64_t held = sim->cluster.device_count - sim->cluster.free, us = to_us - sim->now_us;
    sim->lent += (unsigned __int128)held * us;
    sim->lent_again += (unsigned __int128)sim->doubled * us;
    sim->now_us = to_us;
}

static void run_moment(struct jobsim *sim)
{
    while (sim->running && sim->jobs[sim->ends[0]].end_us == sim->now_us)
        end_job(sim, sim->ends[0]);
    if (sim->options.start_overhead)
        lose_start_overhead(sim);
    mend_paces(sim);
    while (sim->next_job < sim->job_count &&
           sim->jobs[sim->next_job].submit_us == sim->now_us)
        submit_job(sim, sim->next_job++);
    decide(sim);
}

/* What was lent is what was held, and everything is back. */
static void check_sums(struct jobsim *sim)
{
    unsigned __int128 held = 0;
    for (uint32_t i = 0; i < sim->job_count; i++)
        if (sim->jobs[i].outcome->fate == JOBSIM_ENDED)
            held += (unsigned __int128)sim->jobs[i].outcome->ran_us *
                    sim->jobs[i].trace->devices;
    if (held != sim->lent + sim->lent_again)
        jobsim_violation(sim, "the pool lent other device-time than the jobs held");
    if (sim->live)
        jobsim_violation(sim, "jobs wait, and nothing will happen any more");
    else if (sim->cluster.free != sim->cluster.device_count)
        jobsim_violation(sim, "devices are held though all jobs ended");
}

static void run_all(struct jobsim *sim)
{
    for (uint64_t at; sim->rc == 0 && (at = next_moment(sim)) != JOBSIM_NEVER;) {
        advance(sim, at);
        run_moment(sim);
    }
    if (sim->rc == 0)
        check_sums(sim);
}

/* ---- begin and end ---- */

/* Room on the clock for all work one after the other, and what rules add to it. */
#define MAX_WORK_US (UINT64_MAX / 8)

static void begin_job(struct jobsim *sim, struct sim_job *j)
{
    const struct trace_job *t = j->trace;
    bool muri = sim->options.rules == JOBSIM_MURI;
    j->work_us = t->duration_ms * (muri ? MURI_ITERATION_PERMILLE : 1000);
    j->left_us = j->work_us;
    if (t->stages != TRACE_NONE)
        j->own_ns =
            (uint64_t)sim->trace->stages[t->stages].iteration_us * MURI_ITERATION_PERMILLE;
    j->lost_us =
        muri ? muri_start_overhead_us(names_text(&sim->trace->models, t->model), t->devices)
             : 0;
    j->submit_us = t->submit_ms * 1000;
    j->outcome->start_us = JOBSIM_NEVER;
    if (!t->devices) {
        j->outcome->fate = JOBSIM_CPU;
        j->outcome->start_us = j->submit_us;
        j->outcome->end_us = j->submit_us + j->work_us;
        j->outcome->ran_us = j->work_us;
    } else if (t->devices > sim->cluster.device_count ||
               !cluster_find_best(&sim->cluster, t->devices, sim->device)) {
        j->outcome->fate = JOBSIM_REJECTED;
    }
}

/* The order in which the jobs come, into scratch. */
static void draw_order(struct jobsim *sim)
{
    struct random r = { sim->options.tie_order };
    uint32_t *order = sim->scratch, first = 0;
    for (uint32_t i = 0; i < sim->job_count; i++)
        order[i] = i;
    for (uint32_t i = 1; i <= sim->job_count && sim->options.tie_order; i++)
        if (i == sim->job_count ||
            sim->trace->jobs[i].submit_ms != sim->trace->jobs[first].submit_ms) {
            random_shuffle(&r, order + first, i - first);
            first = i;
        }
}

static bool make_room(struct jobsim *sim, struct jobsim_result *r)
{
    uint32_t n = sim->job_count, d = sim->cluster.device_count;
    r->outcomes = calloc(n, sizeof *r->outcomes);
    sim->jobs = calloc(n, sizeof *sim->jobs);
    sim->ends = malloc(n * sizeof *sim->ends);
    sim->stopped = malloc(n * sizeof *sim->stopped);
    sim->scratch = malloc(n * sizeof *sim->scratch);
    sim->device = malloc(d * sizeof *sim->device);
    sim->next_device = malloc(d * sizeof *sim->next_device);
    return r->outcomes && sim->jobs && sim->ends && sim->stopped && sim->scratch &&
           sim->device && sim->next_device;
}

static int begin(struct jobsim *sim, struct jobsim_result *r)
{
    uint64_t work_us = 0;
    if (!make_room(sim, r))
        return sl_fail(sim->err, SL_INTERNAL, "out of memory");
    draw_order(sim);
    for (uint32_t i = 0; i < sim->job_count; i++) {
        sim->jobs[i].trace = &sim->trace->jobs[sim->scratch[i]];
        sim->jobs[i].outcome = &r->outcomes[sim->scratch[i]];
        begin_job(sim, &sim->jobs[i]);
        work_us += sim->jobs[i].work_us;
        if (work_us > MAX_WORK_US)
            return sl_fail(sim->err, SL_INVALID,
                           "the work of all jobs adds up to more than 70,000 years");
    }
    if (sim->policy->create(sim, &sim->state) < 0)
        return sl_fail(sim->err, SL_INTERNAL, "out of memory");
    return 0;
}

static void conclude(const struct jobsim *sim, struct jobsim_result *r)
{
    uint64_t first = sim->jobs[0].submit_us;
    double all = (double)sim->cluster.device_count * (double)(sim->now_us - first);
    r->count = sim->job_count;
    r->decisions = sim->decisions;
    r->held_pct = all > 0 ? 100.0 * (double)sim->lent / all : 0;
}

static void sim_finish(struct jobsim *sim)
{
    if (sim->state)
        sim->policy->destroy(sim->state);
    free(sim->jobs);
    free(sim->ends);
    free(sim->stopped);
    free(sim->next_device);
    free(sim->device);
    free(sim->scratch);
    cluster_finish(&sim->cluster);
}

int jobsim_run_policy(const struct job_policy *policy, const char *name,
                      const struct trace *trace, const char *nodes,
                      const struct jobsim_options *options, struct jobsim_result *out,
                      struct sl_err *err)
{
    struct jobsim_result r = { 0 };
    struct jobsim sim = {
        .trace = trace,
        .options = *options,
        .job_count = trace->job_count,
        .policy = policy,
        .tick_us = JOBSIM_NEVER,
        .err = err,
    };
    sim.options.start_overhead &= options->rules == JOBSIM_MURI;
    int rc = cluster_open(nodes, &sim.cluster, err);
    if (rc < 0)
        return rc;
    rc = begin(&sim, &r);
    if (rc == 0)
        run_all(&sim);
    if (sim.rc < 0) {
        sl_prefix(err, "policy %s", name);
        rc = sim.rc;
    }
    if (rc == 0) {
        conclude(&sim, &r);
        *out = r;
    } else {
        jobsim_result_finish(&r);
    }
    sim_finish(&sim);
    return rc;
}

int jobsim_run(const char *policy, const struct trace *trace, const char *nodes,
               const struct jobsim_options *options, struct jobsim_result *out,
               struct sl_err *err)
{
    const struct job_policy *p = job_policy_find(policy, options->rules, err);
    return p ? jobsim_run_policy(p, policy, trace, nodes, options, out, err) : -SL_INVALID;
}

void jobsim_result_finish(struct jobsim_result *r)
{
    free(r->outcomes);
    *r = (struct jobsim_result){ 0 };
}
