/*
 * How the kernel named a client: the `identity` of a STAT_CLIENT answer.
 *
 * The order is the order of preference.  Nothing here comes from the client's
 * environment or from what it says about itself.
 */
#ifndef BROKER_IDENTITY_H
#define BROKER_IDENTITY_H

/*    name          shown as */
/* clang-format off */
#define BROKER_IDENTITIES(X)                                                           \
    X(NONE, "none")                 /* not of any lease: refused */                    \
    X(RECORD, "record")             /* pid and start time in the run file (restart) */ \
    X(PIDFD_CGROUP, "pidfd-cgroup") /* PIDFD_GET_INFO's cgroup id is an anchor */      \
    X(PROC_CGROUP, "proc-cgroup")   /* a directory of its 0:: line is an anchor */     \
    X(ANCESTRY, "ancestry")         /* a parent is the lease's shim */

enum broker_identity {
#define X(name, shown) BROKER_IDENTITY_##name,
    BROKER_IDENTITIES(X)
#undef X
    BROKER_IDENTITY_COUNT
};
/* clang-format on */

/* "ancestry"; "?" for an unknown number. */
const char *broker_identity_name(unsigned identity);

#endif
