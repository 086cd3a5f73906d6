/*
 * What /proc says about a process, read into the caller's fixed buffers.
 *
 * The parsers are pure (text in, struct out) and tested by rows; the readers
 * add open and read.  Nothing allocates.  Errors are -SL_NOT_FOUND (no such
 * process), -SL_DENIED (may not look) and -SL_INVALID (text we do not know).
 */
#ifndef BROKER_PROC_H
#define BROKER_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_stat {
    pid_t ppid;
    char state;           /* 'Z' and 'X' are dead already */
    bool exiting;         /* PF_EXITING: past the point of no return */
    uint64_t start_ticks; /* field 22: since boot; with the pid it names a process */
};

/* One line of /proc/PID/stat.  The command in parentheses may itself hold
 * spaces, newlines and parentheses: fields count from the last ')'. */
int proc_parse_stat(const char *text, size_t length, struct proc_stat *out);

/* The path of the "0::" line (cgroup v2) of /proc/PID/cgroup, without the
 * newline and without " (deleted)". */
int proc_parse_cgroup(const char *text, size_t length, char *path, size_t size);

/* Where the v2 hierarchy is mounted, from /proc/self/mountinfo: its mount point
 * and the directory of the hierarchy that is mounted there (usually "/"). */
int proc_parse_mountinfo(const char *text, size_t length, char *point, size_t point_size,
                         char *root, size_t root_size);

int proc_read_stat(pid_t pid, struct proc_stat *out);
int proc_read_cgroup(pid_t pid, char *path, size_t size);

/* Read a small file whole; returns its length, cut to size - 1 and terminated. */
ssize_t proc_read_file(const char *path, char *buffer, size_t size);

#endif
