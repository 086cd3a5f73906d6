/* The target workload, and what of a node it cannot use. */
#include <stdlib.h>
#include <string.h>

#include "sim/fill.h"

#define COVERED_PCT 95

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* 0 for pods of the same sort; host memory is no part of it. */
static int by_sort(const void *left, const void *right, void *specs)
{
    const struct fill_shape *a = left, *b = right;
    int c = compare(a->cpu_milli, b->cpu_milli);
    c = c ? c : compare(a->gpu_milli, b->gpu_milli);
    c = c ? c : compare(a->gpus, b->gpus);
    c = c ? c : compare(a->gpu_mem_milli, b->gpu_mem_milli);
    return c ? c : strcmp(names_text(specs, a->spec), names_text(specs, b->spec));
}

/* The most frequent first, the larger first among equals. */
static int by_rank(const void *left, const void *right, void *specs)
{
    const struct fill_shape *a = left, *b = right;
    int c = compare(b->weight, a->weight);
    return c ? c : by_sort(right, left, specs);
}

/* Neighbours of the same sort become one. */
static uint32_t merge(struct fill_shape *shapes, uint32_t count, struct names *specs)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (kept && by_sort(&shapes[kept - 1], &shapes[i], specs) == 0)
            shapes[kept - 1].weight++;
        else
            shapes[kept++] = shapes[i];
    return kept;
}

int fill_target_of(const struct openb_pods *pods, struct fill_target *out,
                   struct sl_err *err)
{
    struct names *specs = (struct names *)&pods->specs; /* only read */
    struct fill_shape *shapes = calloc(pods->count, sizeof *shapes);
    struct fill_target t = { .shapes = shapes };
    if (!shapes)
        return sl_fail(err, SL_INTERNAL, "out of memory");
    for (uint32_t i = 0; i < pods->count; i++) {
        const struct openb_pod *p = &pods->pods[i];
        shapes[i] =
            (struct fill_shape){ p->models, p->cpu_milli, p->gpus,         p->gpu_milli,
                                 1,         p->spec,      p->gpu_mem_milli };
    }
    qsort_r(shapes, pods->count, sizeof *shapes, by_sort, specs);
    uint32_t sorts = merge(shapes, pods->count, specs);
    qsort_r(shapes, sorts, sizeof *shapes, by_rank, specs);
    while (t.count < sorts && t.total * 100 < (uint64_t)pods->count * COVERED_PCT)
        t.total += shapes[t.count++].weight;
    *out = t;
    return 0;
}

void fill_target_finish(struct fill_target *t)
{
    free(t->shapes);
    *t = (struct fill_target){ 0 };
}

/* All that is idle, if the node cannot take such a pod; else what lies on devices with
 * too little for it. */
static uint32_t shape_waste(const struct fill_shape *s, const struct fill_node *n)
{
    uint32_t devices = 0, usable = 0;
    if (!s->gpus || s->cpu_milli > n->cpu_milli || (s->models && !(s->models & n->model)))
        return n->gpu_milli;
    for (unsigned d = 0; d < FILL_MAX_DEVICES; d++) {
        bool enough = fill_device_has(n, d, s->gpu_milli, s->gpu_mem_milli);
        devices += enough;
        usable += enough ? n->free[d] : 0;
    }
    return devices < s->gpus ? n->gpu_milli : n->gpu_milli - usable;
}

uint64_t fill_waste(const struct fill_target *t, const struct fill_node *n)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < t->count; i++)
        sum += (uint64_t)t->shapes[i].weight * shape_waste(&t->shapes[i], n);
    return sum;
}
