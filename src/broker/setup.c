/* Opens what a broker lives on: run directory, lock, run file, log, sockets, limits. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/macros.h"
#include "internal.h"

#define BACKLOG 4096 /* a full one makes connect() block or fail */

/* What one client needs at most (socket, pidfd, address space), and the rest:
 * control connections, device locks, our own. */
#define FDS_A_CLIENT 3
#define FDS_OURS     (BROKER_CONTROLS + PROTO_MAX_DEVICES + 64)

static int open_directory(struct broker *b, struct sl_err *err)
{
    const char *dir = b->options.run_dir;
    struct stat st;
    struct sockaddr_un a;
    if (strlen(dir) + sizeof "/control.sock" > sizeof a.sun_path)
        return sl_fail(
            err, SL_INVALID,
            "run directory %.60s: too long for a socket's path (at most %zu bytes); "
            "set SLUICE_RUN_DIR to a shorter one",
            dir, sizeof a.sun_path - sizeof "/control.sock");
    b->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (b->dir_fd < 0 && errno == ENOENT)
        return sl_fail(err, SL_NOT_FOUND,
                       "run directory %s: does not exist; make it with mode 0700", dir);
    if (b->dir_fd < 0 || fstat(b->dir_fd, &st))
        return sl_fail_sys(err, SL_IO, errno, "run directory %s", dir);
    if (st.st_uid != geteuid())
        return sl_fail(
            err, SL_DENIED,
            "run directory %s: belongs to uid %u, not to uid %u; use one of your own", dir,
            (unsigned)st.st_uid, (unsigned)geteuid());
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return sl_fail(
            err, SL_DENIED,
            "run directory %s: others may write to it (mode %04o); chmod go-w it", dir,
            (unsigned)st.st_mode & 07777);
    /* sockets are bound by their short names: bind() takes no directory */
    if (fchdir(b->dir_fd))
        return sl_fail_sys(err, SL_IO, errno, "run directory %s: enter", dir);
    return 0;
}

static int take_lock(struct broker *b, struct sl_err *err)
{
    char text[32] = "";
    b->lock_fd = openat(b->dir_fd, "broker.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (b->lock_fd < 0)
        return sl_fail_sys(err, SL_IO, errno, "run directory %s: broker.lock",
                           b->options.run_dir);
    if (flock(b->lock_fd, LOCK_EX | LOCK_NB)) {
        ssize_t n = pread(b->lock_fd, text, sizeof text - 1, 0);
        text[n > 0 ? strcspn(text, "\n") : 0] = 0;
        return sl_fail(err, SL_CONFLICT,
                       "run directory %s: a broker already runs here (pid %s)",
                       b->options.run_dir, text[0] ? text : "unknown");
    }
    int n = snprintf(text, sizeof text, "%d\n", (int)getpid());
    if (ftruncate(b->lock_fd, 0) || pwrite(b->lock_fd, text, (size_t)n, 0) != n)
        return sl_fail_sys(err, SL_IO, errno, "run directory %s: broker.lock",
                           b->options.run_dir);
    return 0;
}

static int open_log(struct broker *b, struct sl_err *err)
{
    log_init("broker", STDERR_FILENO, b->options.log_level);
    if (b->options.foreground)
        return 0;
    int fd =
        openat(b->dir_fd, "broker.log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        return sl_fail_sys(err, SL_IO, errno, "run directory %s: broker.log",
                           b->options.run_dir);
    b->log_fd = fd;
    log_init("broker", fd, b->options.log_level);
    return 0;
}

/* Bound under another name and renamed when it listens: whoever finds the name
 * finds a broker behind it.  What a killed broker left there is replaced; that
 * is safe because we hold broker.lock. */
static int open_socket(const char *name, mode_t mode, int *out, struct sl_err *err)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    snprintf(a.sun_path, sizeof a.sun_path, "%s.new", name);
    int on = 1, fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return sl_fail_sys(err, SL_IO, errno, "socket %s", name);
    unlink(a.sun_path);
    mode_t mask = umask(0777 & ~mode);
    /* on the listener, so that a message sent before accept() has it too */
    int bad = setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) ||
              bind(fd, (struct sockaddr *)&a, sizeof a) || chmod(a.sun_path, mode) ||
              listen(fd, BACKLOG) || rename(a.sun_path, name);
    umask(mask);
    if (bad) {
        int why = errno;
        unlink(a.sun_path);
        close(fd);
        return sl_fail_sys(err, SL_IO, why, "socket %s", name);
    }
    *out = fd;
    return 0;
}

static void raise_limits(struct broker *b)
{
    struct rlimit r = { 0, 0 }, wish;
    rlim_t need = LEDGER_MAX_CLIENTS * FDS_A_CLIENT +
                  (BROKER_CONNS - LEDGER_MAX_CLIENTS) * 2 + FDS_OURS;
    getrlimit(RLIMIT_NOFILE, &r);
    wish = r;
    if (wish.rlim_max < need)
        wish.rlim_max = need; /* root may */
    wish.rlim_cur = wish.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &wish)) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
    }
    getrlimit(RLIMIT_NOFILE, &r);
    uint64_t room = r.rlim_cur > FDS_OURS ? (r.rlim_cur - FDS_OURS) / FDS_A_CLIENT : 1;
    b->conn_limit = (uint32_t)min_u64(room, BROKER_CONNS);
    if (r.rlim_cur < need)
        log_event(LOG_WARN, "few-descriptors", "limit=%llu connections=%u",
                  (unsigned long long)r.rlim_cur, b->conn_limit);
}

/* The governor's turns are as good as our wake-ups.  A small slack and a nice
 * value below the tenants' make both prompt; real-time priority would too, but
 * a loop that a tenant can keep busy must not be able to starve the machine.
 * Neither is granted to everyone, and neither is needed to be correct. */
static void ask_for_priority(void)
{
    prctl(PR_SET_TIMERSLACK, 1);
    setpriority(PRIO_PROCESS, 0, -5);
}

static int open_loop(struct broker *b, struct sl_err *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a log at its limit is lost, not the ledger */
    signal(SIGHUP, SIG_IGN);  /* the terminal of whoever started us is not our life */

    b->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    b->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    b->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (b->epoll_fd < 0 || b->timer_fd < 0 || b->signal_fd < 0 ||
        broker_watch(b, b->timer_fd, EVENT_TIMER, 0, 0) ||
        broker_watch(b, b->signal_fd, EVENT_SIGNAL, 0, 0))
        return sl_fail_sys(err, SL_IO, errno, "event loop");
    return 0;
}

int setup_open(struct broker *b, struct sl_err *err)
{
    bool root = geteuid() == 0;
    int rc = open_directory(b, err);
    if (!rc)
        rc = take_lock(b, err);
    if (!rc)
        rc = open_log(b, err);
    if (!rc)
        rc = open_loop(b, err);
    if (!rc)
        rc = runfile_open(&b->runfile, b->dir_fd, err);
    if (rc)
        return rc;
    raise_limits(b);
    ask_for_priority();
    identity_init(b);
    if (b->runfile.moved_aside)
        log_event(LOG_ERROR, "run-file-unusable", "moved_to=ledger.bad");
    recover_read(b);

    /* last: from here on somebody may talk to us */
    rc = open_socket("broker.sock", root ? 0666 : 0600, &b->listen_fd, err);
    if (!rc)
        rc = open_socket("control.sock", 0600, &b->control_fd, err);
    if (!rc && (broker_watch(b, b->listen_fd, EVENT_LISTEN, 0, 0) ||
                broker_watch(b, b->control_fd, EVENT_CONTROL_LISTEN, 0, 0)))
        rc = sl_fail_sys(err, SL_IO, errno, "event loop");
    return rc;
}
