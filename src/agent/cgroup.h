/*
 * The cgroup of a lease: a v2 directory, which names its processes to the broker
 * and can end them all, and host limits where controllers allow.
 *
 * Root only; a machine or user without it works by ancestry.  A v2
 * directory needs no controller.  Host limits: v2 controllers, else the v1
 * hierarchies, else nobody holds them and the text says so.
 */
#ifndef AGENT_CGROUP_H
#define AGENT_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/err.h"

#define CGROUP_PATH_SIZE 192

struct cgroup_host {
    char v2[96]; /* mount point; empty: none that we may write */
    char v1_cpu[96], v1_memory[96];
    bool v2_cpu, v2_memory; /* controllers that we can give to children */
    char suffix[12];        /* of this run directory: two instances do not meet */
};

/* Look once; nothing found is not an error. */
void cgroup_host_find(struct cgroup_host *h, const char *run_dir);

struct cgroup_limits {
    uint32_t cpu_milli;    /* 0: none */
    uint64_t memory_bytes; /* 0: none */
};

/* Make the v2 directory of a lease, so that its first process can start there. */
void cgroup_make(const struct cgroup_host *h, uint64_t lease);

/* Make the lease's directories (existing ones are used) with these limits and move `pid`
 * in, unless it is there. *id is the v2 directory's inode; `held` says who holds the host limits.
 * -SL_UNSUPPORTED without a v2 mount (host limits by v1 may hold nevertheless). */
int cgroup_enter(const struct cgroup_host *h, uint64_t lease,
                 const struct cgroup_limits *limits, pid_t pid, uint64_t *id, char *held,
                 size_t held_size, struct sl_err *err);

/* Remove the directories in which nothing lives; the highest number of a lease that had
 * one, 0 without any. */
uint64_t cgroup_sweep(const struct cgroup_host *h);

/* The v2 directory of a lease; empty string without. */
void cgroup_path(const struct cgroup_host *h, uint64_t lease, char out[CGROUP_PATH_SIZE]);

/* How many of its processes the kernel ended because they passed the memory limit. */
uint64_t cgroup_oom_kills(const struct cgroup_host *h, uint64_t lease);

bool cgroup_is_populated(const struct cgroup_host *h, uint64_t lease);
/* Processes in it and below; returns how many were written to pids. */
uint32_t cgroup_pids(const struct cgroup_host *h, uint64_t lease, pid_t *pids,
                     uint32_t room);
void cgroup_kill(const struct cgroup_host *h, uint64_t lease);
void cgroup_remove(const struct cgroup_host *h, uint64_t lease);

#endif
