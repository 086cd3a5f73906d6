/* Our own plain format, which anybody can make from a log: seconds (to the millisecond). */
#include "core/macros.h"
#include "formats.h"

#define MAX_MEM_BYTES (1ull << 50)

enum {
    JOB_ID,
    SUBMIT_S,
    GPU_NUM,
    DURATION_S,
    OWNER,
    MODEL,
    SHARE_PERMILLE,
    MEM_BYTES,
    PRIORITY,
    DEADLINE_S,
};

static const struct csv_column columns[] = {
    [JOB_ID] = { "job_id" },
    [SUBMIT_S] = { "submit_s" },
    [GPU_NUM] = { "gpu_num" },
    [DURATION_S] = { "duration_s" },
    [OWNER] = { "owner", .optional = true },
    [MODEL] = { "model", .optional = true },
    [SHARE_PERMILLE] = { "share_permille", .optional = true },
    [MEM_BYTES] = { "mem_bytes", .optional = true },
    [PRIORITY] = { "priority", .optional = true },
    [DEADLINE_S] = { "deadline_s", .optional = true },
};

/* What may be left out or left empty. */
static void read_options(struct csv *c, struct trace *t, struct trace_job *job)
{
    job->owner = csv_name_or_none(c, OWNER, &t->owners);
    job->model = csv_name_or_none(c, MODEL, &t->models);
    if (csv_has(c, SHARE_PERMILLE))
        job->share_permille = (uint32_t)csv_u64(c, SHARE_PERMILLE, 1, 1000);
    if (csv_has(c, MEM_BYTES))
        job->mem_bytes = csv_u64(c, MEM_BYTES, 0, MAX_MEM_BYTES);
    if (csv_has(c, PRIORITY))
        job->priority = (uint32_t)csv_u64(c, PRIORITY, 0, UINT32_MAX);
    if (csv_has(c, DEADLINE_S)) {
        job->deadline = t->deadline_count++;
        struct trace_deadline *d = &t->deadlines[job->deadline];
        d->strict = true;
        d->steps = 1;
        d->after_ms[0] = csv_fixed(c, DEADLINE_S, 3, 0, TRACE_MAX_MS);
        d->value[0] = 1;
    }
}

static void read_job(struct csv *c, struct trace *t)
{
    struct trace_job *job = trace_add(t, c);
    job->id = csv_id(c, JOB_ID, &t->ids);
    job->submit_ms = csv_fixed(c, SUBMIT_S, 3, 0, TRACE_MAX_MS);
    job->devices = (uint32_t)csv_u64(c, GPU_NUM, 0, TRACE_MAX_DEVICES);
    job->duration_ms = csv_fixed(c, DURATION_S, 3, 0, TRACE_MAX_MS);
    read_options(c, t, job);
}

int trace_read_csv(const struct text *text, struct trace *out, struct sl_err *err)
{
    struct csv csv;
    struct trace t = { 0 };
    csv_begin(&csv, text, columns, ARRAY_LEN(columns), err);
    t.jobs = csv_array(&csv, sizeof *t.jobs);
    t.deadlines = csv_array(&csv, sizeof *t.deadlines);
    while (csv_next(&csv))
        read_job(&csv, &t);
    return trace_end(&csv, &t, out);
}
