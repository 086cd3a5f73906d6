/* Chronus' traces (SoCC 2021): everything in minutes, deadlines relative to submission. */
#include <string.h>

#include "core/macros.h"
#include "formats.h"
#include "sim/number.h"

#define MINUTE_MS   60000ull
#define MAX_MINUTES (TRACE_MAX_MS / MINUTE_MS)

enum {
    JOB_ID,
    USER,
    NUM_GPU,
    SUBMIT_TIME,
    MODEL_NAME,
    DURATION,
    EXPECT_TIME_LIST,
    EXPECT_VALUE_LIST,
    JOB_TYPE,
};

static const struct csv_column columns[] = {
    [JOB_ID] = { "job_id" },
    [USER] = { "user" },
    [NUM_GPU] = { "num_gpu" },
    [SUBMIT_TIME] = { "submit_time" },
    [MODEL_NAME] = { "model_name" },
    [DURATION] = { "duration" },
    [EXPECT_TIME_LIST] = { "expect_time_list" },
    [EXPECT_VALUE_LIST] = { "expect_value_list" },
    [JOB_TYPE] = { "job_type" },
};

enum { STRICT, SOFT, BEST };
static const char *const job_types[] = { "strict", "soft", "best", NULL };

/* "159-189-229" into values up to `max`; how many, 0 after an error. */
static uint32_t read_list(struct csv *c, unsigned column, uint64_t max,
                          uint64_t value[TRACE_MAX_STEPS])
{
    struct csv_field f = c->field[column];
    uint32_t count = 0;
    for (const char *p = f.text, *end = f.text + f.len; c->rc == 0; count++) {
        const char *dash = p < end ? memchr(p, '-', (size_t)(end - p)) : NULL;
        const char *stop = dash ? dash : end;
        if (count == TRACE_MAX_STEPS) {
            csv_fail_field(c, column, "has more than %d steps", TRACE_MAX_STEPS);
        } else if (number_parse(p, (size_t)(stop - p), 0, &value[count]) != NUMBER_OK ||
                   value[count] > max) {
            csv_fail_field(c, column, "is no list such as 10-8-5 of numbers up to %llu",
                           (unsigned long long)max);
        } else if (!dash) {
            return count + 1;
        }
        p = stop + 1;
    }
    return 0;
}

static void read_deadline(struct csv *c, bool strict, struct trace_deadline *d)
{
    uint64_t minutes[TRACE_MAX_STEPS], value[TRACE_MAX_STEPS];
    d->strict = strict;
    d->steps = read_list(c, EXPECT_TIME_LIST, MAX_MINUTES, minutes);
    if (read_list(c, EXPECT_VALUE_LIST, UINT32_MAX, value) != d->steps)
        csv_fail_row(c, "expect_time_list and expect_value_list differ in length");
    if (strict && d->steps > 1)
        csv_fail_field(c, EXPECT_TIME_LIST, "has steps; a strict job has one deadline");
    for (uint32_t i = 0; i < d->steps && c->rc == 0; i++) {
        if (i && minutes[i] <= minutes[i - 1])
            csv_fail_field(c, EXPECT_TIME_LIST, "does not ascend");
        d->after_ms[i] = minutes[i] * MINUTE_MS;
        d->value[i] = (uint32_t)value[i];
    }
}

static void read_job(struct csv *c, struct trace *t)
{
    struct trace_job *job = trace_add(t, c);
    job->id = csv_id(c, JOB_ID, &t->ids);
    job->owner = csv_name(c, USER, &t->owners);
    job->model = csv_name(c, MODEL_NAME, &t->models);
    job->devices = (uint32_t)csv_u64(c, NUM_GPU, 0, TRACE_MAX_DEVICES);
    job->submit_ms = csv_u64(c, SUBMIT_TIME, 0, MAX_MINUTES) * MINUTE_MS;
    job->duration_ms = csv_u64(c, DURATION, 0, MAX_MINUTES) * MINUTE_MS;
    unsigned type = csv_choice(c, JOB_TYPE, job_types);
    if (type == BEST) /* its lists mean nothing */
        return;
    job->deadline = t->deadline_count++;
    read_deadline(c, type == STRICT, &t->deadlines[job->deadline]);
}

int trace_read_chronus(const struct text *text, struct trace *out, struct sl_err *err)
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
