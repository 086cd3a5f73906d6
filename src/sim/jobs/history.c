/* The history of owners: a hash of kinds of jobs with their last runs. */
#include "history.h"

#include <stdlib.h>

#include "core/macros.h"

#define NOTHING_KNOWN_US 3600000000

int history_init(struct history *h, const struct trace *trace)
{
    *h = (struct history){ .slots = 64, .owner_count = trace->owners.count };
    while (h->slots < 2 * (uint64_t)trace->job_count)
        h->slots *= 2;
    h->kinds = calloc(h->slots, sizeof *h->kinds);
    h->owners = calloc(h->owner_count + 2, sizeof *h->owners);
    return h->kinds && h->owners ? 0 : -1;
}

void history_finish(struct history *h)
{
    free(h->kinds);
    free(h->owners);
    *h = (struct history){ 0 };
}

/* Its slot, or the free one where it belongs. */
static struct history_kind *find(const struct history *h, const struct trace_job *job)
{
    uint64_t hash = job->owner;
    hash = (hash * 0x9e3779b97f4a7c15ull) ^ job->model;
    hash = (hash * 0x9e3779b97f4a7c15ull) ^ job->devices;
    hash *= 0x9e3779b97f4a7c15ull;
    for (uint32_t at = (uint32_t)(hash >> 32);; at++) {
        struct history_kind *k = &h->kinds[at & (h->slots - 1)];
        if (!k->runs || (k->owner == job->owner && k->model == job->model &&
                         k->devices == job->devices))
            return k;
    }
}

/* Jobs without an owner count as one owner's. */
static struct history_mean *owner_of(const struct history *h, const struct trace_job *job)
{
    return &h->owners[job->owner < h->owner_count ? job->owner : h->owner_count];
}

static void count(struct history_mean *m, uint64_t ran_us)
{
    m->runs++;
    m->sum_us += ran_us;
}

void history_add(struct history *h, const struct trace_job *job, uint64_t ran_us)
{
    struct history_kind *k = find(h, job);
    k->owner = job->owner;
    k->model = job->model;
    k->devices = job->devices;
    k->last_us[k->runs++ % HISTORY_RUNS] = ran_us;
    count(owner_of(h, job), ran_us);
    count(&h->owners[h->owner_count + 1], ran_us);
}

uint64_t history_predict_us(const struct history *h, const struct trace_job *job)
{
    const struct history_kind *k = find(h, job);
    uint32_t runs = (uint32_t)min_u64(k->runs, HISTORY_RUNS);
    if (runs) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < runs; i++)
            sum += k->last_us[i];
        return sum / runs;
    }
    const struct history_mean *owner = owner_of(h, job),
                              *all = &h->owners[h->owner_count + 1];
    if (owner->runs)
        return owner->sum_us / owner->runs;
    return all->runs ? all->sum_us / all->runs : NOTHING_KNOWN_US;
}
