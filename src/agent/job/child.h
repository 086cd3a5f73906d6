/*
 * The process that becomes the program: what it does between fork and exec.
 *
 * It is forked with every signal blocked and says two things on a pipe: that it
 * stands (with its placement), then either nothing – the exec closed the pipe –
 * or why it could not be executed.
 */
#ifndef AGENT_JOB_CHILD_H
#define AGENT_JOB_CHILD_H

#include <signal.h>

#include "spec.h"

struct child_report {
    int status;    /* 0: stands; else 125, 126 or 127: the exit status to use */
    int mounted;   /* the front is in place by mount */
    char why[400]; /* what went wrong; with status 0: why it is not mounted */
};

/* Signal state as it was before the shim touched it. */
struct child_signals {
    sigset_t mask;
    struct sigaction on_child; /* SIGCHLD */
};

struct child_plan {
    const struct job_spec *spec;
    char **argv;
    struct child_signals signals;
    int gate_fd;   /* one byte: go; end of file: give up */
    int report_fd; /* both are CLOEXEC */
    int output_fd; /* becomes stdout and stderr; -1: inherited */
};

/* Does not return. */
void child_run(const struct child_plan *plan) __attribute__((noreturn));

#endif
