/* Copies a job's output from its pipe to its log. */
#include "joblog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/room.h"

int joblog_open(struct joblog *log, const char *path, uint64_t max_bytes, uid_t owner)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -1;
    memset(log, 0, sizeof *log);
    log->pipe_fd = fds[0];
    log->max_bytes = max_bytes;
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    log->file_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    log->why = log->file_fd < 0 ? errno : 0;
    struct stat st;
    if (log->file_fd >= 0 && fstat(log->file_fd, &st) == 0) {
        log->size = (uint64_t)st.st_size;
        if (st.st_uid != owner && fchown(log->file_fd, owner, (gid_t)-1) < 0)
            log->why = 0; /* then only the agent can read it */
    }
    return fds[1];
}

/* How much may still be kept; 0 says why not. */
static uint64_t room_left(struct joblog *log)
{
    struct room disk;
    if (log->file_fd < 0)
        return 0;
    if (log->size >= log->max_bytes) {
        log->why = 0;
        return 0;
    }
    if (room_look(log->file_fd, &disk) && room_is_short(&disk)) {
        log->why = ENOSPC;
        return 0;
    }
    return log->max_bytes - log->size;
}

static size_t append(struct joblog *log, const char *text, size_t len)
{
    size_t done = 0;
    while (done < len) {
        ssize_t n = write(log->file_fd, text + done, len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            log->why = errno;
            break;
        }
        done += (size_t)n;
    }
    log->size += done;
    return done;
}

static const char *reason(const struct joblog *log)
{
    return log->why == ENOSPC ? "the run directory is nearly full"
           : log->why         ? strerror(log->why)
                              : "the log is full";
}

/* The notice may pass the bound: it is short and comes once a gap. */
static void tell_gap(struct joblog *log)
{
    char line[160];
    if (!log->untold_bytes || log->file_fd < 0)
        return;
    int len = snprintf(line, sizeof line, "\n[sluice: %llu bytes of output not kept: %s]\n",
                       (unsigned long long)log->untold_bytes, reason(log));
    ssize_t n = write(log->file_fd, line, (size_t)len);
    if (n == len)
        log->untold_bytes = 0;
    if (n > 0)
        log->size += (uint64_t)n;
}

/* Who looks at the log now shall not think that the program is silent. */
static void tell_stop(struct joblog *log)
{
    char line[120];
    int len = snprintf(line, sizeof line, "\n[sluice: no more is kept: %s]\n", reason(log));
    ssize_t n = write(log->file_fd, line, (size_t)len);
    if (n > 0)
        log->size += (uint64_t)n;
}

static void keep(struct joblog *log, const char *text, size_t len)
{
    uint64_t room = room_left(log);
    size_t want = room < len ? (size_t)room : len;
    if (log->untold_bytes && room)
        tell_gap(log);
    else if (!log->untold_bytes && !room && log->file_fd >= 0)
        tell_stop(log);
    size_t done = append(log, text, want);
    if (done == want && want > 0 && want < len)
        log->why = 0;
    log->dropped_bytes += len - done;
    log->untold_bytes += len - done;
}

void joblog_drain(struct joblog *log)
{
    static char text[65536];
    /* A few rounds, so that a program that never stops talking starves nobody. */
    for (int i = 0; i < 16 && log->pipe_fd >= 0; i++) {
        ssize_t n = read(log->pipe_fd, text, sizeof text);
        if (n > 0) {
            keep(log, text, (size_t)n);
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            close(log->pipe_fd);
            log->pipe_fd = -1;
        } else {
            return;
        }
    }
}

void joblog_close(struct joblog *log)
{
    joblog_drain(log);
    tell_gap(log);
    if (log->pipe_fd >= 0)
        close(log->pipe_fd);
    if (log->file_fd >= 0)
        close(log->file_fd);
    log->pipe_fd = log->file_fd = -1;
}
