/*
 * The program's private mount namespace: the front stands where the OpenCL
 * loader is, and the cgroup hierarchies are read-only, so that root cannot walk
 * out of its lease.
 *
 * Runs in the process that will become the program, before it gives up its
 * rights.
 */
#ifndef AGENT_JOB_SANDBOX_H
#define AGENT_JOB_SANDBOX_H

#include "core/err.h"
#include "spec.h"

/*
 * Within the namespace afterwards: <run>/front/libOpenCL.so.1 over every
 * libOpenCL.so.1* of this machine's kind that a program would find, and the
 * first of those at <run>/front/real/libOpenCL.so.1.  What the machine mounts
 * later still arrives; what the job mounts stays inside.
 *
 * -SL_DENIED: this process may not.  -SL_UNSUPPORTED: no forwarding loader in the
 * run directory, or no loader on the machine.  After a failure the process may be in a
 * namespace of its own in which nothing, or not all, is bound.
 */
int sandbox_enter(const struct job_spec *spec, struct sl_err *err);

/* The loaders of this machine, by their real paths, first the one that the
 * dynamic linker prefers.  Returns how many, at most `max`. */
int sandbox_find_loaders(char (*out)[256], int max);

#endif
