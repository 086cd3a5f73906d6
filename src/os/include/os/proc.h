/*
 * Processes as the kernel describes them.  A pid alone is reused; a pid with
 * its start time is one process.
 */
#ifndef OS_PROC_H
#define OS_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/err.h"

struct proc_id {
    pid_t pid;
    uint64_t start_ticks; /* field 22 of /proc/PID/stat */
};

/* -SL_NOT_FOUND when there is no such process. */
int proc_identify(pid_t pid, struct proc_id *out, struct sl_err *err);

/* The same process still exists (a zombie does not count as alive). */
bool proc_is_alive(const struct proc_id *id);

/* A pidfd for exactly this process, or -SL_NOT_FOUND; CLOEXEC. */
int proc_open(const struct proc_id *id, struct sl_err *err);

#endif
