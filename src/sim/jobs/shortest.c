/*
 * Shortest remaining time (srtf) or service (srsf) first, pre-emptive, with the run
 * times known.
 *
 * Muri's: at every event all jobs are sorted and placed anew in that order on the empty
 * pool; who finds no room waits.
 *
 * Helios': every second all jobs are sorted, and in that order they are given devices
 * by number; a running job that gets none is stopped at the price of a checkpoint, then
 * waiting ones that got some look for room, which they may not find.  Here it is done
 * when a job came or ended.  The seconds between give the same outcome: the order then
 * changes only by running jobs that pass waiting ones, and who ran had its devices already.
 */
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "policy.h"

struct live {
    uint64_t key;   /* at the decision at hand */
    uint64_t since; /* of equal keys: waiting ones first, then the longest so */
    uint32_t job;
    bool runs;
};

struct shortest {
    struct live *live; /* in the order of the last decision, new ones behind */
    uint32_t count;
    uint64_t turn;
};

static int shortest_create(struct jobsim *sim, void **state)
{
    struct shortest *s = calloc(1, sizeof *s);
    *state = s;
    if (!s)
        return -1;
    s->live = malloc(sim->job_count * sizeof *s->live);
    return s->live ? 0 : -1;
}

static void shortest_destroy(void *state)
{
    struct shortest *s = state;
    free(s->live);
    free(s);
}

static void shortest_submit(struct jobsim *sim, void *state, uint32_t job)
{
    struct shortest *s = state;
    s->live[s->count++] = (struct live){ .job = job, .since = s->turn++ };
}

static void shortest_finish(struct jobsim *sim, void *state, uint32_t job)
{
    struct shortest *s = state;
    uint32_t i = 0;
    while (s->live[i].job != job)
        i++;
    memmove(&s->live[i], &s->live[i + 1], (--s->count - i) * sizeof *s->live);
}

/* What its key counts as: 1, or its devices. */
static uint32_t weight(const struct jobsim *sim, uint32_t job)
{
    return sim->policy->config ? sim->jobs[job].trace->devices : 1;
}

static void set_keys(struct jobsim *sim, struct shortest *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t job = s->live[i].job;
        s->live[i].key = device_time(jobsim_left_us(sim, job), weight(sim, job));
    }
}

static bool by_key(const struct live *a, const struct live *b)
{
    return a->key < b->key;
}

static bool by_key_and_state(const struct live *a, const struct live *b)
{
    if (a->key != b->key)
        return a->key < b->key;
    return a->runs != b->runs ? b->runs : a->since < b->since;
}

/* Insertion, which is stable: the order changes little from decision to decision. */
static void sort(struct shortest *s, bool (*less)(const struct live *, const struct live *))
{
    for (uint32_t i = 1; i < s->count; i++) {
        struct live x = s->live[i];
        uint32_t at = i;
        for (; at && less(&x, &s->live[at - 1]); at--)
            s->live[at] = s->live[at - 1];
        s->live[at] = x;
    }
}

/* ---- Muri's ---- */

static uint64_t muri_decide(struct jobsim *sim, void *state)
{
    struct shortest *s = state;
    set_keys(sim, s);
    sort(s, by_key);
    while (sim->running)
        jobsim_stop(sim, sim->ends[0]);
    for (uint32_t i = 0; i < s->count && sim->cluster.free; i++)
        jobsim_try_start(sim, s->live[i].job);
    return JOBSIM_NEVER;
}

/* ---- Helios' ---- */

static void set_state(struct shortest *s, struct live *l, bool runs)
{
    l->runs = runs;
    l->since = s->turn++;
}

/* Stops who gets no device; marks who gets some and waits, by key 1 (others 0). */
static void share_out(struct jobsim *sim, struct shortest *s)
{
    uint32_t quota = sim->cluster.device_count;
    for (uint32_t i = 0; i < s->count; i++) {
        struct live *l = &s->live[i];
        uint32_t devices = sim->jobs[l->job].trace->devices;
        bool has = devices <= quota;
        quota -= has ? devices : 0;
        if (l->runs && !has) {
            jobsim_stop(sim, l->job);
            jobsim_add_work(sim, l->job, jobsim_checkpoint_us(devices));
            set_state(s, l, false);
            l->key = 0;
        } else {
            l->key = has && !l->runs;
        }
    }
}

static uint64_t helios_decide(struct jobsim *sim, void *state)
{
    struct shortest *s = state;
    set_keys(sim, s);
    sort(s, by_key_and_state);
    share_out(sim, s);
    for (uint32_t i = 0; i < s->count; i++)
        if (s->live[i].key && jobsim_try_start(sim, s->live[i].job))
            set_state(s, &s->live[i], true);
    return JOBSIM_NEVER;
}

#define SHORTEST(decide, by_service)                                                 \
    {                                                                                \
        shortest_create, shortest_submit, shortest_finish, decide, shortest_destroy, \
            by_service                                                               \
    }

static const bool service = true;
const struct job_policy job_policy_srtf_muri = SHORTEST(muri_decide, NULL);
const struct job_policy job_policy_srsf_muri = SHORTEST(muri_decide, &service);
const struct job_policy job_policy_srtf_helios = SHORTEST(helios_decide, NULL);
const struct job_policy job_policy_srsf_helios = SHORTEST(helios_decide, &service);
