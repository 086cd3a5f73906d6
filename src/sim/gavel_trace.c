/* Gavel's arrivals: job type, command, step argument, data flag, steps, arrival, GPUs. */
#include <stdlib.h>

#include "core/macros.h"
#include "sim/csv.h"
#include "sim/gavel.h"

#define MAX_STEPS 1000000000000ull
#define MAX_MS    1000000000000ull
#define MAX_GPUS  1000000u

enum { JOB_TYPE, COMMAND, STEP_ARGUMENT, NEEDS_DATA_DIR, STEPS, ARRIVAL_S, SCALE };

static const struct csv_column columns[] = {
    [JOB_TYPE] = { "job type" },           [COMMAND] = { "command" },
    [STEP_ARGUMENT] = { "step argument" }, [NEEDS_DATA_DIR] = { "needs data directory" },
    [STEPS] = { "total steps" },           [ARRIVAL_S] = { "arrival" },
    [SCALE] = { "scale factor" },
};

static void read_arrival(struct csv *c, struct gavel_trace *t)
{
    struct gavel_arrival *a = &t->arrivals[t->count++];
    a->model = csv_name(c, JOB_TYPE, &t->models);
    a->steps = csv_u64(c, STEPS, 1, MAX_STEPS);
    a->arrival_ms = csv_fixed(c, ARRIVAL_S, 3, 0, MAX_MS);
    a->gpus = (uint32_t)csv_u64(c, SCALE, 1, MAX_GPUS);
    a->line = c->line;
}

static int by_arrival(const void *left, const void *right)
{
    const struct gavel_arrival *a = left, *b = right;
    if (a->arrival_ms != b->arrival_ms)
        return a->arrival_ms < b->arrival_ms ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

int gavel_trace_read(const struct text *text, struct gavel_trace *out, struct sl_err *err)
{
    struct csv csv;
    struct gavel_trace t = { 0 };
    csv_begin_plain(&csv, text, '\t', columns, ARRAY_LEN(columns), err);
    t.arrivals = csv_array(&csv, sizeof *t.arrivals);
    while (csv_next(&csv))
        read_arrival(&csv, &t);
    if (csv.rc < 0) {
        gavel_trace_finish(&t);
        return csv.rc;
    }
    qsort(t.arrivals, t.count, sizeof *t.arrivals, by_arrival);
    *out = t;
    return 0;
}

void gavel_trace_finish(struct gavel_trace *t)
{
    free(t->arrivals);
    names_finish(&t->models);
    *t = (struct gavel_trace){ 0 };
}
