/* Owns fork and exec in the agent: helpers with a time limit, and programs that outlive it.
 */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "core/clock.h"

void child_close_from(int first)
{
    if (syscall(SYS_close_range, (unsigned)first, ~0u, 0) == 0)
        return;
    for (int fd = first, end = (int)sysconf(_SC_OPEN_MAX); fd < end; fd++)
        close(fd);
}

static void reset_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    for (int s = 1; s < 32; s++)
        signal(s, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Read until end of file, the limit or the deadline; 0 at the end of file. */
static int collect(int fd, uint64_t deadline_ns, size_t max, struct buf *out,
                   struct sl_err *err)
{
    char chunk[4096];
    for (;;) {
        uint64_t now = clock_now_ns();
        struct pollfd p = { .fd = fd, .events = POLLIN };
        int ms = now < deadline_ns ? (int)((deadline_ns - now) / NS_PER_MS) + 1 : 0;
        int ready = ms ? poll(&p, 1, ms) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return sl_fail(err, SL_TIMEOUT, "no answer in time");
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        if (out->len + (size_t)n > max)
            return sl_fail(err, SL_TOO_LARGE, "it printed more than %zu bytes", max);
        buf_add_bytes(out, chunk, (size_t)n);
    }
}

static int wait_until(pid_t pid, uint64_t deadline_ns, int *status)
{
    while (clock_now_ns() < deadline_ns) {
        pid_t got = waitpid(pid, status, WNOHANG);
        if (got == pid)
            return 0;
        if (got < 0 && errno != EINTR)
            return -1;
        usleep(2000);
    }
    return -1;
}

int child_capture(const char *const argv[], char *const envp[], uint32_t timeout_ms,
                  size_t max, char **out, size_t *len, struct sl_err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return sl_fail_sys(err, SL_INTERNAL, errno, "pipe");
    AUTO_CLOSE int from = ends[0];
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        reset_signals();
        int null = open("/dev/null", O_RDWR);
        dup2(null, 0);
        dup2(ends[1], 1);
        child_close_from(3);
        execve(argv[0], (char *const *)argv, envp);
        _exit(127);
    }
    close(ends[1]);
    if (pid < 0)
        return sl_fail_sys(err, SL_INTERNAL, errno, "fork");

    uint64_t deadline = clock_now_ns() + timeout_ms * NS_PER_MS;
    AUTO_BUF struct buf text = { 0 };
    int status = 0, rc = collect(from, deadline, max, &text, err);
    if (rc < 0 || wait_until(pid, deadline, &status) != 0) {
        kill(-pid, SIGKILL); /* what it started goes too */
        kill(pid, SIGKILL);
        /* One that hangs in the kernel does not die; it must not hold the agent too. */
        wait_until(pid, clock_now_ns() + 2 * NS_PER_S, &status);
        return rc < 0 && rc != -SL_TIMEOUT
                   ? rc
                   : sl_fail(err, SL_TIMEOUT, "no answer in %u ms", timeout_ms);
    }
    if (WIFSIGNALED(status))
        return sl_fail(err, SL_UNAVAILABLE, "killed by signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) == 127)
        return sl_fail(err, SL_UNAVAILABLE, "cannot run %s", argv[0]);
    if (WEXITSTATUS(status) != 0)
        return sl_fail(err, SL_UNAVAILABLE, "ended with status %d", WEXITSTATUS(status));
    *len = text.len;
    *out = buf_take(&text);
    return *out ? 0 : sl_fail(err, SL_UNAVAILABLE, "it printed nothing");
}

/* What comes back through the pipe: the pid from the middle process, an errno from the
 * last. */
struct report {
    int is_errno, value;
};

static int become(const struct child_daemon *d)
{
    struct passwd *pw = getpwuid(d->uid);
    int rc = pw ? initgroups(pw->pw_name, d->gid) : setgroups(0, NULL);
    return rc == 0 && setresgid(d->gid, d->gid, d->gid) == 0 &&
                   setresuid(d->uid, d->uid, d->uid) == 0
               ? 0
               : -1;
}

/* The grandchild: becomes the program or reports errno through `report`. */
static void exec_daemon(const struct child_daemon *d, int report)
{
    setsid();
    reset_signals();
    umask(d->umask);
    int in = d->stdin_fd >= 0 ? d->stdin_fd : open("/dev/null", O_RDONLY);
    int out =
        open(d->log_path ? d->log_path : "/dev/null", O_WRONLY | O_APPEND | O_CREAT, 0644);
    if (out < 0)
        out = open("/dev/null", O_WRONLY);
    /* Away from 0..3 first, so that no dup2 below overwrites a source. */
    int high_in = fcntl(in, F_DUPFD, 10), high_out = fcntl(out, F_DUPFD, 10);
    int high_report = fcntl(report, F_DUPFD_CLOEXEC, 10);
    dup2(high_in, 0);
    dup2(high_out, 1);
    dup2(high_out, 2);
    dup2(high_report, 3);
    fcntl(3, F_SETFD, FD_CLOEXEC);
    child_close_from(4);
    if ((!d->become || become(d) == 0) && chdir(d->cwd ? d->cwd : "/") == 0)
        execve(d->argv[0], (char *const *)d->argv, d->envp ? d->envp : environ);
    struct report why = { 1, errno };
    if (write(3, &why, sizeof why) < 0)
        _exit(126);
    _exit(127);
}

int child_start_daemon(const struct child_daemon *d, pid_t *pid, struct sl_err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return sl_fail_sys(err, SL_INTERNAL, errno, "pipe");
    AUTO_CLOSE int from = ends[0];
    pid_t middle = fork();
    if (middle == 0) {
        pid_t child = fork();
        if (child == 0)
            exec_daemon(d, ends[1]);
        struct report born = { 0, child };
        _exit(write(ends[1], &born, sizeof born) == sizeof born ? 0 : 1);
    }
    close(ends[1]);
    if (middle < 0)
        return sl_fail_sys(err, SL_INTERNAL, errno, "fork");
    waitpid(middle, NULL, 0);

    struct report r, born = { 0, -1 };
    while (read(from, &r, sizeof r) == sizeof r) {
        if (r.is_errno)
            return sl_fail_sys(err, SL_UNAVAILABLE, r.value, "cannot run %s", d->argv[0]);
        born = r;
    }
    if (born.value < 0)
        return sl_fail(err, SL_INTERNAL, "cannot fork");
    if (pid)
        *pid = born.value;
    return 0;
}
