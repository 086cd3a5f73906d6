/*
 * Starting the agent of this machine from the command line.
 *
 * The agent is the sibling program `sluice-agent`.  It is started so that it
 * keeps nothing of the caller: its own session, working directory /, no
 * descriptor but /dev/null, resource limits as far as they may be reset.  Of
 * racing callers one agent comes out: the others' agents find the lock taken and
 * end, and every caller connects to the one that has it.
 */
#ifndef CLI_START_H
#define CLI_START_H

#include <stdbool.h>

#include "core/err.h"
#include "os/rundir.h"

struct start_options {
    bool embedded;              /* ends by itself 60 s after its last lease */
    bool share_tenants;         /* waive the one-tenant rule */
    const char *emulate;        /* "a100-80g:8" or a file; NULL: real devices */
    const char *mem_overcommit; /* "1.2"; NULL: none */
    const char *turn;           /* "20ms": base turn; NULL: the default */
    const char *reserve;        /* memory never lent, "2GiB" or "25%"; NULL: by model */
};

/* Is somebody listening on agent.sock? */
bool agent_is_running(const struct rundir *r);

/* Is something left of one: its socket, if it did not end in order, or its broker's, if it
 * was told to end alone? */
bool agent_left_traces(const struct rundir *r);

/* Nobody listens: says why as far as that shows; returns -err->code. */
int agent_fail_missing(const struct rundir *r, struct sl_err *err);

/* Start it and wait until it answers.  0: we started it; 1: one was running already, or a
 * racing caller's came first.  On failure the message has the end of what the
 * agent said. */
int agent_start(const struct rundir *r, const struct start_options *o, struct sl_err *err);

/* Become the agent (`sluice up --foreground`); returns only on failure. */
int agent_exec(const struct rundir *r, const struct start_options *o, struct sl_err *err);

#endif
