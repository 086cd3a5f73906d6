/* A Sluice of its own for a bench: start, run programs on it, ask its broker, end. */
#include "stage.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/macros.h"

#define MAX_ARGS 64

static void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
static void die(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("bench: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(1);
}

const char *stage_program(const struct stage *s, const char *name)
{
    static char ring[4][sizeof s->bin + 64];
    static unsigned next;
    char *out = ring[next++ % ARRAY_LEN(ring)];
    bool ours = !strncmp(name, "bench-", 6);
    snprintf(out, sizeof ring[0], "%s/%s%s", s->bin, ours ? "" : "../bin/", name);
    return out;
}

static void keep_on(int cpu)
{
    if (cpu < 0)
        return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

pid_t stage_spawn(const char *const *program, const char *out, int cpu)
{
    pid_t pid = fork();
    if (pid < 0)
        die("fork: %s", strerror(errno));
    if (pid)
        return pid;
    keep_on(cpu);
    int fd = open(out ? out : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd >= 0)
        dup2(fd, 1);
    execvp(program[0], (char *const *)program);
    fprintf(stderr, "bench: %s: %s\n", program[0], strerror(errno));
    _exit(127);
}

static void append(const char **argv, size_t *n, const char *const *list)
{
    for (; list && *list; list++)
        if (*n < MAX_ARGS - 1)
            argv[(*n)++] = *list;
}

pid_t stage_run(struct stage *s, const char *const *options, const char *const *program,
                const char *out)
{
    const char *argv[MAX_ARGS] = { stage_program(s, "sluice"), "--run-dir", s->dir, "run",
                                   "-q" };
    size_t n = 5;
    append(argv, &n, options);
    append(argv, &n, (const char *const[]){ "--", NULL });
    append(argv, &n, program);
    return stage_spawn(argv, out, -1);
}

int stage_wait(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int connect_control(const char *dir)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    snprintf(to.sun_path, sizeof to.sun_path, "%s/control.sock", dir);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) < 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

void stage_open(struct stage *s, int cpu, const char *const *up_options)
{
    *s = (struct stage){ .control = -1 };
    ssize_t len = readlink("/proc/self/exe", s->bin, sizeof s->bin - 1);
    if (len < 0)
        die("/proc/self/exe: %s", strerror(errno));
    s->bin[len] = 0;
    *strrchr(s->bin, '/') = 0;

    /* as /run is on a real machine: in memory */
    bool shm = !access("/dev/shm", W_OK);
    snprintf(s->dir, sizeof s->dir, "%s/slb-XXXXXX", shm ? "/dev/shm" : "/tmp");
    if (!mkdtemp(s->dir) || chmod(s->dir, geteuid() ? 0700 : 0711))
        die("%s: %s", s->dir, strerror(errno));
    const char *argv[MAX_ARGS] = { stage_program(s, "sluice"), "--run-dir", s->dir, "up" };
    size_t n = 4;
    append(argv, &n, up_options);
    if (stage_wait(stage_spawn(argv, NULL, cpu)))
        die("sluice up failed; see %s/agent.log", s->dir);
    s->control = connect_control(s->dir);
    if (s->control < 0)
        die("no broker on %s/control.sock", s->dir);
}

bool stage_reconnect(struct stage *s)
{
    s->control = connect_control(s->dir);
    return s->control >= 0;
}

void stage_close_keep(struct stage *s)
{
    const char *argv[] = {
        stage_program(s, "sluice"), "--run-dir", s->dir, "down", "--force", NULL
    };
    close(s->control);
    stage_wait(stage_spawn(argv, NULL, -1));
}

void stage_remove(struct stage *s)
{
    const char *rm[] = { "rm", "-rf", s->dir, NULL };
    stage_wait(stage_spawn(rm, NULL, -1));
}

void stage_close(struct stage *s)
{
    stage_close_keep(s);
    stage_remove(s);
}

bool stage_try(struct stage *s, struct proto_ctl *m)
{
    m->version = PROTO_VERSION;
    m->seq = ++s->seq;
    return send(s->control, m, sizeof *m, MSG_NOSIGNAL) == sizeof *m &&
           recv(s->control, m, sizeof *m, 0) == sizeof *m && m->seq == s->seq;
}

int stage_call(struct stage *s, struct proto_ctl *m)
{
    if (!stage_try(s, m))
        die("the broker does not answer: %s", strerror(errno));
    return m->code;
}

void stage_sample(struct stage *s, struct share_sample *out)
{
    struct proto_ctl m = { .kind = PROTO_CTL_STAT_DEVICE };
    *out = (struct share_sample){ 0 };
    if (stage_call(s, &m))
        die("no device");
    out->now_ns = m.device_stat.now_ns;
    out->deliverable_ns = m.device_stat.deliverable_ns;
    out->gap_ns = m.device_stat.gap_ns;
    out->handoffs = m.device_stat.handoffs;
    uint64_t cursor = 0;
    do {
        m = (struct proto_ctl){ .kind = PROTO_CTL_STAT_LEASE, .cursor = cursor };
        if (stage_call(s, &m))
            break;
        cursor = m.cursor;
        uint32_t i = out->count++;
        out->lease[i].number = m.lease_stat.number;
        out->lease[i].held_ns = m.lease_stat.slice[0].held_ns;
        out->lease[i].kernels = m.lease_stat.slice[0].kernels;
        out->lease[i].turns = m.lease_stat.slice[0].turns;
        out->lease[i].overrun_ns = m.lease_stat.slice[0].overrun_ns;
        out->lease[i].wait_ns = m.lease_stat.slice[0].wait_ns;
    } while (m.more && out->count < ARRAY_LEN(out->lease));
}

int stage_find(const struct share_sample *sample, uint64_t number)
{
    for (uint32_t i = 0; i < sample->count; i++)
        if (sample->lease[i].number == number)
            return (int)i;
    return -1;
}
