/*
 * jobs/L7/status.json: what is known of a job without asking anybody.
 *
 * Written by the shim with a rename, first when the program is about to start
 * and again when nothing of the job is left; on a full disk the second over the first.
 * An agent that was away reads it.
 */
#ifndef AGENT_JOB_STATUS_H
#define AGENT_JOB_STATUS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "core/err.h"
#include "os/proc.h"
#include "os/rundir.h"

struct job_status {
    char lease[24];
    struct proc_id shim, child;
    char placement[24];  /* "mount" or "environment": what came true */
    uint64_t started_ms; /* since 1970 */
    bool exited;         /* the rest is set */
    int32_t exit_status; /* as a shell says it */
    int32_t signal;      /* that ended the program; 0: none */
    uint64_t ended_ms;
    uint64_t log_dropped_bytes; /* output that could not be kept */
};

/* Now, in milliseconds since 1970. */
static inline uint64_t job_wall_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Makes jobs/L7 if it is missing. */
int job_status_write(const struct rundir *run, const struct job_status *s,
                     struct sl_err *err);
/* -SL_NOT_FOUND: there is none. */
int job_status_read(const struct rundir *run, const char *lease, struct job_status *out,
                    struct sl_err *err);

#endif
