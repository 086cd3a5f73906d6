/* Paces in common, and the host with whom a job gains most. */
#include "share.h"

#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

#define PACE       1000000 /* of a job alone */
#define LEAST_GAIN (PACE / 10)

struct share {
    uint32_t *host; /* of each job */
    uint32_t *kind; /* of each: jobs with the same stages and devices */
    bool *refused;  /* of each kind: no host gains by it */
    uint32_t kinds;
};

static bool is_alike(const struct jobsim *sim, uint32_t a, uint32_t b)
{
    const struct trace_job *x = sim->jobs[a].trace, *y = sim->jobs[b].trace;
    if (x->devices != y->devices || x->stages == TRACE_NONE || y->stages == TRACE_NONE)
        return x->devices == y->devices && x->stages == y->stages;
    const struct trace_stages *p = &sim->trace->stages[x->stages],
                              *q = &sim->trace->stages[y->stages];
    return p->iteration_us == q->iteration_us &&
           !memcmp(p->stage_us, q->stage_us, sizeof p->stage_us);
}

static int find_kinds(struct share *s, const struct jobsim *sim)
{
    uint32_t *first = malloc(sim->job_count * sizeof *first);
    if (!first)
        return -1;
    for (uint32_t job = 0; job < sim->job_count; job++) {
        uint32_t k = 0;
        while (k < s->kinds && !is_alike(sim, first[k], job))
            k++;
        if (k == s->kinds)
            first[s->kinds++] = job;
        s->kind[job] = k;
    }
    free(first);
    return 0;
}

struct share *share_create(const struct jobsim *sim)
{
    struct share *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->host = malloc(sim->job_count * sizeof *s->host);
    s->kind = malloc(sim->job_count * sizeof *s->kind);
    s->refused = calloc(sim->job_count, sizeof *s->refused);
    if (!s->host || !s->kind || !s->refused || find_kinds(s, sim)) {
        share_destroy(s);
        return NULL;
    }
    for (uint32_t job = 0; job < sim->job_count; job++)
        s->host[job] = job;
    return s;
}

void share_destroy(struct share *s)
{
    if (!s)
        return;
    free(s->host);
    free(s->kind);
    free(s->refused);
    free(s);
}

uint32_t share_host(const struct share *s, uint32_t job)
{
    return s->host[job];
}

void share_set_host(struct share *s, uint32_t job, uint32_t host)
{
    s->host[job] = host;
}

void share_forget(struct share *s)
{
    memset(s->refused, 0, s->kinds * sizeof *s->refused);
}

uint32_t share_guests(const struct share *s, const struct jobsim *sim, uint32_t host,
                      uint32_t *guest)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < sim->running; i++)
        if (sim->ends[i] != host && s->host[sim->ends[i]] == host)
            guest[count++] = sim->ends[i];
    return count;
}

/* ---- who is looked at first ---- */

static uint64_t service_left(const struct jobsim *sim, uint32_t job)
{
    return device_time(jobsim_left_us(sim, job), sim->jobs[job].trace->devices);
}

static int by_service(const void *left, const void *right, void *ctx)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    uint64_t x = service_left(ctx, a), y = service_left(ctx, b);
    return x != y ? (x > y) - (x < y) : (a > b) - (a < b);
}

uint32_t share_list(struct share *s, const struct jobsim *sim, enum sim_job_state state,
                    bool guests, uint32_t *job)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < sim->next_job; i++)
        if (sim->jobs[i].state == state && (!guests || s->host[i] != i))
            job[count++] = i;
    qsort_r(job, count, sizeof *job, by_service, (void *)sim);
    return count;
}

/* ---- paces ---- */

static int64_t pace_of(const struct jobsim *sim, const uint32_t *job, uint32_t count)
{
    const struct trace_stages *stages[MURI_MOST_PARTNERS];
    int64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        stages[i] = &sim->trace->stages[sim->jobs[job[i]].trace->stages];
    uint64_t cycle_ns = muri_cycle_ns(stages, count);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t own_ns = sim->jobs[job[i]].own_ns;
        sum += (int64_t)((unsigned __int128)own_ns * PACE / max_u64(own_ns, cycle_ns));
    }
    return sum;
}

/* What the sum of paces wins by the job; less than nothing where it cannot be. */
static int64_t gain_of(const struct share *s, const struct jobsim *sim, uint32_t job,
                       uint32_t host)
{
    uint32_t all[MURI_MOST_PARTNERS + 1], count = 0;
    if (s->host[host] != host ||
        sim->jobs[host].trace->devices != sim->jobs[job].trace->devices)
        return -1;
    for (uint32_t i = host; count == 0 || i != host; i = sim->jobs[i].partner)
        all[count++] = i;
    if (count == MURI_MOST_PARTNERS)
        return -1;
    all[count] = job;
    return pace_of(sim, all, count + 1) - pace_of(sim, all, count);
}

uint32_t share_find(struct share *s, const struct jobsim *sim, uint32_t job)
{
    uint32_t best = JOBSIM_NONE;
    int64_t most = LEAST_GAIN - 1;
    if (!sim->jobs[job].own_ns || s->refused[s->kind[job]])
        return JOBSIM_NONE;
    for (uint32_t i = 0; i < sim->running; i++) {
        int64_t gain = gain_of(s, sim, job, sim->ends[i]);
        if (gain > most || (gain == most && best != JOBSIM_NONE && sim->ends[i] < best)) {
            most = gain;
            best = sim->ends[i];
        }
    }
    s->refused[s->kind[job]] = best == JOBSIM_NONE;
    return best;
}
