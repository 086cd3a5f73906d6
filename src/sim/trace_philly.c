/* The Philly trace as the Pollux authors reduced it: timestamps and seconds, no ids. */
#include "core/macros.h"
#include "formats.h"

enum { TIMESTAMP, DURATION, NUM_GPUS, CLUSTER };

static const struct csv_column columns[] = {
    [TIMESTAMP] = { "timestamp" },
    [DURATION] = { "duration" },
    [NUM_GPUS] = { "num_gpus" },
    [CLUSTER] = { "cluster" },
};

/* submit_ms is the wall clock until all are read. */
static void read_job(struct csv *c, struct trace *t)
{
    struct trace_job *job = trace_add(t, c);
    job->submit_ms = csv_time_us(c, TIMESTAMP) / 1000;
    job->duration_ms = csv_fixed(c, DURATION, 3, 0, TRACE_MAX_MS);
    job->devices = (uint32_t)csv_u64(c, NUM_GPUS, 0, TRACE_MAX_DEVICES);
    job->owner = csv_name(c, CLUSTER, &t->owners);
}

int trace_read_philly(const struct text *text, struct trace *out, struct sl_err *err)
{
    struct csv csv;
    struct trace t = { .begin_ms = UINT64_MAX };
    csv_begin(&csv, text, columns, ARRAY_LEN(columns), err);
    t.jobs = csv_array(&csv, sizeof *t.jobs);
    while (csv_next(&csv))
        read_job(&csv, &t);
    for (uint32_t i = 0; i < t.job_count; i++)
        t.begin_ms = min_u64(t.begin_ms, t.jobs[i].submit_ms);
    for (uint32_t i = 0; i < t.job_count; i++)
        t.jobs[i].submit_ms -= t.begin_ms;
    return trace_end(&csv, &t, out);
}
