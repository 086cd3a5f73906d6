/*
 * `sluice run`, in three steps: run.c gets the lease, run_shim.c starts the
 * shim, run_tty.c stands where the shell expects the program until it ended.
 */
#ifndef CLI_RUN_H
#define CLI_RUN_H

#include <signal.h>
#include <sys/types.h>

#include "cli/cli.h"
#include "model/lease.h"

#define RUN_MAX_FDS 4096

/* What is inherited and must reach the program as it is.  Taken before anything
 * else is opened. */
struct run_inherited {
    unsigned char open[RUN_MAX_FDS / 8]; /* descriptors, a bit each */
    sigset_t mask;
};

struct run_shim {
    pid_t pid;
    int link;    /* its words, agent/job/link.h; CLOEXEC */
    pid_t group; /* ours and the program's: what the shell knows as the job */
};

struct run_plan {
    const struct lease *lease;
    char *const *argv;
    const char *cgroup; /* the lease's, in which the program starts; NULL: none */
    bool detach, userns;
};

void run_remember(struct run_inherited *in);

/* Blocks every signal; run_attend() reads them.  On failure nothing runs. */
int run_start_shim(struct cli *cli, const struct run_plan *plan,
                   const struct run_inherited *in, struct run_shim *out,
                   struct sl_err *err);

/* How the run went. */
struct run_end {
    int status;         /* of this process */
    int signal;         /* that ended the program; 0: none */
    bool started;       /* else `why` says why not */
    bool anchored;      /* the agent knows the shim: the lease ends with it */
    bool ended_outside; /* by release, --time, or a signal to the shim */
    char why[480];
};

/* Until the program and all it left behind have ended; with `detach` until it has
 * started. */
void run_attend(struct cli *cli, const struct run_plan *plan, struct run_shim *shim,
                struct run_end *end);

#endif
