/* Starts a job's program and anchors it at the agent. */
#include "start.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/clock.h"
#include "notify.h"

#define ANCHOR_MS       10000
#define ANCHOR_RETRY_MS 100

/* The two pipes between the shim and the process that waits. */
struct pipes {
    int gate_read, gate_write, report_read, report_write;
};

static void close_pipes(struct pipes *p)
{
    cleanup_close(&p->gate_read);
    cleanup_close(&p->gate_write);
    cleanup_close(&p->report_read);
    cleanup_close(&p->report_write);
    *p = (struct pipes){ -1, -1, -1, -1 };
}

static bool open_pipes(struct pipes *p)
{
    int gate[2], report[2];
    *p = (struct pipes){ -1, -1, -1, -1 };
    if (pipe2(gate, O_CLOEXEC) < 0)
        return false;
    p->gate_read = gate[0];
    p->gate_write = gate[1];
    if (pipe2(report, O_CLOEXEC) < 0) {
        close_pipes(p);
        return false;
    }
    p->report_read = report[0];
    p->report_write = report[1];
    return true;
}

/* One report; false when the writer is gone without one. */
static bool read_report(int fd, struct child_report *r)
{
    size_t used = 0;
    while (used < sizeof *r) {
        ssize_t n = read(fd, (char *)r + used, sizeof *r - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        used += (size_t)n;
    }
    return true;
}

static void reap(pid_t pid)
{
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

static void note_started(struct shim *s, bool mounted)
{
    struct job_status *st = &s->status;
    snprintf(st->lease, sizeof st->lease, "%s", s->spec.lease);
    snprintf(st->placement, sizeof st->placement, "%s", mounted ? "mount" : "environment");
    st->started_ms = job_wall_ms();
    proc_identify(getpid(), &st->shim, NULL);
    proc_identify(s->child, &st->child, NULL);
    /* A full disk here is not the program's business; the agent is told anyway. */
    job_status_write(&s->spec.run, st, NULL);
}

static void note_failed(struct shim *s, int status)
{
    s->status.exited = true;
    s->status.exit_status = status;
    s->status.ended_ms = job_wall_ms();
    job_status_write(&s->spec.run, &s->status, NULL);
    notify_exit(&s->spec.run, s->spec.lease, status, ANCHOR_MS, NULL);
}

static int fail(struct shim *s, int status, char *why, size_t size, const char *text)
{
    snprintf(why, size, "%s", text);
    reap(s->child);
    return status;
}

/* Who started a detached job has gone home, and its agent may be starting again. */
static int anchor(struct shim *s, struct sl_err *err)
{
    uint64_t give_up_ns = clock_now_ns() + ANCHOR_MS * NS_PER_MS;
    for (;;) {
        int rc = notify_anchor(&s->spec.run, s->spec.lease, s->child, ANCHOR_MS, err);
        if (rc != -SL_UNAVAILABLE || !s->spec.detach || clock_now_ns() >= give_up_ns)
            return rc;
        usleep(ANCHOR_RETRY_MS * 1000);
    }
}

/* From the child's first word to the exec. */
static int lead_child(struct shim *s, struct pipes *p, char *why, size_t size)
{
    struct child_report r = { 0 };
    struct sl_err err = { 0 };
    if (!read_report(p->report_read, &r))
        return fail(s, 125, why, size, "the new process ended before it could start");
    if (r.status)
        return fail(s, r.status, why, size, r.why);
    if (s->spec.mount && !r.mounted)
        link_say(&s->link, "placement %s", r.why);
    bool mounted = r.mounted;
    link_say(&s->link, "ready");
    if (!s->spec.detach && link_is_gone(&s->link))
        return fail(s, 125, why, size, "the caller has gone");
    int rc = anchor(s, &err);
    if (rc == -SL_CONFLICT && s->spec.detach)
        joblog_close(&s->log); /* another agent's shim runs the job: the log is its own */
    if (rc < 0)
        return fail(s, 125, why, size, err.msg[0] ? err.msg : "no agent answers");

    note_started(s, mounted);
    if (write(p->gate_write, "g", 1) != 1)
        snprintf(r.why, sizeof r.why, "%s", strerror(errno));
    /* The exec closes the pipe: nothing to read is success. */
    if (!read_report(p->report_read, &r))
        return 0;
    fail(s, r.status, why, size, r.why);
    note_failed(s, r.status);
    return r.status;
}

/* Born in its lease's cgroup: to move a process there costs the agent a grace period of the
 * kernel, some 15 ms.  Where the kernel or our rights do not allow it, the agent moves it. */
static pid_t fork_into(const char *cgroup)
{
    AUTO_CLOSE int fd = cgroup ? open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    struct clone_args args = { .flags = CLONE_INTO_CGROUP,
                               .exit_signal = SIGCHLD,
                               .cgroup = (uint64_t)fd };
    long pid = fd < 0 ? -1 : syscall(SYS_clone3, &args, sizeof args);
    return pid < 0 ? fork() : (pid_t)pid;
}

int start_program(struct shim *s, char *why, size_t size)
{
    struct pipes p;
    AUTO_CLOSE int output = -1;
    if (!open_pipes(&p)) {
        snprintf(why, size, "pipe: %s", strerror(errno));
        return 125;
    }
    if (s->spec.log) {
        uid_t owner = s->spec.has_uid ? s->spec.uid : getuid();
        output = joblog_open(&s->log, s->spec.log, s->spec.log_max_bytes, owner);
    }
    s->child = fork_into(s->spec.cgroup);
    if (s->child == 0) {
        close(p.gate_write);
        close(p.report_read);
        child_run(&(struct child_plan){ .spec = &s->spec,
                                        .argv = s->argv,
                                        .signals = s->inherited,
                                        .gate_fd = p.gate_read,
                                        .report_fd = p.report_write,
                                        .output_fd = output });
    }
    int fork_errno = errno;
    cleanup_close(&p.gate_read);
    cleanup_close(&p.report_write);
    p.gate_read = p.report_write = -1;
    int status = 125;
    if (s->child < 0)
        snprintf(why, size, "fork: %s", strerror(fork_errno));
    else
        status = lead_child(s, &p, why, size);
    close_pipes(&p);
    return status;
}
