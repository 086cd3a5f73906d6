/* Processes: /proc/PID/stat and pidfds. */
#include "os/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* State letter and start time of a pid.  The command in field 2 may hold any
 * byte, parentheses too, so counting starts behind the last ')'. */
static int read_stat(pid_t pid, char *state, uint64_t *start_ticks, struct sl_err *err)
{
    char path[32], text[1024];
    if (pid <= 0)
        return -SL_NOT_FOUND;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -SL_NOT_FOUND
                               : sl_fail_sys(err, SL_IO, errno, "open %s", path);
    ssize_t len;
    do
        len = read(fd, text, sizeof text - 1);
    while (len < 0 && errno == EINTR);
    int sys = errno;
    close(fd);
    if (len < 0)
        return sys == ESRCH ? -SL_NOT_FOUND : sl_fail_sys(err, SL_IO, sys, "read %s", path);
    text[len] = '\0';

    unsigned long long ticks;
    char *rest = strrchr(text, ')');
    if (!rest || sscanf(rest + 1,
                        " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
                        "%*d %*d %*d %llu",
                        state, &ticks) != 2)
        return sl_fail(err, SL_IO, "%s is not as expected", path);
    *start_ticks = ticks;
    return 0;
}

int proc_identify(pid_t pid, struct proc_id *out, struct sl_err *err)
{
    char state;
    uint64_t ticks;
    int rc = read_stat(pid, &state, &ticks, err);
    if (rc == 0)
        *out = (struct proc_id){ .pid = pid, .start_ticks = ticks };
    return rc;
}

bool proc_is_alive(const struct proc_id *id)
{
    char state;
    uint64_t ticks;
    return read_stat(id->pid, &state, &ticks, NULL) == 0 && ticks == id->start_ticks &&
           state != 'Z' && state != 'X' && state != 'x';
}

int proc_open(const struct proc_id *id, struct sl_err *err)
{
    if (id->pid <= 0)
        return -SL_NOT_FOUND;
    int fd = (int)syscall(SYS_pidfd_open, id->pid, 0);
    if (fd < 0 && (errno == ESRCH || errno == EINVAL)) /* EINVAL: a thread's id */
        return -SL_NOT_FOUND;
    if (fd < 0)
        return sl_fail_sys(err, SL_IO, errno, "pidfd_open %d", (int)id->pid);

    /* the pid may have been reused before the open, not after it */
    struct proc_id now;
    int rc = proc_identify(id->pid, &now, err);
    if (rc == 0 && now.start_ticks == id->start_ticks)
        return fd;
    close(fd);
    return rc < 0 ? rc : -SL_NOT_FOUND;
}
