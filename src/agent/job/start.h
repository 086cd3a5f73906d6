/*
 * From a spec to a running program: fork, anchor at the agent, let it exec.
 */
#ifndef AGENT_JOB_START_H
#define AGENT_JOB_START_H

#include "child.h"
#include "joblog.h"
#include "link.h"
#include "status.h"

/* All that a shim knows of its job. */
struct shim {
    struct job_spec spec;
    char **argv;
    struct child_signals inherited; /* signal state as the caller gave it */
    struct link link;
    struct joblog log;
    struct job_status status;
    pid_t child;
};

/* Returns 0 once the program runs.  Else the exit status to tell (125, 126, 127)
 * with `why`; the child is reaped and, if the agent knew of it, was told so. */
int start_program(struct shim *s, char *why, size_t size);

#endif
