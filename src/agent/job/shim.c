/* Parent of one job's program from its start to the end of its last orphan. */
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "core/clock.h"
#include "core/macros.h"
#include "family.h"
#include "notify.h"
#include "start.h"

#define KILL_EVERY_MS 20
#define NAG_EVERY_MS  50
#define EXIT_RETRY_MS 10000

/* RUNNING -> LINGERING (the program ended, orphans have their time) -> TERMINATING
 * (SIGTERM was sent) -> KILLING; from outside straight to TERMINATING. */
enum phase { RUNNING, LINGERING, TERMINATING, KILLING };

struct watch {
    struct shim *shim;
    struct family family;
    enum phase phase;
    uint64_t deadline_ms; /* of the phase; 0: none */
    uint64_t tell_ms;     /* when to say that orphans linger; 0: told */
    bool ended;           /* the program */
    int exit_status, signal;
    pid_t starter; /* whom to wake when the program continues */
    bool nagging;
    int signal_fd;
};

static uint64_t now_ms(void)
{
    return clock_now_ns() / NS_PER_MS;
}

static int status_of(int wait_status)
{
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status)
                                    : WEXITSTATUS(wait_status);
}

static void enter(struct watch *w, enum phase phase)
{
    if (phase <= w->phase)
        return;
    w->phase = phase;
    w->deadline_ms = phase == KILLING ? 0 : now_ms() + w->shim->spec.grace_ms;
    if (phase == LINGERING)
        w->tell_ms = now_ms() + 1000;
}

/*
 * `sluice run` stops itself when the program stops.  The shell continues only
 * the program's group, so the shim wakes it, again and again until it says
 * so: the first signal may come before it has stopped.
 */
static void wake_starter(struct watch *w)
{
    if (w->nagging && !link_is_gone(&w->shim->link) && w->starter > 1)
        kill(w->starter, SIGCONT);
    else
        w->nagging = false;
}

static void on_program(struct watch *w, int status)
{
    struct link *link = &w->shim->link;
    if (WIFSTOPPED(status)) {
        w->nagging = false;
        link_say(link, "stopped %d", WSTOPSIG(status));
    } else if (WIFCONTINUED(status)) {
        link_say(link, "continued");
        w->nagging = link->fd >= 0;
        wake_starter(w);
    } else {
        w->ended = true;
        w->exit_status = status_of(status);
        w->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        link_say(link, "exited %d %d", w->exit_status, w->signal);
        w->nagging = link->fd >= 0; /* it may be stopped */
        wake_starter(w);
        enter(w, LINGERING);
    }
}

/* False when no child is left, hence no descendant. */
static bool reap_all(struct watch *w)
{
    int status;
    for (;;) {
        pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid <= 0)
            return pid == 0;
        if (pid == w->shim->child && !w->ended)
            on_program(w, status);
    }
}

static void take_signals(struct watch *w)
{
    struct signalfd_siginfo info;
    while (read(w->signal_fd, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo != SIGTERM || w->phase >= TERMINATING)
            continue;
        link_say(&w->shim->link, "ending by process %u", info.ssi_pid);
        enter(w, TERMINATING);
    }
}

static bool ends_things(int sig)
{
    return sig == SIGINT || sig == SIGTERM || sig == SIGHUP || sig == SIGQUIT;
}

static void take_words(struct watch *w)
{
    char words[LINK_WORDS_SIZE];
    int sig;
    while (link_hear(&w->shim->link, words)) {
        if (!strcmp(words, "resumed"))
            w->nagging = false;
        else if (!strcmp(words, "hurry") && w->ended)
            enter(w, TERMINATING);
        else if (sscanf(words, "signal %d", &sig) == 1 && sig > 0 && sig < NSIG) {
            if (!w->ended)
                kill(w->shim->child, sig);
            else if (ends_things(sig))
                enter(w, TERMINATING);
        }
    }
}

static void pass_time(struct watch *w)
{
    uint64_t now = now_ms();
    static pid_t pids[FAMILY_MAX];
    if (w->deadline_ms && now >= w->deadline_ms)
        enter(w, w->phase + 1);
    if (w->phase == LINGERING && w->tell_ms && now >= w->tell_ms) {
        w->tell_ms = 0;
        link_say(&w->shim->link, "lingering %d", family_list(pids, FAMILY_MAX));
    }
    if (w->phase == TERMINATING)
        family_terminate(&w->family);
    if (w->phase == KILLING)
        family_kill();
    if (w->nagging)
        wake_starter(w);
}

static int patience_ms(const struct watch *w)
{
    uint64_t now = now_ms(), wait = UINT64_MAX;
    if (w->deadline_ms)
        wait = sub_sat_u64(w->deadline_ms, now);
    if (w->phase == LINGERING && w->tell_ms)
        wait = min_u64(wait, sub_sat_u64(w->tell_ms, now));
    /* Children of those that died turn up without a signal to us. */
    if (w->phase == TERMINATING || w->phase == KILLING)
        wait = min_u64(wait, KILL_EVERY_MS);
    if (w->nagging)
        wait = min_u64(wait, NAG_EVERY_MS);
    return wait == UINT64_MAX ? -1 : (int)min_u64(wait, 60000);
}

/* Until nothing of the job is left. */
static void attend(struct watch *w)
{
    struct shim *s = w->shim;
    while (reap_all(w)) {
        pass_time(w);
        struct pollfd p[] = { { .fd = w->signal_fd, .events = POLLIN },
                              { .fd = s->link.fd, .events = POLLIN },
                              { .fd = s->log.pipe_fd, .events = POLLIN } };
        if (poll(p, ARRAY_LEN(p), patience_ms(w)) < 0 && errno != EINTR)
            usleep(KILL_EVERY_MS * 1000);
        take_signals(w);
        take_words(w);
        joblog_drain(&s->log);
    }
}

/* The agent may be starting again: the status file tells it if we cannot. */
static void tell_exit(struct watch *w)
{
    struct shim *s = w->shim;
    uint64_t give_up_ms = now_ms() + EXIT_RETRY_MS;
    for (bool first = true;; first = false) {
        struct sl_err err = { 0 };
        int rc = notify_exit(&s->spec.run, s->spec.lease, w->exit_status, 3000, &err);
        if (first)
            link_say(&s->link, "done");
        if (rc == 0 || err.code != SL_UNAVAILABLE || now_ms() >= give_up_ms)
            return;
        usleep(200000);
    }
}

static void finish(struct watch *w)
{
    struct shim *s = w->shim;
    joblog_close(&s->log);
    s->status.exited = true;
    s->status.exit_status = w->exit_status;
    s->status.signal = w->signal;
    s->status.ended_ms = job_wall_ms();
    s->status.log_dropped_bytes = s->log.dropped_bytes;
    /* Where the disk is full the agent's journal has it, told by the next call. */
    job_status_write(&s->spec.run, &s->status, NULL);
    tell_exit(w);
}

/* Whatever is opened later must not get the place of a standard stream. */
static void fill_standard_streams(void)
{
    int fd;
    while ((fd = open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0 && fd < 3)
        ;
    if (fd >= 3)
        close(fd);
}

/* What the caller gave belongs to the program; a pipe that we kept open would
 * never end for its reader. */
static void let_go(struct watch *w)
{
    const struct shim *s = w->shim;
    int kept[] = { w->signal_fd, s->link.fd, s->log.pipe_fd, s->log.file_fd };
    for (unsigned from = 0;;) {
        unsigned next = ~0u;
        for (size_t i = 0; i < ARRAY_LEN(kept); i++)
            if (kept[i] >= 0 && (unsigned)kept[i] >= from && (unsigned)kept[i] < next)
                next = (unsigned)kept[i];
        if (next > from)
            close_range(from, next == ~0u ? next : next - 1, 0);
        if (next == ~0u)
            break;
        from = next + 1;
    }
    fill_standard_streams();
    if (chdir("/") < 0)
        return;
}

/* Above the standard streams, which may have come closed. */
static int keep_high(int fd)
{
    if (fd < 0)
        return fd;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 10);
    if (high >= 0)
        close(fd);
    return high;
}

static bool read_spec(int fd, struct shim *s, struct sl_err *err)
{
    AUTO_BUF struct buf text = { 0 };
    char piece[16384];
    ssize_t n;
    while ((n = read(fd, piece, sizeof piece)) > 0 && text.len <= JOB_SPEC_MAX_BYTES)
        buf_add_bytes(&text, piece, (size_t)n);
    close(fd);
    if (n < 0 || !text.text || buf_failed(&text) || text.len > JOB_SPEC_MAX_BYTES) {
        sl_fail(err, SL_INVALID, "job spec: could not be read");
        return false;
    }
    return job_spec_parse(text.text, text.len, &s->spec, err) == 0;
}

static bool read_number(const char *text, int *out)
{
    char *end;
    long n = strtol(text, &end, 10);
    *out = (int)n;
    return *text && !*end && n >= 0 && n < 1 << 20;
}

/* Fills link and argv; returns the spec's descriptor or -1. */
static int read_arguments(int argc, char **argv, struct shim *s)
{
    int spec_fd = -1;
    s->link.fd = -1;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--")) {
            s->argv = argv + i + 1;
            break;
        }
        bool spec = !strcmp(argv[i], "--spec-fd"), notify = !strcmp(argv[i], "--notify-fd");
        if ((!spec && !notify) || i + 1 == argc ||
            !read_number(argv[++i], spec ? &spec_fd : &s->link.fd))
            return -1;
    }
    s->link.fd = keep_high(s->link.fd);
    return spec_fd;
}

static int open_signals(struct shim *s)
{
    sigset_t all;
    struct sigaction plain = { .sa_handler = SIG_DFL };
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &s->inherited.mask);
    /* A caller that ignores SIGCHLD would have the kernel reap for us. */
    sigaction(SIGCHLD, &plain, &s->inherited.on_child);
    sigset_t read_set;
    sigemptyset(&read_set);
    sigaddset(&read_set, SIGCHLD);
    sigaddset(&read_set, SIGTERM);
    return keep_high(signalfd(-1, &read_set, SFD_CLOEXEC | SFD_NONBLOCK));
}

static int fail_start(struct shim *s, int status, const char *why)
{
    link_say(&s->link, "failed %d %s", status, why);
    /* Where nobody listens the log says it. */
    joblog_drain(&s->log);
    if (s->log.file_fd >= 0)
        dprintf(s->log.file_fd, "sluice: %s\n", why);
    return status;
}

int shim_main(int argc, char **argv)
{
    static struct shim s;
    static struct watch w;
    struct sl_err err = { 0 };
    char why[400];
    int spec_fd = read_arguments(argc, argv, &s);
    if (spec_fd < 0) {
        fprintf(stderr, "sluice-shim: started by sluice and sluice-agent, not by hand\n");
        return 125;
    }
    s.log.pipe_fd = s.log.file_fd = -1;
    w = (struct watch){ .shim = &s, .starter = getppid(), .signal_fd = open_signals(&s) };
    if (!read_spec(spec_fd, &s, &err))
        return fail_start(&s, 125, err.msg);
    if (s.spec.argv)
        s.argv = s.spec.argv;
    if (!s.argv || !s.argv[0] || w.signal_fd < 0)
        return fail_start(&s, 125, "job spec: no program");
    if (s.spec.detach) {
        setsid();
        fill_standard_streams();
    } else {
        setpgid(0, 0);
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1);

    int status = start_program(&s, why, sizeof why);
    if (status)
        return fail_start(&s, status, why);
    link_say(&s.link, "started %s", s.status.placement);
    let_go(&w);
    attend(&w);
    finish(&w);
    job_spec_finish(&s.spec);
    return w.exit_status;
}
