/*
 * Who descends from a process now, by /proc.  A snapshot: callers look again.
 */
#ifndef AGENT_FAMILY_H
#define AGENT_FAMILY_H

#include <stdint.h>
#include <sys/types.h>

/* Children and theirs of `root`, without itself; returns how many were written. */
uint32_t family_below(pid_t root, pid_t *pids, uint32_t room);

/* 0 if there is no such process. */
pid_t family_parent(pid_t pid);

#endif
