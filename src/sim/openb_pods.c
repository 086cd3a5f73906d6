/* The openb pod lists, short and long form. */
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "sim/csv.h"
#include "sim/openb.h"

#define MAX_CPU_MILLI  10000000u
#define MAX_MEMORY_MIB (1ull << 30)
#define MAX_GPUS       100000u /* a pod larger than any node is no error of the file */
#define MAX_TIME_S     1000000000ull

enum {
    NAME,
    CPU_MILLI,
    MEMORY_MIB,
    NUM_GPU,
    GPU_MILLI,
    GPU_SPEC,
    QOS,
    POD_PHASE,
    CREATION_TIME,
    DELETION_TIME,
    SCHEDULED_TIME,
};

static const struct csv_column columns[] = {
    [NAME] = { "name" },
    [CPU_MILLI] = { "cpu_milli" },
    [MEMORY_MIB] = { "memory_mib" },
    [NUM_GPU] = { "num_gpu" },
    [GPU_MILLI] = { "gpu_milli" },
    [GPU_SPEC] = { "gpu_spec", .optional = true },
    [QOS] = { "qos", .optional = true },
    [POD_PHASE] = { "pod_phase", .optional = true },
    [CREATION_TIME] = { "creation_time", .optional = true },
    [DELETION_TIME] = { "deletion_time", .optional = true },
    [SCHEDULED_TIME] = { "scheduled_time", .optional = true },
};

/* from OPENB_LS and OPENB_PENDING on */
static const char *const qos_names[] = { "LS", "BE", "Burstable", "Guaranteed", NULL };
static const char *const phase_names[] = { "Pending", "Running", "Succeeded", "Failed",
                                           NULL };

static uint64_t read_time(struct csv *c, unsigned column)
{
    return csv_has(c, column) ? csv_u64(c, column, 0, MAX_TIME_S) : OPENB_UNKNOWN;
}

/* "V100M16|T4" to a set of models. */
static uint64_t read_models(struct csv *c, struct names *models)
{
    struct csv_field f = c->field[GPU_SPEC];
    uint64_t set = 0;
    if (f.len == 0)
        return 0;
    for (const char *p = f.text, *end = f.text + f.len; p <= end && c->rc == 0;) {
        const char *bar = memchr(p, '|', (size_t)(end - p)), *stop = bar ? bar : end;
        struct csv_field name = { p, (size_t)(stop - p) };
        uint32_t m = csv_add_name(c, name, models);
        if (name.len == 0)
            csv_fail_field(c, GPU_SPEC, "names no model at one place");
        else if (c->rc == 0 && m >= OPENB_MAX_MODELS)
            csv_fail_field(c, GPU_SPEC, "is one of more than %d models", OPENB_MAX_MODELS);
        else
            set |= 1ull << (m % OPENB_MAX_MODELS);
        p = stop + 1;
    }
    return set;
}

static void read_devices(struct csv *c, struct openb_pod *pod)
{
    pod->gpus = (uint32_t)csv_u64(c, NUM_GPU, 0, MAX_GPUS);
    pod->gpu_milli = (uint32_t)csv_u64(c, GPU_MILLI, 0, 1000);
    if (pod->gpus == 0 && pod->gpu_milli)
        csv_fail_field(c, GPU_MILLI, "but num_gpu is 0");
    if (pod->gpus == 1 && !pod->gpu_milli)
        csv_fail_field(c, GPU_MILLI, "but num_gpu is 1");
    if (pod->gpus > 1 && pod->gpu_milli != 1000)
        csv_fail_field(c, GPU_MILLI, "but num_gpu is %u: several are whole, 1000",
                       pod->gpus);
}

static void read_pod(struct csv *c, struct openb_pods *p)
{
    struct openb_pod *pod = &p->pods[p->count++];
    pod->name = csv_id(c, NAME, &p->names);
    pod->cpu_milli = (uint32_t)csv_u64(c, CPU_MILLI, 0, MAX_CPU_MILLI);
    pod->memory_mib = csv_u64(c, MEMORY_MIB, 0, MAX_MEMORY_MIB);
    read_devices(c, pod);
    pod->spec = csv_name_or_none(c, GPU_SPEC, &p->specs);
    pod->models = read_models(c, &p->models);
    if (csv_has(c, QOS))
        pod->qos = OPENB_LS + csv_choice(c, QOS, qos_names);
    if (csv_has(c, POD_PHASE))
        pod->phase = OPENB_PENDING + csv_choice(c, POD_PHASE, phase_names);
    pod->creation_s = read_time(c, CREATION_TIME);
    pod->deletion_s = read_time(c, DELETION_TIME);
    pod->scheduled_s = read_time(c, SCHEDULED_TIME);
    pod->line = c->line;
}

static int by_name(const void *left, const void *right, void *names)
{
    const struct openb_pod *a = left, *b = right;
    return strcmp(names_text(names, a->name), names_text(names, b->name));
}

int openb_pods_read(const struct text *text, struct openb_pods *out, struct sl_err *err)
{
    struct csv csv;
    struct openb_pods p = { 0 };
    csv_begin(&csv, text, columns, ARRAY_LEN(columns), err);
    p.pods = csv_array(&csv, sizeof *p.pods);
    while (csv_next(&csv))
        read_pod(&csv, &p);
    if (csv.rc < 0) {
        openb_pods_finish(&p);
        return csv.rc;
    }
    qsort_r(p.pods, p.count, sizeof *p.pods, by_name, &p.names);
    *out = p;
    return 0;
}

void openb_pods_finish(struct openb_pods *p)
{
    free(p->pods);
    names_finish(&p->names);
    names_finish(&p->specs);
    names_finish(&p->models);
    *p = (struct openb_pods){ 0 };
}
