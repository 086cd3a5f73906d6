/* Owns sluice-agent as a process: daemon or not, its limits, and what it says about its
 * start. */
#include "agent/main.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent.h"
#include "base/cleanup.h"
#include "child.h"
#include "core/macros.h"
#include "options.h"
#include "os/log.h"

/* As far as it may: the limits of the machine's first process, else the hard ones of ours.
 * A caller's `ulimit -f` or `-n` must not bound an agent that serves others. */
static void reset_limits(void)
{
    static const int limits[] = { RLIMIT_AS,     RLIMIT_CORE,       RLIMIT_CPU,
                                  RLIMIT_DATA,   RLIMIT_FSIZE,      RLIMIT_MEMLOCK,
                                  RLIMIT_NOFILE, RLIMIT_NPROC,      RLIMIT_STACK,
                                  RLIMIT_NICE,   RLIMIT_SIGPENDING, RLIMIT_LOCKS };
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        struct rlimit l;
        if (geteuid() == 0 && prlimit(1, limits[i], NULL, &l) == 0 &&
            setrlimit(limits[i], &l) == 0)
            continue;
        if (getrlimit(limits[i], &l) != 0 || limits[i] == RLIMIT_STACK)
            continue;
        l.rlim_cur = l.rlim_max;
        setrlimit(limits[i], &l);
    }
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max; /* two descriptors a lease */
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

static void open_log(const struct agent *a)
{
    char path[128];
    agent_path(a, "agent.log", path, sizeof path);
    int log = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, 0);
    dup2(log >= 0 ? log : null, 1);
    dup2(log >= 0 ? log : null, 2);
    close(null);
    if (log > 2)
        close(log);
}

/* "+" when it answers, "=" and a sentence when another one does, else the error: "!" if by
 * what it was given, "-" otherwise. */
static void report(int fd, char kind, const char *text)
{
    char line[300];
    int len = snprintf(line, sizeof line, "%c%s", kind, text);
    if (fd >= 0 && write(fd, line, (size_t)min_u64((uint64_t)len, sizeof line - 1)) < 0)
        log_warn("ready-fd", "errno=%d", errno);
}

/* Serve until told to end; the start is reported to report_fd, which is closed then. */
static int serve(const struct agent_options *o, int report_fd)
{
    /* kept to the end of the process, as is the text that its options point to */
    static struct agent *a;
    struct sl_err err = { 0 };
    a = malloc(sizeof *a);
    if (!a)
        return 1;
    int rc = agent_init(a, o, &err);
    if (rc == 0 && !o->foreground)
        open_log(a);
    if (rc == 0)
        rc = agent_start(a, &err);
    if (rc == -SL_CONFLICT && a->epoll_fd < 0)
        report(report_fd, '=', err.msg);
    else
        report(report_fd,
               rc == 0             ? '+'
               : rc == -SL_INVALID ? '!'
                                   : '-',
               rc < 0 ? err.msg : "");
    if (report_fd > 2)
        close(report_fd);
    bool another = rc == -SL_CONFLICT && a->epoll_fd < 0;
    if (rc == 0) {
        log_info("start", "pid=%d run_dir=%s version=%s", (int)getpid(), a->dir.path,
                 SLUICE_VERSION);
        rc = agent_run(a, &err);
    }
    if (rc < 0 && !another)
        log_error("end", "error=\"%s\"", err.msg);
    else if (!another)
        log_info("end", "broker=%s", a->end_broker ? "ended" : "left");
    agent_finish(a);
    if (rc == 0 || another)
        return 0;
    return sl_code_row(rc == -SL_INVALID ? SL_INVALID : SL_INTERNAL)->exit_status;
}

/* What the daemon said, said again to whoever started us. */
static int relay(int from, int ready_fd)
{
    char text[300];
    size_t have = 0;
    ssize_t n;
    while (have < sizeof text - 1 &&
           ((n = read(from, text + have, sizeof text - 1 - have)) > 0 ||
            (n < 0 && errno == EINTR)))
        have += n > 0 ? (size_t)n : 0;
    text[have] = '\0';
    if (have == 0)
        snprintf(text, sizeof text, "-it ended before it was ready; see agent.log");
    if (ready_fd >= 0)
        report(ready_fd, text[0] == '!' ? '-' : text[0], text + 1);
    if (text[0] == '+')
        return 0;
    fprintf(stderr, "sluice-agent: %s\n", text + 1);
    return text[0] == '=' ? 0 : text[0] == '!' ? 2 : 1;
}

static int daemonise(const struct agent_options *o)
{
    int ends[2];
    if (pipe(ends) != 0) {
        perror("sluice-agent: pipe");
        return 1;
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        perror("sluice-agent: fork");
        return 1;
    }
    if (pid > 0) {
        close(ends[1]);
        return relay(ends[0], o->ready_fd);
    }
    setsid();
    if (fork() != 0)
        _exit(0); /* never again a session leader, never a terminal */
    /* The caller's descriptors go; the report's goes to 3, above what the log replaces. */
    int null = open("/dev/null", O_RDWR);
    int high = fcntl(ends[1], F_DUPFD, 10);
    dup2(null, 0);
    dup2(null, 1);
    dup2(null, 2);
    dup2(high, 3);
    child_close_from(4);
    fcntl(3, F_SETFD, FD_CLOEXEC);
    if (chdir("/") != 0)
        _exit(1);
    _exit(serve(o, 3));
}

int agent_main(int argc, char **argv)
{
    static struct agent_options o; /* to the end of the process, as its text */
    int status = options_parse(argc, argv, &o);
    if (status >= 0)
        return status;
    struct rundir dir;
    struct sl_err err = { 0 };
    /* relative to the caller's directory, so before that is left */
    if (rundir_choose(&dir, o.run_dir, &err) < 0) {
        fprintf(stderr, "sluice-agent: %s\n", err.msg);
        return 1;
    }
    o.run_dir = dir.path;
    umask(022);
    reset_limits();
    log_init("agent", 2, LOG_INFO);
    if (!o.foreground)
        return daemonise(&o);
    status = serve(&o, o.ready_fd);
    if (status != 0)
        fprintf(stderr, "sluice-agent: see the log above\n");
    return status;
}
