/* Muri's traces (SIGCOMM 2022): milliseconds; the work is iterations x iteration_time. */
#include "core/macros.h"
#include "formats.h"

#define MAX_ITERATIONS   10000000000ull
#define MAX_ITERATION_US 1000000000ull

enum {
    JOB_ID,
    NUM_GPU,
    SUBMIT_TIME,
    ITERATIONS,
    MODEL_NAME,
    BATCH_SIZE,
    ITERATION_TIME,
    RESOURCE_TIME, /* and the next two */
    PRIORITY = RESOURCE_TIME + TRACE_STAGES,
};

static const struct csv_column columns[] = {
    [JOB_ID] = { "job_id" },
    [NUM_GPU] = { "num_gpu" },
    [SUBMIT_TIME] = { "submit_time" },
    [ITERATIONS] = { "iterations" },
    [MODEL_NAME] = { "model_name" },
    [BATCH_SIZE] = { "batch_size", .optional = true },
    [ITERATION_TIME] = { "iteration_time" },
    [RESOURCE_TIME] = { "resource_time_0" },
    [RESOURCE_TIME + 1] = { "resource_time_1" },
    [RESOURCE_TIME + 2] = { "resource_time_2" },
    [PRIORITY] = { "priority", .optional = true },
};

static void read_stages(struct csv *c, struct trace_stages *s)
{
    s->iterations = csv_u64(c, ITERATIONS, 1, MAX_ITERATIONS);
    s->iteration_us = (uint32_t)csv_fixed(c, ITERATION_TIME, 3, 1, MAX_ITERATION_US);
    if (csv_has(c, BATCH_SIZE))
        s->batch_size = (uint32_t)csv_u64(c, BATCH_SIZE, 1, UINT32_MAX);
    for (unsigned i = 0; i < TRACE_STAGES; i++)
        s->stage_us[i] = (uint32_t)csv_fixed(c, RESOURCE_TIME + i, 3, 0, MAX_ITERATION_US);
}

static void read_job(struct csv *c, struct trace *t)
{
    struct trace_job *job = trace_add(t, c);
    job->stages = t->stages_count++;
    struct trace_stages *stages = &t->stages[job->stages];
    read_stages(c, stages);

    job->id = csv_id(c, JOB_ID, &t->ids);
    job->model = csv_name(c, MODEL_NAME, &t->models);
    job->devices = (uint32_t)csv_u64(c, NUM_GPU, 0, TRACE_MAX_DEVICES);
    job->submit_ms = csv_u64(c, SUBMIT_TIME, 0, TRACE_MAX_MS);
    if (csv_has(c, PRIORITY))
        job->priority = (uint32_t)csv_u64(c, PRIORITY, 0, UINT32_MAX);
    job->duration_ms = stages->iterations * stages->iteration_us / 1000;
    if (job->duration_ms > TRACE_MAX_MS)
        csv_fail_row(c, "iterations x iteration_time is more than 31 years");
}

int trace_read_muri(const struct text *text, struct trace *out, struct sl_err *err)
{
    struct csv csv;
    struct trace t = { 0 };
    csv_begin(&csv, text, columns, ARRAY_LEN(columns), err);
    t.jobs = csv_array(&csv, sizeof *t.jobs);
    t.stages = csv_array(&csv, sizeof *t.stages);
    while (csv_next(&csv))
        read_job(&csv, &t);
    return trace_end(&csv, &t, out);
}
