/*
 * A child program whose first line of output is wanted.
 */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include <stddef.h>
#include <sys/types.h>

#include "core/err.h"

struct child {
    pid_t pid;        /* 0: none */
    int in, out, err; /* our ends of its stdin, stdout, stderr */
    char said[400];   /* the end of what it wrote to stderr */
};

/* Start argv[0] (a path). */
int child_start(struct child *c, const char *const *argv, struct sl_err *err);

/* The first line of its stdout, without the newline; -SL_TIMEOUT, or -SL_IO where it
 * ended without one.  stderr is collected meanwhile. */
int child_read_line(struct child *c, char *out, size_t size, int timeout_ms,
                    struct sl_err *err);

/* Close its stdin and reap it; killed after timeout_ms.  Returns its exit status as a
 * shell says it. */
int child_finish(struct child *c, int timeout_ms);

#endif
