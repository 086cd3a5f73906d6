/*
 * Stands where the shell expects the program: passes signals on, stops when the
 * program stops, ends when it has ended.
 *
 * The program is in the process group that the shell made for us, and we leave
 * it, for the shim's.  So whatever is meant for the job – Ctrl-C, Ctrl-Z,
 * SIGWINCH, `fg`, `kill %1`, the other programs of a pipeline – meets exactly
 * the program, once, without us; what is sent to our pid is passed on.  See
 * docs/internals/jobs.md.
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

struct attend {
    struct cli *cli;
    const struct run_plan *plan;
    struct run_shim *shim;
    struct run_end *end;
    bool apart; /* we left the job's group */
    bool ready; /* the program's process is in the job's group */
    bool over;  /* nothing more to wait for */
    bool exited;
    int stopped_by; /* the program is stopped and we are not yet; 0: no */
};

static void say(struct attend *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void say(struct attend *a, const char *fmt, ...)
{
    char words[64];
    va_list ap;
    va_start(ap, fmt);
    int len = vsnprintf(words, sizeof words, fmt, ap);
    va_end(ap);
    /* A shim that has gone is noticed by reading. */
    send(a->shim->link, words, (size_t)len, MSG_NOSIGNAL);
}

/* In a group that no shell looks after nobody would continue a stopped job; without
 * the shim, whose presence hides that from the kernel, SIGTSTP would do nothing. */
static bool is_nobodys_job(void)
{
    return getsid(getppid()) != getsid(0);
}

static void leave_group(struct attend *a)
{
    a->ready = true;
    a->apart = !a->plan->detach && setpgid(0, a->shim->pid) == 0;
}

/* What the caller gave is the program's alone now: a pipe that we keep open would not
 * end for its reader.  Messages still go to stderr. */
static void let_go(struct attend *a, int signal_fd)
{
    int kept[2] = { a->shim->link, signal_fd };
    int low = kept[0] < kept[1] ? kept[0] : kept[1], high = kept[0] + kept[1] - low;
    client_destroy(a->cli->client);
    a->cli->client = NULL;
    if (low > 3)
        close_range(3, (unsigned)low - 1, 0);
    if (high > low + 1)
        close_range((unsigned)low + 1, (unsigned)high - 1, 0);
    close_range((unsigned)high + 1, ~0u, 0);
    AUTO_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return;
    dup2(null, 0);
    dup2(null, 1);
}

static void on_exit_word(struct attend *a, const char *words)
{
    sscanf(words, "exited %d %d", &a->end->status, &a->end->signal);
    a->exited = true;
    a->stopped_by = 0;
    say(a, "resumed");
    /* Back, so that Ctrl-C reaches us while orphans linger. */
    if (a->apart)
        a->apart = setpgid(0, a->shim->group) < 0;
}

static void on_words(struct attend *a, const char *words, int signal_fd)
{
    struct run_end *end = a->end;
    int n;
    if (!strcmp(words, "ready")) {
        leave_group(a);
    } else if (!strncmp(words, "started", 7)) {
        end->started = end->anchored = true;
        a->over = a->plan->detach;
        if (!a->over)
            let_go(a, signal_fd);
    } else if (sscanf(words, "failed %d %n", &end->status, &n) == 1) {
        end->anchored = end->status != 125;
        snprintf(end->why, sizeof end->why, "%s", words + n);
        a->over = true;
    } else if (sscanf(words, "stopped %d", &n) == 1) {
        a->stopped_by = n;
    } else if (!strcmp(words, "continued")) {
        a->stopped_by = 0;
        say(a, "resumed");
    } else if (!strncmp(words, "exited", 6)) {
        on_exit_word(a, words);
    } else if (sscanf(words, "lingering %d", &n) == 1 && n > 0) {
        cli_note(a->cli,
                 "the program has ended; %d process%s it left behind get%s a few "
                 "seconds more (Ctrl-C ends them now)",
                 n, n == 1 ? " that" : "es that", n == 1 ? "s" : "");
    } else if (!strncmp(words, "placement ", 10)) {
        cli_note(a->cli, "the front is placed by environment only: %s", words + 10);
    } else if (!strncmp(words, "ending", 6)) {
        end->ended_outside = true;
    } else if (!strcmp(words, "done")) {
        a->over = true;
    }
}

static void on_link(struct attend *a, int signal_fd)
{
    char words[512];
    while (!a->over) {
        ssize_t n = recv(a->shim->link, words, sizeof words - 1, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            a->over = true;
            if (!a->exited) {
                a->end->status = 125;
                snprintf(a->end->why, sizeof a->end->why,
                         "the shim of the job ended before the program");
            }
            return;
        }
        words[n] = 0;
        on_words(a, words, signal_fd);
    }
}

/* The shell sees us stopped by the same signal as a plain program.  What continues
 * us is the shim, when the shell has continued the program. */
static void stop_too(struct attend *a)
{
    int sig = a->stopped_by;
    a->stopped_by = 0;
    if (sig == SIGTSTP && is_nobodys_job()) {
        kill(-a->shim->group, SIGCONT);
        return;
    }
    struct sigaction plain = { .sa_handler = SIG_DFL }, before;
    sigset_t one;
    sigaction(sig, &plain, &before);
    sigemptyset(&one);
    sigaddset(&one, sig);
    kill(getpid(), sig);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    sigprocmask(SIG_BLOCK, &one, NULL);
    sigaction(sig, &before, NULL);
}

static bool ends_things(uint32_t sig)
{
    return sig == SIGINT || sig == SIGTERM || sig == SIGHUP || sig == SIGQUIT;
}

static void on_signal(struct attend *a, const struct signalfd_siginfo *info)
{
    uint32_t sig = info->ssi_signo;
    bool from_terminal = info->ssi_code == SI_KERNEL;
    bool ours =
        info->ssi_pid == (uint32_t)a->shim->pid || info->ssi_pid == (uint32_t)getpid();
    if (sig == SIGCHLD || (sig == SIGCONT && ours))
        return;
    if (a->exited) {
        if (ends_things(sig))
            say(a, "hurry");
        return;
    }
    /* In the job's group still (a session's leader cannot leave it): the program
     * had it from the terminal too. */
    if (from_terminal && a->ready && !a->apart)
        return;
    say(a, "signal %u", sig);
}

static void on_signals(struct attend *a, int signal_fd)
{
    struct signalfd_siginfo info;
    while (read(signal_fd, &info, sizeof info) == sizeof info)
        on_signal(a, &info);
}

void run_attend(struct cli *cli, const struct run_plan *plan, struct run_shim *shim,
                struct run_end *end)
{
    struct attend a = { .cli = cli, .plan = plan, .shim = shim, .end = end };
    sigset_t all;
    memset(end, 0, sizeof *end);
    end->status = 125;
    sigfillset(&all);
    AUTO_CLOSE int signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    while (!a.over) {
        struct pollfd p[] = { { .fd = shim->link, .events = POLLIN },
                              { .fd = signal_fd, .events = POLLIN } };
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            break;
        on_link(&a, signal_fd);
        on_signals(&a, signal_fd);
        /* After all words: it may have been continued meanwhile. */
        if (a.stopped_by && !a.over)
            stop_too(&a);
    }
    cleanup_close(&shim->link);
    shim->link = -1;
}
