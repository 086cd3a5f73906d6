/*
 * What Rivendile/Muri's simulator (commit 4e69a78, Apache-2.0) takes from measurements: start
 * overheads, and how long an iteration takes of jobs that take turns on the same GPUs.
 *
 * An iteration loads data (resource_time_0), computes on the GPU (_1), then talks to the other
 * GPUs (_2).  Jobs that share GPUs go round through four slots, each one slot behind the one
 * before it: loading has two of them, computing and talking one each.  A slot ends when what
 * computes and talks in it is done, and what ends loading with it; where the border between
 * the two slots of loading lies is free, so that two jobs next to each other may load at the
 * same time.  The cycle is what four slots take once that repeats, in the order of the jobs
 * that makes it least.  Two jobs may also change places as wholes: one loads while the other
 * computes and talks.  All do one iteration a cycle; their measured slowdown is a factor by
 * their number.
 */
#include <string.h>

#include "core/macros.h"
#include "policy.h"

#define OTHER_MODEL_S 10 /* what their simulator takes for a model without a row */

static const struct {
    const char *model;
    uint8_t seconds[6]; /* on up to 1, 3, 7, 15, 31 GPUs, and more */
} overheads[] = {
    { "vgg16", { 7, 7, 8, 9, 9, 10 } },     { "vgg19", { 7, 7, 8, 9, 10, 10 } },
    { "resnet18", { 4, 5, 5, 7, 7, 7 } },   { "shufflenet_v2_x1_0", { 4, 4, 5, 5, 7, 8 } },
    { "bert", { 10, 10, 10, 10, 10, 10 } }, { "gpt2", { 10, 10, 10, 10, 10, 10 } },
    { "a2c", { 38, 39, 39, 46, 46, 46 } },  { "dqn", { 5, 5, 6, 6, 8, 8 } },
};

uint64_t muri_start_overhead_us(const char *model, uint32_t devices)
{
    unsigned column = 0;
    while (column < 5 && devices >= 2u << column)
        column++;
    for (size_t i = 0; i < ARRAY_LEN(overheads); i++)
        if (!strcmp(model, overheads[i].model))
            return overheads[i].seconds[column] * 1000000u;
    return OTHER_MODEL_S * 1000000u;
}

/* ---- the common iteration ---- */

enum { DATA, COMPUTE, TALK, SLOTS = 4, ROUNDS = 2 };

/* Permille, of 2, 3, 4 jobs; the factor of one job alone is in none of them. */
static const uint32_t slowdown[] = { 0, 0, 1330, 1500, 1370 };
#define ALONE 1015u

/* Their simulator takes the cycle as settled when it changes by less than a thousandth. */
static bool is_settled(uint64_t a, uint64_t b)
{
    return (a > b ? a - b : b - a) * 1000 <= max_u64(a, b);
}

static uint64_t stage_of(const struct trace_stages *const *jobs, const unsigned *order,
                         uint32_t count, unsigned at, unsigned stage)
{
    return at % SLOTS < count ? jobs[order[at % SLOTS]]->stage_us[stage] : 0;
}

static uint64_t cycle_in_order(const struct trace_stages *const *jobs,
                               const unsigned *order, uint32_t count)
{
    uint64_t end[SLOTS * ROUNDS + 1] = { 0 }; /* of each slot, the one before first */
    for (unsigned i = 0; i < SLOTS * ROUNDS; i++) {
        uint64_t at = end[i] + stage_of(jobs, order, count, i + 1, TALK);
        at = max_u64(at, end[i] + stage_of(jobs, order, count, i + 2, COMPUTE));
        if (i)
            at = max_u64(at, end[i - 1] + stage_of(jobs, order, count, i + 3, DATA));
        end[i + 1] = at;
        if (i >= SLOTS && is_settled(at - end[i + 1 - SLOTS], end[i] - end[i - SLOTS]))
            return at - end[i + 1 - SLOTS];
    }
    return end[SLOTS * ROUNDS] - end[SLOTS * (ROUNDS - 1)];
}

static uint64_t best_cycle(const struct trace_stages *const *jobs, unsigned *order,
                           uint32_t count, uint32_t fixed)
{
    if (fixed == count)
        return cycle_in_order(jobs, order, count);
    uint64_t best = UINT64_MAX;
    for (uint32_t i = fixed; i < count; i++) {
        unsigned job = order[fixed];
        order[fixed] = order[i];
        order[i] = job;
        best = min_u64(best, best_cycle(jobs, order, count, fixed + 1));
        order[i] = order[fixed];
        order[fixed] = job;
    }
    return best;
}

static uint64_t as_wholes(const uint32_t *a, const uint32_t *b)
{
    return max_u64(a[DATA], (uint64_t)b[COMPUTE] + b[TALK]) +
           max_u64(b[DATA], (uint64_t)a[COMPUTE] + a[TALK]);
}

uint64_t muri_cycle_ns(const struct trace_stages *const *jobs, uint32_t count)
{
    unsigned order[MURI_MOST_PARTNERS] = { 0, 1, 2, 3 };
    if (count == 1)
        return (uint64_t)jobs[0]->iteration_us * ALONE;
    uint64_t cycle_us = best_cycle(jobs, order, count, 0);
    if (count == 2)
        cycle_us = min_u64(cycle_us, as_wholes(jobs[0]->stage_us, jobs[1]->stage_us));
    return cycle_us * slowdown[count] * 1000 / ALONE;
}
