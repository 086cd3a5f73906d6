/* What the readers of job traces share.  Each reader returns 0 and writes *out, or
 * fails and leaves it alone. */
#ifndef SIM_FORMATS_H
#define SIM_FORMATS_H

#include "sim/csv.h"
#include "sim/trace.h"

int trace_read_muri(const struct text *text, struct trace *out, struct sl_err *err);
int trace_read_philly(const struct text *text, struct trace *out, struct sl_err *err);
int trace_read_chronus(const struct text *text, struct trace *out, struct sl_err *err);
int trace_read_csv(const struct text *text, struct trace *out, struct sl_err *err);

/* The next job, with what most formats do not say. */
struct trace_job *trace_add(struct trace *t, const struct csv *csv);

/* All rows are read: *t, in order, goes to *out, or away if there was an error. */
int trace_end(const struct csv *csv, struct trace *t, struct trace *out);

#endif
