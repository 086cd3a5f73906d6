/* The scores of the published policies. */
#include "scores.h"

#include <math.h>

#define MAX_CPU_MILLI 128000 /* of the largest node of openb; the sources have it fixed */
#define MAX_GPU_MILLI 8000

static int max_int(int a, int b)
{
    return a > b ? a : b;
}

/* ---- devices ---- */

static bool device_has(const struct fill_seen *n, unsigned d, const struct fill_class *c)
{
    return fill_device_has(&n->node, d, c->gpu_milli, c->gpu_mem_milli);
}

/* Memory counts as much as compute; without it all have the same. */
static int left_on(const struct fill_seen *n, unsigned d)
{
    return n->node.free[d] + FILL_WHOLE - n->node.used_mem[d];
}

static bool is_like_before(const struct fill_seen *n, unsigned d)
{
    return d && n->node.free[d] == n->node.free[d - 1] &&
           n->node.used_mem[d] == n->node.used_mem[d - 1];
}

/* The ones with the least that is enough; of equal ones the lowest indices. */
static void pick_least(const struct fill_target *t, const struct fill_seen *n,
                       const struct fill_class *c, struct random *r, struct fill_place *out)
{
    bool taken[FILL_MAX_DEVICES] = { 0 };
    for (out->count = 0; out->count < c->gpus; out->count++) {
        unsigned best = FILL_MAX_DEVICES;
        for (unsigned d = 0; d < n->node.gpus; d++)
            if (!taken[d] && device_has(n, d, c) &&
                (best == FILL_MAX_DEVICES || left_on(n, d) < left_on(n, best)))
                best = d;
        taken[best] = true;
        out->device[out->count] = (uint8_t)best;
    }
}

static void pick_any(const struct fill_target *t, const struct fill_seen *n,
                     const struct fill_class *c, struct random *r, struct fill_place *out)
{
    uint32_t fitting = 0;
    out->count = 0;
    for (unsigned d = 0; d < n->node.gpus; d++)
        fitting += device_has(n, d, c);
    for (unsigned d = 0; d < n->node.gpus && out->count < c->gpus; d++)
        if (device_has(n, d, c) && random_below(r, fitting--) < c->gpus - out->count)
            out->device[out->count++] = (uint8_t)d;
}

/* ---- scores ---- */

static int64_t gpu_milli_of(const struct fill_class *c)
{
    return (int64_t)c->gpus * c->gpu_milli;
}

/* 100 (1 - (cpuFree/C cpu/C + gpuFree/G gpu/G) / 2), C = 16 G */
static int dotprod(const struct fill_target *t, const struct fill_seen *n,
                   const struct fill_class *c)
{
    const int64_t ratio = MAX_CPU_MILLI / MAX_GPU_MILLI;
    const int64_t one = 2ll * MAX_CPU_MILLI * MAX_CPU_MILLI;
    int64_t product = (int64_t)n->node.cpu_milli * c->cpu_milli +
                      ratio * ratio * n->node.gpu_milli * gpu_milli_of(c);
    return (int)(100 * (one - product) / one);
}

/* 100 (1 - (cpuLeft/C + gpuLeft/G) / 2).  The sources then stretch the scores of one
 * decision to 0 … 100: that changes no order, as they are at most 100 apart.  Device memory,
 * where it counts, is a third term like the second. */
static int bestfit(const struct fill_target *t, const struct fill_seen *n,
                   const struct fill_class *c)
{
    const int64_t ratio = MAX_CPU_MILLI / MAX_GPU_MILLI;
    int64_t one = 2ll * MAX_CPU_MILLI;
    int64_t left = (int64_t)n->node.cpu_milli - c->cpu_milli +
                   ratio * (n->node.gpu_milli - gpu_milli_of(c));
    if (c->gpu_mem_milli) {
        int64_t mem_left = (int64_t)n->node.gpus * FILL_WHOLE - c->gpus * c->gpu_mem_milli;
        for (unsigned d = 0; d < n->node.gpus; d++)
            mem_left -= n->node.used_mem[d];
        left += ratio * mem_left;
        one += MAX_CPU_MILLI;
    }
    return (int)(100 * (one - left) / one);
}

/* Devices in use first, then free ones on nodes in use, idle nodes last. */
static int packing(const struct fill_target *t, const struct fill_seen *n,
                   const struct fill_class *c)
{
    struct fill_place p;
    int whole = 0, fresh = 0, percent = 0;
    if (!c->gpus)
        return 0;
    for (unsigned d = 0; d < n->node.gpus; d++)
        whole += n->node.free[d] == FILL_WHOLE;
    if (whole == n->node.gpus)
        return max_int(33 - whole, whole);
    pick_least(t, n, c, NULL, &p);
    for (uint32_t i = 0; i < p.count; i++) {
        fresh += n->node.free[p.device[i]] == FILL_WHOLE;
        percent += n->node.free[p.device[i]] / (FILL_WHOLE / 100);
    }
    return fresh ? max_int(50 - fresh, 33) : max_int(50, 100 - percent / 10);
}

uint32_t fill_sort(const struct fill_class *c)
{
    return !c->gpus ? 0 : c->gpu_milli < FILL_WHOLE ? 1 : 1u << c->gpus;
}

/* Pods of one sort together. */
static int clustering(const struct fill_target *t, const struct fill_seen *n,
                      const struct fill_class *c)
{
    uint32_t sort = fill_sort(c);
    if (!c->gpus)
        return 0;
    int base = 25 * (MAX_GPU_MILLI - (int)n->node.gpu_milli) / MAX_GPU_MILLI;
    int among = n->sorts == sort ? 75 : n->sorts & sort ? 50 : n->sorts ? 0 : 25;
    return base + among;
}

/* The score of having `after` where `before` was. */
static int gradient(const struct fill_target *t, const struct fill_seen *before,
                    const struct fill_node *after)
{
    double less = (double)before->waste - (double)fill_waste(t, after);
    return (int)(100 / (1 + exp(-less / (FILL_WHOLE * (double)t->total))));
}

static int try_devices(const struct fill_target *t, const struct fill_seen *n,
                       const struct fill_class *c, const struct fill_place *p)
{
    struct fill_node after = n->node;
    fill_take(&after, c, p);
    return gradient(t, n, &after);
}

/* The device of a share that gives the best score, the lowest index of equal ones. */
static int best_share(const struct fill_target *t, const struct fill_seen *n,
                      const struct fill_class *c, struct fill_place *out)
{
    int best = -1;
    for (unsigned d = 0; d < n->node.gpus; d++) {
        struct fill_place p = { .count = 1, .device = { (uint8_t)d } };
        /* what has as much free as the one before it gives the same */
        if (!device_has(n, d, c) || is_like_before(n, d))
            continue;
        int score = try_devices(t, n, c, &p);
        if (score > best) {
            best = score;
            *out = p;
        }
    }
    return best;
}

static int fgd_try(const struct fill_target *t, const struct fill_seen *n,
                   const struct fill_class *c, struct fill_place *out)
{
    if (fill_sort(c) == 1)
        return best_share(t, n, c, out);
    pick_least(t, n, c, NULL, out);
    return try_devices(t, n, c, out);
}

static int fgd(const struct fill_target *t, const struct fill_seen *n,
               const struct fill_class *c)
{
    struct fill_place p;
    return fgd_try(t, n, c, &p);
}

static void fgd_pick(const struct fill_target *t, const struct fill_seen *n,
                     const struct fill_class *c, struct random *r, struct fill_place *out)
{
    fgd_try(t, n, c, out);
}

int fill_growth_w(const struct fill_target *t, const struct fill_seen *n,
                  const struct fill_class *c)
{
    struct fill_node after = n->node;
    struct fill_place p;
    fgd_try(t, n, c, &p);
    fill_take(&after, c, &p);
    return (int)(fill_watts(&after) - fill_watts(&n->node));
}

const struct fill_score fill_random = { NULL, pick_any },
                        fill_dotprod = { dotprod, pick_least },
                        fill_clustering = { clustering, pick_least },
                        fill_packing = { packing, pick_least },
                        fill_bestfit = { bestfit, pick_least },
                        fill_fgd = { fgd, fgd_pick }, fill_pwr = { fgd, fgd_pick, 1000 },
                        fill_pwr500 = { fgd, fgd_pick, 500 },
                        fill_pwr200 = { fgd, fgd_pick, 200 },
                        fill_pwr100 = { fgd, fgd_pick, 100 },
                        fill_pwr50 = { fgd, fgd_pick, 50 };
