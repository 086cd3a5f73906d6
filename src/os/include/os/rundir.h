/*
 * The run directory: which one, whether it is fit, and the paths in it
 * (docs/internals/run-directory.md).
 */
#ifndef OS_RUNDIR_H
#define OS_RUNDIR_H

#include <stddef.h>

#include "core/err.h"

#define RUNDIR_SIZE 80 /* so that every socket path in it fits 108 bytes */

struct rundir {
    char path[RUNDIR_SIZE];
};

/* `given` (may be NULL), else SLUICE_RUN_DIR, else the default of this uid. */
int rundir_choose(struct rundir *r, const char *given, struct sl_err *err);

/* Make it (mode 0711 for root, else 0700) or check that it is a directory, ours,
 * and writable by nobody else. */
int rundir_prepare(const struct rundir *r, struct sl_err *err);
/* Only the check, and no fault if it is not there. */
int rundir_check(const struct rundir *r, struct sl_err *err);

/* "PATH/name" into out; fails only if it would be cut. */
int rundir_path(const struct rundir *r, const char *name, char *out, size_t size,
                struct sl_err *err);

#endif
