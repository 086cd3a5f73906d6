/*
 * The agent's end of the broker's control socket: finds a living broker or
 * starts one, and asks it one thing at a time.
 *
 * A call blocks: the broker answers in microseconds, and one that does not
 * within 2 s is treated as gone.  The broker outlives the agent: it is started
 * in a session of its own, with none of our descriptors, outside every job's
 * cgroup, and is adopted by the next agent.
 */
#ifndef AGENT_BROKER_LINK_H
#define AGENT_BROKER_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/err.h"
#include "os/rundir.h"
#include "proto/ctl.h"

struct broker_link {
    int fd; /* -1: down */
    pid_t pid;
    uint32_t seq;
    bool adopted; /* it was there before this agent asked */
    char program[256], run_dir[RUNDIR_SIZE];
    char version[32];
    uint64_t starts; /* how many brokers this agent started */
};

void broker_link_init(struct broker_link *b, const struct rundir *dir, const char *program);

/* Connect to the one that answers, else start one and wait for it (at most 5 s). */
int broker_link_open(struct broker_link *b, struct sl_err *err);
void broker_link_close(struct broker_link *b);

/* Send *m (kind and body filled in) and replace it by the answer.  The answer's own code
 * is returned; -SL_UNAVAILABLE: the broker is gone and the link is now down. */
int broker_link_call(struct broker_link *b, struct proto_ctl *m, struct sl_err *err);

/* An empty message of this kind. */
struct proto_ctl broker_link_message(enum proto_ctl_kind kind);

#endif
