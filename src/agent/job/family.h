/*
 * The descendants of a subreaper.  Only its direct children are ever signalled:
 * nobody else can reap them, so their pids cannot be somebody else's; when
 * one dies, its own children become direct ones.
 */
#ifndef AGENT_JOB_FAMILY_H
#define AGENT_JOB_FAMILY_H

#include <stdbool.h>
#include <sys/types.h>

#define FAMILY_MAX 1024

struct family {
    pid_t told[FAMILY_MAX]; /* those that had SIGTERM */
    int told_count;
};

/* Direct children that are not zombies; at most `max`. */
int family_list(pid_t *out, int max);

/* SIGTERM (and SIGCONT, or a stopped one would never see it) to the children that
 * did not have it yet. */
void family_terminate(struct family *f);

/* SIGKILL to every child.  Returns how many it reached; 0 with children left
 * means that they are not ours to kill. */
int family_kill(void);

#endif
