/* The target: from a list of shapes to lanes. */
#include "target.h"

#include <stdlib.h>
#include <string.h>

/* A shape's part in what is asked of devices, scaled so that products of it
 * with compute and capacity stay within 64 bits. */
struct part {
    const struct pool_ask *ask;
    uint64_t weight;
};

#define PART_SUM (1u << 20)

static int compare_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* Most popular first; among equals the larger, so that the order is a matter of
 * the shapes alone. */
static int compare_parts(const void *x, const void *y)
{
    const struct part *a = x, *b = y;
    int c = compare_u64(b->weight, a->weight);
    c = c ? c : compare_u64(b->ask->cpu_milli, a->ask->cpu_milli);
    c = c ? c : compare_u64(b->ask->permille, a->ask->permille);
    c = c ? c : compare_u64(b->ask->devices, a->ask->devices);
    c = c ? c : compare_u64(b->ask->mem_bytes, a->ask->mem_bytes);
    c = c ? c : compare_u64(b->ask->host_mem_bytes, a->ask->host_mem_bytes);
    return c ? c : compare_u64(b->ask->models, a->ask->models);
}

static uint32_t take_parts(const struct place_shape *shapes, uint32_t count,
                           struct part *part)
{
    uint64_t total = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++)
        if (shapes[i].ask.devices && !shapes[i].ask.lower)
            total += shapes[i].popularity;
    for (uint32_t i = 0; i < count; i++)
        if (shapes[i].ask.devices && !shapes[i].ask.lower && shapes[i].popularity)
            part[n++] = (struct part){ &shapes[i].ask,
                                       (uint64_t)((unsigned __int128)shapes[i].popularity *
                                                  PART_SUM / total) };
    qsort(part, n, sizeof *part, compare_parts);
    return n;
}

/* ---- fragmentation ---- */

static void fill_frag(struct target *t, const struct part *part, uint32_t count)
{
    uint64_t covered = 0, total = 0;
    uint32_t lanes = 0;
    for (uint32_t i = 0; i < count; i++)
        total += part[i].weight;
    while (lanes < count && lanes < TARGET_LANES &&
           covered * 1000 < total * TARGET_COVER_PERMILLE)
        covered += part[lanes++].weight;
    for (uint32_t i = 0; i < TARGET_LANES; i++) {
        /* a lane without a shape has no weight */
        const struct pool_ask *a = part[i < lanes ? i : 0].ask;
        t->shape[i] = *a;
        t->frag.permille[i] = (int16_t)a->permille;
        t->frag.devices[i] = (int16_t)a->devices;
        t->frag.mem[i] = lane_up(a->mem_bytes, LANE_MEM_UNIT);
        t->frag.cpu[i] = lane_up(a->cpu_milli, LANE_CPU_UNIT);
        t->frag.host[i] = lane_up(a->host_mem_bytes, LANE_HOST_UNIT);
        t->frag.weight[i] =
            i < lanes ? (int16_t)(part[i].weight * LANE_WEIGHT_SUM / covered) : 0;
        for (uint32_t m = 0; m < POOL_MAX_MODELS; m++)
            t->frag.model_ok[m][i] = !a->models || a->models >> m & 1 ? -1 : 0;
    }
}

/* ---- waste ---- */

/* A fixed sequence: the same target gives the same lanes, everywhere. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ull; /* splitmix64, public domain */
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static const struct pool_ask *part_at(const struct part *part, uint32_t count,
                                      uint64_t position)
{
    for (uint32_t i = 0; i < count; i++) {
        if (position < part[i].weight)
            return part[i].ask;
        position -= part[i].weight;
    }
    return part[0].ask;
}

/* Each draw is stratified: its lanes take one shape from each 1/WASTE_LANES of
 * the popularity, in random order. */
static void draw_shapes(struct target *t, const struct part *part, uint32_t count)
{
    uint64_t random = 1, total = 0;
    for (uint32_t i = 0; i < count; i++)
        total += part[i].weight;
    for (uint32_t d = 0; d < WASTE_DRAWS; d++) {
        uint32_t stratum[WASTE_LANES];
        for (uint32_t i = 0; i < WASTE_LANES; i++) {
            uint32_t j = (uint32_t)(next_random(&random) % (i + 1));
            stratum[i] = stratum[j];
            stratum[j] = i;
        }
        for (uint32_t i = 0; i < WASTE_LANES; i++) {
            uint64_t within = next_random(&random) % PART_SUM;
            uint64_t position = (stratum[i] * (uint64_t)PART_SUM + within) * total /
                                ((uint64_t)WASTE_LANES * PART_SUM);
            t->draw[d][i] = *part_at(part, count, position);
        }
    }
}

static void fill_waste(struct target *t)
{
    for (uint32_t d = 0; d < WASTE_DRAWS; d++)
        for (uint32_t i = 0; i < WASTE_LANES; i++) {
            const struct pool_ask *a = &t->draw[d][i];
            t->waste.permille[d][i] = (int16_t)a->permille;
            t->waste.devices[d][i] = (int16_t)a->devices;
            t->waste.mem[d][i] = lane_up(a->mem_bytes, LANE_MEM_UNIT);
            t->waste.cpu[d][i] = lane_up(a->cpu_milli, LANE_CPU_UNIT);
            t->waste.host[d][i] = lane_up(a->host_mem_bytes, LANE_HOST_UNIT);
            for (uint32_t m = 0; m < POOL_MAX_MODELS; m++)
                t->waste.model_ok[m][d][i] = !a->models || a->models >> m & 1 ? -1 : 0;
        }
}

/* ---- price ---- */

struct supply {
    uint64_t devices[POOL_MAX_MODELS];
    uint64_t mem_bytes[POOL_MAX_MODELS]; /* of the largest */
    uint64_t total;
};

static void count_supply(const struct pool *p, struct supply *s)
{
    *s = (struct supply){ 0 };
    for (uint32_t i = 0; i < p->node_count; i++)
        for (uint32_t k = 0; k < p->node[i].is.device_count; k++) {
            const struct pool_device *d = &p->node[i].is.device[k];
            s->devices[d->model]++;
            s->total++;
            if (s->mem_bytes[d->model] < d->mem_bytes)
                s->mem_bytes[d->model] = d->mem_bytes;
        }
}

/* The models that will do, memory included; their devices. */
static uint64_t choice_of(const struct pool_ask *a, const struct supply *s,
                          uint64_t *devices)
{
    uint64_t models = 0;
    *devices = 0;
    for (uint32_t m = 0; m < POOL_MAX_MODELS; m++)
        if (s->devices[m] && (!a->models || a->models >> m & 1) &&
            a->mem_bytes <= s->mem_bytes[m]) {
            models |= 1ull << m;
            *devices += s->devices[m];
        }
    return models;
}

/*
 * A model's price: the demand that has little else to go to, spread over what it
 * may use, as a part of the model's capacity if all demand filled the pool; less
 * that of the least wanted model.  Who could go anywhere leaves such a model
 * alone while there is room elsewhere.
 */
static void set_prices(struct target *t, const struct pool *p, const struct part *part,
                       uint32_t count)
{
    struct supply s;
    uint64_t wanted[POOL_MAX_MODELS] = { 0 }, all = 0, least = UINT64_MAX;
    count_supply(p, &s);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t devices,
            work = part[i].weight * part[i].ask->devices * part[i].ask->permille;
        uint64_t models = choice_of(part[i].ask, &s, &devices);
        all += work;
        if (devices * 10 > s.total * 9)
            continue;
        for (uint32_t m = 0; m < POOL_MAX_MODELS; m++)
            if (models >> m & 1)
                wanted[m] += work / devices; /* for each device */
    }
    for (uint32_t m = 0; m < POOL_MAX_MODELS; m++)
        if (s.devices[m] && wanted[m] < least)
            least = wanted[m];
    for (uint32_t m = 0; m < POOL_MAX_MODELS; m++)
        t->price_permille[m] =
            s.devices[m] && all
                ? (int32_t)((unsigned __int128)(wanted[m] - least) * s.total * 1000 / all)
                : 0;
}

/* ---- kinds ---- */

int target_add_kinds(struct target *t, const struct pool *p)
{
    if (t->kind_count == p->kind_count)
        return 0;
    void *frag = realloc(t->kind_frag, p->kind_count * sizeof *t->kind_frag);
    if (frag)
        t->kind_frag = frag;
    void *waste = realloc(t->kind_waste, p->kind_count * sizeof *t->kind_waste);
    if (waste)
        t->kind_waste = waste;
    if (!frag || !waste)
        return -SL_INTERNAL;
    for (; t->kind_count < p->kind_count; t->kind_count++) {
        uint32_t k = t->kind_count;
        for (uint32_t i = 0; i < TARGET_LANES; i++)
            t->kind_frag[k][i] = -pool_kind_suits(p, &t->shape[i], k);
        for (uint32_t d = 0; d < WASTE_DRAWS; d++)
            for (uint32_t i = 0; i < WASTE_LANES; i++)
                t->kind_waste[k][d][i] = -pool_kind_suits(p, &t->draw[d][i], k);
    }
    return 0;
}

/* ---- the whole ---- */

int target_create(const struct pool *p, const struct place_shape *shapes, uint32_t count,
                  struct target **out, struct sl_err *err)
{
    struct part *part = malloc((count ? count : 1) * sizeof *part);
    struct target *t = calloc(1, sizeof *t);
    int rc = 0;
    if (!part || !t) {
        rc = sl_fail(err, SL_INTERNAL, "placement target: out of memory");
        goto done;
    }
    uint32_t parts = take_parts(shapes, count, part);
    if (!parts || !part[0].weight) {
        rc = sl_fail(err, SL_INVALID, "placement target: no shape asks for a device");
        goto done;
    }
    fill_frag(t, part, parts);
    draw_shapes(t, part, parts);
    fill_waste(t);
    set_prices(t, p, part, parts);
    if (target_add_kinds(t, p))
        rc = sl_fail(err, SL_INTERNAL, "placement target: out of memory");
done:
    free(part);
    if (rc) {
        target_destroy(t);
        return rc;
    }
    *out = t;
    return 0;
}

void target_destroy(struct target *t)
{
    if (!t)
        return;
    free(t->kind_frag);
    free(t->kind_waste);
    free(t);
}
