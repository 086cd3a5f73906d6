/* Starting a child program and reading what it says. */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void close_pair(int fd[2])
{
    for (int i = 0; i < 2; i++)
        if (fd[i] >= 0)
            close(fd[i]);
}

int child_start(struct child *c, const char *const *argv, struct sl_err *err)
{
    int in[2] = { -1, -1 }, out[2] = { -1, -1 }, error[2] = { -1, -1 };

    *c = (struct child){ .in = -1, .out = -1, .err = -1 };
    pid_t pid = -1;
    if (!pipe2(in, O_CLOEXEC) && !pipe2(out, O_CLOEXEC) && !pipe2(error, O_CLOEXEC))
        pid = fork();
    if (pid < 0) {
        int sys = errno;
        close_pair(in);
        close_pair(out);
        close_pair(error);
        return sl_fail_sys(err, SL_IO, sys, "cannot start %s", argv[0]);
    }
    if (pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        dup2(error[1], 2);
        execve(argv[0], (char *const *)argv, environ);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    close(error[1]);
    *c = (struct child){ .pid = pid, .in = in[1], .out = out[0], .err = error[0] };
    fcntl(c->err, F_SETFL, O_NONBLOCK);
    return 0;
}

/* Keep the end of what it says. */
static void collect_stderr(struct child *c)
{
    char chunk[256];
    ssize_t n;
    while ((n = read(c->err, chunk, sizeof chunk)) > 0) {
        size_t have = strlen(c->said), room = sizeof c->said - 1;
        if (have + (size_t)n > room) {
            size_t drop = have + (size_t)n - room;
            memmove(c->said, c->said + drop, have - drop);
            have -= drop;
        }
        memcpy(c->said + have, chunk, (size_t)n);
        c->said[have + (size_t)n] = 0;
    }
    if (n == 0) { /* closed: poll must not return for it again and again */
        close(c->err);
        c->err = -1;
    }
}

int child_read_line(struct child *c, char *out, size_t size, int timeout_ms,
                    struct sl_err *err)
{
    int64_t end = now_ms() + timeout_ms;
    size_t have = 0;

    for (;;) {
        struct pollfd p[2] = { { .fd = c->out, .events = POLLIN },
                               { .fd = c->err, .events = POLLIN } };
        int64_t left = end - now_ms();
        if (left <= 0 || poll(p, 2, (int)left) == 0)
            return sl_fail(err, SL_TIMEOUT, "no answer after %d s", timeout_ms / 1000);
        if (p[1].revents)
            collect_stderr(c);
        if (!p[0].revents)
            continue;
        ssize_t n = read(c->out, out + have, size - 1 - have);
        if (n < 0 && errno == EINTR)
            continue;
        have += n > 0 ? (size_t)n : 0;
        out[have] = 0;
        char *newline = strchr(out, '\n');
        if (newline) {
            *newline = 0;
            return 0;
        }
        if (n <= 0 || have == size - 1)
            return sl_fail(err, SL_IO, "it ended without an answer");
    }
}

int child_finish(struct child *c, int timeout_ms)
{
    int status = 0;
    bool killed = false;

    if (!c->pid)
        return 127;
    close(c->in);
    for (int64_t end = now_ms() + timeout_ms; waitpid(c->pid, &status, WNOHANG) == 0;) {
        if (!killed && now_ms() > end) {
            kill(c->pid, SIGKILL);
            killed = true;
        }
        nanosleep(&(struct timespec){ .tv_nsec = 5 * 1000 * 1000 }, NULL);
    }
    if (c->err >= 0) {
        collect_stderr(c);
        if (c->err >= 0)
            close(c->err);
    }
    close(c->out);
    c->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
