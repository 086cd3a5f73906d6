/* Owns the connection to the broker, and starting it when nobody answers. */
#include "broker_link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "child.h"
#include "core/clock.h"
#include "os/proc.h"
#include "os/sock.h"

#define CALL_TIMEOUT_MS 2000
/* One that was just killed holds its lock until it is gone; one that keeps ending at once is
 * not waited for, because the agent's callers would wait too. */
#define START_TRIES      5
#define START_PAUSE_MS   20
#define START_TIMEOUT_MS 5000
#define NO_ROOM          (64u << 10) /* then its log may lack its last word */

void broker_link_init(struct broker_link *b, const struct rundir *dir, const char *program)
{
    memset(b, 0, sizeof *b);
    b->fd = -1;
    snprintf(b->program, sizeof b->program, "%s", program);
    snprintf(b->run_dir, sizeof b->run_dir, "%s", dir->path);
}

void broker_link_close(struct broker_link *b)
{
    if (b->fd >= 0)
        close(b->fd);
    b->fd = -1;
}

struct proto_ctl broker_link_message(enum proto_ctl_kind kind)
{
    struct proto_ctl m;
    memset(&m, 0, sizeof m);
    m.version = PROTO_VERSION;
    m.kind = (uint16_t)kind;
    return m;
}

static int lost(struct broker_link *b, int sys, struct sl_err *err)
{
    broker_link_close(b);
    return sys ? sl_fail_sys(err, SL_UNAVAILABLE, sys, "the broker")
               : sl_fail(err, SL_UNAVAILABLE, "the broker closed the connection");
}

int broker_link_call(struct broker_link *b, struct proto_ctl *m, struct sl_err *err)
{
    if (b->fd < 0)
        return sl_fail(err, SL_UNAVAILABLE, "no broker answers");
    m->seq = ++b->seq;
    if (send(b->fd, m, sizeof *m, MSG_NOSIGNAL) != (ssize_t)sizeof *m)
        return lost(b, errno, err);
    uint64_t deadline = clock_now_ns() + CALL_TIMEOUT_MS * NS_PER_MS;
    for (;;) {
        struct pollfd p = { .fd = b->fd, .events = POLLIN };
        uint64_t now = clock_now_ns();
        int ready =
            now < deadline ? poll(&p, 1, (int)((deadline - now) / NS_PER_MS) + 1) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0) {
            /* a stopped one holds up all of us, and nobody stops it for a good reason */
            if (b->pid > 0)
                kill(b->pid, SIGCONT);
            return lost(b, ETIMEDOUT, err);
        }
        struct proto_ctl answer;
        ssize_t n = recv(b->fd, &answer, sizeof answer, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return lost(b, n < 0 ? errno : 0, err);
        if (n != sizeof answer || answer.version != PROTO_VERSION)
            return lost(b, EPROTO, err);
        if (answer.seq != b->seq)
            continue; /* the late answer to a call that timed out */
        *m = answer;
        if (m->code < 0)
            return sl_fail(err, (enum sl_code) - m->code, "the broker refused");
        return 0;
    }
}

static int try_connect(struct broker_link *b, struct sl_err *err)
{
    char path[RUNDIR_SIZE + 24];
    snprintf(path, sizeof path, "%s/control.sock", b->run_dir);
    int fd = sock_connect_unix(path, SOCK_SEQPACKET, err);
    if (fd < 0)
        return fd;
    b->fd = fd;
    struct proto_ctl m = broker_link_message(PROTO_CTL_INFO);
    int rc = broker_link_call(b, &m, err);
    if (rc < 0) {
        broker_link_close(b);
        return rc;
    }
    b->pid = m.info.pid;
    snprintf(b->version, sizeof b->version, "%.31s", m.info.version);
    return 0;
}

static int start(struct broker_link *b, struct proc_id *id, struct sl_err *err)
{
    char log[RUNDIR_SIZE + 24];
    snprintf(log, sizeof log, "%s/broker.log", b->run_dir);
    const char *const argv[] = { b->program, "--run-dir", b->run_dir, NULL };
    struct child_daemon d = { .argv = argv, .log_path = log, .stdin_fd = -1, .umask = 022 };
    b->starts++;
    pid_t pid = 0;
    int rc = child_start_daemon(&d, &pid, err);
    if (rc == 0 && proc_identify(pid, id, NULL) < 0)
        *id = (struct proc_id){ 0 };
    return rc;
}

/* Its own last word, without the newline; what a full disk kept it from writing is seen by the
 * room. */
static int fail_start(const struct broker_link *b, struct sl_err *err)
{
    static const char own[] = "\nsluice-broker: ";
    char path[RUNDIR_SIZE + 24], said[320] = "\n";
    struct statvfs fs;
    snprintf(path, sizeof path, "%s/broker.log", b->run_dir);
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    ssize_t n =
        fd < 0 ? 0
               : pread(fd, said + 1, sizeof said - 2,
                       end > (off_t)sizeof said - 2 ? end - (off_t)sizeof said + 2 : 0);
    size_t len = n > 0 ? (size_t)n + 1 : 1;
    said[said[len - 1] == '\n' ? len - 1 : len] = '\0';
    const char *last = strrchr(said, '\n');
    if (last && !strncmp(last, own, sizeof own - 1))
        return sl_fail(err, SL_UNAVAILABLE, "the broker does not start in %s: %s",
                       b->run_dir, last + sizeof own - 1);
    if (statvfs(b->run_dir, &fs) == 0 && fs.f_blocks && fs.f_bavail * fs.f_frsize < NO_ROOM)
        return sl_fail_sys(err, SL_UNAVAILABLE, ENOSPC, "the broker does not start in %s",
                           b->run_dir);
    return sl_fail(err, SL_UNAVAILABLE, "the broker does not start: see %s", path);
}

int broker_link_open(struct broker_link *b, struct sl_err *err)
{
    broker_link_close(b);
    b->adopted = try_connect(b, NULL) == 0;
    if (b->adopted)
        return 0;
    struct proc_id id;
    int rc = start(b, &id, err);
    uint64_t deadline = clock_now_ns() + START_TIMEOUT_MS * NS_PER_MS;
    for (int tries = START_TRIES; rc == 0;) {
        usleep(5000);
        if (try_connect(b, NULL) == 0) {
            b->adopted = b->pid != id.pid; /* one that was slow to answer has the lock */
            return 0;
        }
        bool ended = !proc_is_alive(&id);
        if (ended && --tries > 0) {
            usleep(START_PAUSE_MS * 1000);
            rc = start(b, &id, err);
        } else if (ended || clock_now_ns() > deadline)
            rc = fail_start(b, err);
    }
    return rc;
}
