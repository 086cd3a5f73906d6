/*
 * Logs of a scheduler core (sched/log.h) as files: written beside a run, read back whole.
 * One thread.
 */
#ifndef SIM_SCHEDLOG_H
#define SIM_SCHEDLOG_H

#include <stddef.h>

#include "core/err.h"
#include "sched/sched.h"

struct schedlog;

/* A new file; one that is there is overwritten. */
int schedlog_create(const char *path, struct schedlog **out, struct sl_err *err);
/* Its first record.  Failures to write are kept until schedlog_close(). */
void schedlog_begin(struct schedlog *log, const struct sched_policy *policy);
/* sched_apply(), with the event and its outcome in the log; `log` may be NULL. */
int schedlog_apply(struct schedlog *log, struct sched *s, const struct sched_event *e,
                   const struct sched_decision **d, uint32_t *count, struct sl_err *err);
/* All is in the file, or an error; NULL is fine. */
int schedlog_close(struct schedlog *log, struct sl_err *err);

/* A whole file, owned by the caller (free); may be gzip. */
int schedlog_read(const char *path, char **bytes, size_t *size, struct sl_err *err);

#endif
