/* Nodes and pods of openb in one numbering, and what it means to take room on a node. */
#include <stdlib.h>

#include "sim/fill.h"
#include "sim/random.h"

bool fill_fits(const struct fill_node *n, const struct fill_class *c)
{
    uint32_t devices = 0;
    if (c->cpu_milli > n->cpu_milli || c->memory_mib > n->memory_mib ||
        n->pods >= FILL_MAX_PODS)
        return false;
    if (!c->gpus)
        return true;
    if (c->models && !(c->models & n->model))
        return false;
    for (unsigned d = 0; d < FILL_MAX_DEVICES; d++)
        devices += fill_device_has(n, d, c->gpu_milli, c->gpu_mem_milli);
    return devices >= c->gpus;
}

void fill_take(struct fill_node *n, const struct fill_class *c, const struct fill_place *p)
{
    n->cpu_milli -= c->cpu_milli;
    n->memory_mib -= c->memory_mib;
    n->pods++;
    for (uint32_t i = 0; i < p->count; i++) {
        n->free[p->device[i]] -= (uint16_t)c->gpu_milli;
        n->used_mem[p->device[i]] += (uint16_t)c->gpu_mem_milli;
    }
    n->gpu_milli -= p->count * c->gpu_milli;
}

static int make_nodes(const struct openb_nodes *nodes, const struct openb_pods *pods,
                      struct fill_input *in, struct sl_err *err)
{
    for (; in->node_count < nodes->count; in->node_count++) {
        const struct openb_node *from = &nodes->nodes[in->node_count];
        struct fill_node *n = &in->nodes[in->node_count];
        uint32_t model =
            from->gpus ? names_find(&pods->models, names_text(&nodes->models, from->model))
                       : NAMES_NONE;
        if (from->gpus > FILL_MAX_DEVICES)
            return sl_fail(err, SL_INVALID,
                           "line %u of the nodes: gpu: %u are more than %d", from->line,
                           from->gpus, FILL_MAX_DEVICES);
        *n = (struct fill_node){ .model = model == NAMES_NONE ? 0 : 1ull << model,
                                 .memory_mib = from->memory_mib,
                                 .cpu_milli = from->cpu_milli,
                                 .gpu_milli = from->gpus * FILL_WHOLE,
                                 .gpus = (uint16_t)from->gpus,
                                 .all_cpu_milli = from->cpu_milli };
        if (from->gpus)
            fill_device_watts(names_text(&nodes->models, from->model), &n->idle_w,
                              &n->full_w);
        for (uint32_t d = 0; d < from->gpus; d++)
            n->free[d] = FILL_WHOLE;
        in->gpu_milli += n->gpu_milli;
    }
    return in->gpu_milli ? 0 : sl_fail(err, SL_INVALID, "no node has a GPU");
}

static bool is_alike(const struct fill_class *a, const struct fill_class *b)
{
    return a->memory_mib == b->memory_mib && a->models == b->models &&
           a->cpu_milli == b->cpu_milli && a->gpus == b->gpus &&
           a->gpu_milli == b->gpu_milli && a->gpu_mem_milli == b->gpu_mem_milli;
}

static void make_classes(const struct openb_pods *pods, struct fill_input *in)
{
    for (; in->pod_count < pods->count; in->pod_count++) {
        const struct openb_pod *p = &pods->pods[in->pod_count];
        struct fill_class class = { p->memory_mib, p->gpus ? p->models : 0,
                                    p->cpu_milli,  p->gpus,
                                    p->gpu_milli,  p->gpu_mem_milli };
        uint32_t c = 0;
        while (c < in->class_count && !is_alike(&in->classes[c], &class))
            c++;
        if (c == in->class_count)
            in->classes[in->class_count++] = class;
        in->class_of[in->pod_count] = c;
    }
}

void fill_draw_memory(struct openb_pods *pods, uint64_t seed)
{
    const uint32_t step = FILL_WHOLE / 10;
    for (uint32_t i = 0; i < pods->count; i++) {
        struct openb_pod *p = &pods->pods[i];
        struct random r = { random_seed(seed, i) };
        uint32_t milli = p->gpu_milli * (50 + random_below(&r, 151)) / 100;
        milli = (milli + step - 1) / step * step;
        p->gpu_mem_milli = milli < FILL_WHOLE ? milli : FILL_WHOLE;
    }
}

int fill_input_make(const struct openb_nodes *nodes, const struct openb_pods *pods,
                    struct fill_input *out, struct sl_err *err)
{
    struct fill_input in = {
        .nodes = calloc(nodes->count, sizeof *in.nodes),
        .classes = calloc(pods->count, sizeof *in.classes),
        .class_of = calloc(pods->count, sizeof *in.class_of),
    };
    int rc = in.nodes && in.classes && in.class_of
                 ? make_nodes(nodes, pods, &in, err)
                 : sl_fail(err, SL_INTERNAL, "out of memory");
    if (rc == 0)
        rc = fill_target_of(pods, &in.target, err);
    if (rc < 0) {
        fill_input_finish(&in);
        return rc;
    }
    make_classes(pods, &in);
    *out = in;
    return 0;
}

void fill_input_finish(struct fill_input *in)
{
    free(in->nodes);
    free(in->classes);
    free(in->class_of);
    fill_target_finish(&in->target);
    *in = (struct fill_input){ 0 };
}
