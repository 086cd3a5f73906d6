/*
 * A job's output on disk, where there is no caller's terminal.
 *
 * The program writes to a pipe that the shim reads always: a full disk or a full
 * log never blocks or fails the program.  What cannot be kept is dropped and
 * counted, and a line in the log says how much as soon as one can be written.  It
 * stops growing when the run directory is nearly full (os/room.h), and says so.
 */
#ifndef AGENT_JOB_JOBLOG_H
#define AGENT_JOB_JOBLOG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct joblog {
    int pipe_fd; /* read end; -1: no log, or its writers are gone */
    int file_fd; /* -1: could not be opened; everything is dropped */
    uint64_t size, max_bytes;
    uint64_t dropped_bytes; /* in all */
    uint64_t untold_bytes;  /* of these, not yet told in the log */
    int why;                /* errno of the last write that failed; 0: the log is full */
};

/* The pipe's write end for the program (CLOEXEC), or -1 with errno.  A log that
 * cannot be opened is not an error.  The file goes to `owner` where that may be set. */
int joblog_open(struct joblog *log, const char *path, uint64_t max_bytes, uid_t owner);
/* Take what there is; never waits. */
void joblog_drain(struct joblog *log);
void joblog_close(struct joblog *log);

#endif
