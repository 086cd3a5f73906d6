/*
 * Starting other programs: one whose output is wanted now, and ones that live on
 * without us.
 */
#ifndef AGENT_CHILD_H
#define AGENT_CHILD_H

#include <stdint.h>
#include <sys/types.h>

#include "core/err.h"

/* Run to its end or for timeout_ms, whichever is first (then it is killed), and collect
 * its standard output (owned by the caller; at most `max` bytes).  Its standard error is
 * ours.  A bad end is an error that says which: "killed by signal 11", "no answer in 20 s".
 */
int child_capture(const char *const argv[], char *const envp[], uint32_t timeout_ms,
                  size_t max, char **out, size_t *len, struct sl_err *err);

struct child_daemon {
    const char *const *argv;
    char *const *envp;    /* NULL: ours */
    const char *cwd;      /* NULL: / */
    const char *log_path; /* standard output and error, appended; NULL: /dev/null */
    int stdin_fd;         /* -1: /dev/null */
    mode_t umask;
    uid_t uid; /* with become: who it shall be, groups by name */
    gid_t gid;
    int become;
};

/* Start it in a session of its own, not as our child (the machine's init adopts it), with
 * no other descriptor of ours.  Returns when it was executed; *pid may be NULL. */
int child_start_daemon(const struct child_daemon *d, pid_t *pid, struct sl_err *err);

/* Close every descriptor from `first` up. */
void child_close_from(int first);

#endif
