/*
 * The shim's two calls to the agent: POST /v1/leases/L7/anchor and …/exit.
 *
 * Written on the socket by hand: a shim lives as long as its job and there are
 * as many as jobs, so it does without the client library and what that loads;
 * and src/agent may not include src/client.  Blocking, with a time limit.
 */
#ifndef AGENT_JOB_NOTIFY_H
#define AGENT_JOB_NOTIFY_H

#include <stdint.h>
#include <sys/types.h>

#include "core/err.h"
#include "os/rundir.h"

/* -SL_UNAVAILABLE: no agent answered; another code is the agent's own no. */
int notify_anchor(const struct rundir *run, const char *lease, pid_t child,
                  uint64_t timeout_ms, struct sl_err *err);
int notify_exit(const struct rundir *run, const char *lease, int exit_status,
                uint64_t timeout_ms, struct sl_err *err);

#endif
