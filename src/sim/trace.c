/* Job traces: the formats by name, and what their readers have in common. */
#include "sim/trace.h"

#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "formats.h"

static const struct {
    const char *name;
    int (*read)(const struct text *text, struct trace *out, struct sl_err *err);
} formats[] = {
    { "muri", trace_read_muri },
    { "philly", trace_read_philly },
    { "chronus", trace_read_chronus },
    { "csv", trace_read_csv },
};

int trace_read(const char *format, const struct text *text, struct trace *out,
               struct sl_err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(formats); i++)
        if (!strcmp(format, formats[i].name))
            return formats[i].read(text, out, err);
    return sl_fail(err, SL_INVALID,
                   "'%.40s' is no format of job traces; there are " TRACE_FORMATS, format);
}

int trace_open(const char *format, const char *path, struct trace *out, struct sl_err *err)
{
    AUTO_TEXT struct text text = { 0 };
    int rc = text_open(path, &text, err);
    return rc < 0 ? rc : trace_read(format, &text, out, err);
}

struct trace_job *trace_add(struct trace *t, const struct csv *csv)
{
    struct trace_job *job = &t->jobs[t->job_count++];
    *job = (struct trace_job){
        .share_permille = 1000,
        .id = TRACE_NONE,
        .owner = TRACE_NONE,
        .model = TRACE_NONE,
        .stages = TRACE_NONE,
        .deadline = TRACE_NONE,
        .line = csv->line,
    };
    return job;
}

static int by_submission(const void *left, const void *right)
{
    const struct trace_job *a = left, *b = right;
    if (a->submit_ms != b->submit_ms)
        return a->submit_ms < b->submit_ms ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

int trace_end(const struct csv *csv, struct trace *t, struct trace *out)
{
    if (csv->rc < 0) {
        trace_finish(t);
        return csv->rc;
    }
    for (uint32_t i = 0; i < t->job_count; i++)
        t->jobs[i].duration_ms = max_u64(t->jobs[i].duration_ms, 1);
    qsort(t->jobs, t->job_count, sizeof *t->jobs, by_submission);
    *out = *t;
    return 0;
}

void trace_finish(struct trace *t)
{
    free(t->jobs);
    free(t->stages);
    free(t->deadlines);
    names_finish(&t->ids);
    names_finish(&t->owners);
    names_finish(&t->models);
    *t = (struct trace){ 0 };
}
