/* Occupancy of virtual clusters over time. */
#include "sim/helios.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "core/macros.h"
#include "sim/csv.h"

#define MAX_GPUS 10000000u
#define MAX_JOBS 1000000000u

enum { TIME, VC, TOTAL_GPU, RUNNING_GPU, PENDING_GPU, RUNNING_JOB, PENDING_JOB };

static const struct csv_column columns[] = {
    [TIME] = { "time" },
    [VC] = { "vc" },
    [TOTAL_GPU] = { "total_gpu_num" },
    [RUNNING_GPU] = { "running_gpu_num" },
    [PENDING_GPU] = { "pending_gpu_num" },
    [RUNNING_JOB] = { "running_gpujob_num" },
    [PENDING_JOB] = { "pending_gpujob_num" },
};

/* last[vc]: the number + 1 of its sample before this one, or 0. */
static void read_sample(struct csv *c, struct helios *h, uint32_t *last)
{
    struct helios_sample *s = &h->samples[h->count++];
    s->time_s = csv_time_us(c, TIME) / 1000000;
    s->vc = csv_name(c, VC, &h->vcs);
    s->total_gpus = (uint32_t)csv_u64(c, TOTAL_GPU, 0, MAX_GPUS);
    s->running_gpus = (uint32_t)csv_u64(c, RUNNING_GPU, 0, MAX_GPUS);
    s->pending_gpus = (uint32_t)csv_u64(c, PENDING_GPU, 0, MAX_GPUS);
    s->running_jobs = (uint32_t)csv_u64(c, RUNNING_JOB, 0, MAX_JOBS);
    s->pending_jobs = (uint32_t)csv_u64(c, PENDING_JOB, 0, MAX_JOBS);
    s->line = c->line;
    if (c->rc < 0)
        return;
    if (s->running_gpus > s->total_gpus)
        csv_fail_field(c, RUNNING_GPU, "of %u GPUs", s->total_gpus);
    const struct helios_sample *before = last[s->vc] ? &h->samples[last[s->vc] - 1] : NULL;
    if (before && before->time_s >= s->time_s)
        csv_fail_field(c, TIME, "is not after that of the same vc on line %u",
                       before->line);
    last[s->vc] = h->count;
}

int helios_read(const struct text *text, struct helios *out, struct sl_err *err)
{
    struct csv csv;
    struct helios h = { 0 };
    csv_begin(&csv, text, columns, ARRAY_LEN(columns), err);
    h.samples = csv_array(&csv, sizeof *h.samples);
    AUTO_FREE uint32_t *last = csv_array(&csv, sizeof *last);
    while (csv_next(&csv))
        read_sample(&csv, &h, last);
    if (csv.rc < 0)
        helios_finish(&h);
    else
        *out = h;
    return csv.rc;
}

void helios_finish(struct helios *h)
{
    free(h->samples);
    names_finish(&h->vcs);
    *h = (struct helios){ 0 };
}
