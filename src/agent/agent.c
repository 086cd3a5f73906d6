/* Owns the agent's life: start, the loop with its clocks, and the end. */
#include "agent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/clock.h"
#include "core/macros.h"
#include "options.h"
#include "os/file.h"
#include "os/log.h"
#include "os/sock.h"

#define BROKER_RETRY_NS  NS_PER_S       /* between attempts to start a broker that fails */
#define DRAIN_LOOK_MS    50             /* how often something that ends is looked at */
#define LOCK_PATIENCE_NS (5 * NS_PER_S) /* for an agent that is just ending */

uint64_t agent_wall_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void agent_path(const struct agent *a, const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s/%s", a->dir.path, name);
}

/* ---- descriptors ---- */

int agent_watch(struct agent *a, struct watch *w, struct sl_err *err)
{
    struct epoll_event e = { .events = EPOLLIN, .data.ptr = w };
    if (epoll_ctl(a->epoll_fd, EPOLL_CTL_ADD, w->fd, &e) == 0)
        return 0;
    return sl_fail_sys(err, SL_INTERNAL, errno, "epoll");
}

void agent_unwatch(struct agent *a, struct watch *w)
{
    if (w->fd < 0)
        return;
    epoll_ctl(a->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
    close(w->fd);
    w->fd = -1;
}

static void api_ready(struct agent *a, struct watch *w)
{
    api_run(a->api);
}

static void signal_ready(struct agent *a, struct watch *w)
{
    struct signalfd_siginfo s;
    if (read(w->fd, &s, sizeof s) != sizeof s)
        return;
    if (s.ssi_signo == SIGINT && agent_live_count(a) > 0) {
        log_warn("interrupt-refused", "leases=%u what=\"leases live: sluice down --force\"",
                 agent_live_count(a));
        return;
    }
    log_info("signal", "number=%u", s.ssi_signo);
    a->ending = true;
    a->end_broker = s.ssi_signo == SIGINT;
}

/* ---- start ---- */

/* One agent a directory.  Whoever finds it locked waits until the other one answers, so
 * that "already running" means that there is somebody to talk to. */
static int take_lock(struct agent *a, struct sl_err *err)
{
    char path[128], sock[128];
    agent_path(a, "agent.lock", path, sizeof path);
    agent_path(a, "agent.sock", sock, sizeof sock);
    a->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (a->lock_fd < 0)
        return sl_fail_sys(err, SL_IO, errno, "cannot open %s", path);
    uint64_t deadline = clock_now_ns() + LOCK_PATIENCE_NS;
    while (flock(a->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return sl_fail_sys(err, SL_IO, errno, "cannot lock %s", path);
        AUTO_CLOSE int fd = sock_connect_unix(sock, SOCK_STREAM, NULL);
        if (fd >= 0 || clock_now_ns() > deadline)
            return sl_fail(err, SL_CONFLICT, "already running in %s", a->dir.path);
        usleep(20000);
    }
    return 0;
}

static int open_signals(struct agent *a, struct sl_err *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an error of write() */
    if (!a->o.foreground)
        signal(SIGHUP, SIG_IGN);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return sl_fail_sys(err, SL_INTERNAL, errno, "signalfd");
    a->signals = (struct watch){ .fd = fd, .ready = signal_ready };
    return agent_watch(a, &a->signals, err);
}

static int listen_for_clients(const struct agent *a, struct sl_err *err)
{
    char path[128];
    agent_path(a, "agent.sock", path, sizeof path);
    return sock_listen_unix(path, SOCK_STREAM, geteuid() == 0 ? 0666 : 0600, err);
}

static int open_api(struct agent *a, struct sl_err *err)
{
    a->listen.fd = listen_for_clients(a, err);
    if (a->listen.fd < 0)
        return a->listen.fd;
    a->api = api_create(a->listen.fd, &agent_ops, a, err);
    if (!a->api)
        return err ? -(int)err->code : -SL_INTERNAL;
    /* the API's own epoll descriptor stands for the listening socket and its connections */
    struct epoll_event e = { .events = EPOLLIN, .data.ptr = &a->listen };
    a->listen.ready = api_ready;
    if (epoll_ctl(a->epoll_fd, EPOLL_CTL_ADD, api_fd(a->api), &e) != 0)
        return sl_fail_sys(err, SL_INTERNAL, errno, "epoll");
    return 0;
}

static void adopt_leases(struct agent *a)
{
    for (uint32_t i = 0; i < a->lease_count; i++) {
        if (!agent_lease_is_live(a->lease[i]))
            continue;
        lease_arm_timers(a, a->lease[i]);
        log_info("lease-adopted", "lease=L%" PRIu64 " state=%s", a->lease[i]->l.number,
                 lease_state_name(a->lease[i]->l.state));
    }
    /* the broker's clients first: they say which leases without a shim still live */
    telemetry_sample(a, clock_now_ns());
    for (uint32_t i = 0; i < a->lease_count; i++)
        if (agent_lease_is_live(a->lease[i]))
            anchor_adopt(a, a->lease[i]);
}

int agent_init(struct agent *a, const struct agent_options *o, struct sl_err *err)
{
    memset(a, 0, sizeof *a);
    a->o = *o;
    a->lock_fd = a->epoll_fd = a->listen.fd = a->signals.fd = a->broker_watch.fd = -1;
    a->broker.fd = -1;
    a->started_ns = a->idle_since_ns = clock_now_ns();
    int rc = rundir_choose(&a->dir, o->run_dir, err);
    if (rc == 0)
        rc = rundir_prepare(&a->dir, err);
    if (rc == 0)
        rc = file_program_dir(a->program_dir, sizeof a->program_dir, err);
    if (rc == 0)
        rc = take_lock(a, err);
    return rc;
}

/* Where the journal was lost, jobs that it knew still live in their cgroups, and their
 * files lie about: no lease of ours may be taken for one of theirs. */
static void skip_numbers_in_use(struct agent *a)
{
    char path[128];
    uint64_t number, highest = cgroup_sweep(&a->cgroups);
    agent_path(a, "jobs", path, sizeof path);
    DIR *d = opendir(path);
    struct dirent *e;
    while (d && (e = readdir(d)) != NULL)
        if (lease_parse_id(e->d_name, &number, NULL) == 0)
            highest = max_u64(highest, number);
    if (d)
        closedir(d);
    if (highest >= a->next_number) {
        log_warn("numbers-skipped",
                 "next=L%" PRIu64 " why=\"the journal does not know L%" PRIu64 "\"",
                 highest + 1, highest);
        a->next_number = highest + 1;
    }
}

/* What lives was lent under the options of the agent before: they go on. */
static void take_options_over(struct agent *a)
{
    if (!a->earlier || agent_held_count(a) == 0)
        return;
    options_take_over(&a->o, a->earlier, &a->change);
    if (a->change.taken[0] || a->change.lost[0])
        log_info("options-taken-over", "taken=\"%s\" lost=\"%s\"", a->change.taken,
                 a->change.lost);
}

int agent_start(struct agent *a, struct sl_err *err)
{
    char broker[300], probe[300];
    snprintf(broker, sizeof broker, "%s/sluice-broker", a->program_dir);
    snprintf(probe, sizeof probe, "%s/sluice-probe", a->program_dir);
    a->o.probe.probe_program = probe;
    broker_link_init(&a->broker, &a->dir, broker);
    a->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (a->epoll_fd < 0)
        return sl_fail_sys(err, SL_INTERNAL, errno, "epoll");
    int rc = open_signals(a, err);
    if (rc == 0)
        rc = agent_open_journal(a, err);
    if (rc < 0)
        return rc;
    cgroup_host_find(&a->cgroups, a->dir.path);
    skip_numbers_in_use(a);
    a->ended_files_grew = true;
    keep_tidy(a); /* before anything that needs room */
    front_copy(a);
    take_options_over(a);
    rc = inventory_build(a, err);
    a->o.probe.probe_program = NULL;
    if (rc == 0)
        rc = agent_save_options(a, err);
    if (rc == 0)
        rc = restate_open(a, err);
    if (rc < 0)
        return rc;
    adopt_leases(a);
    return open_api(a, err);
}

/* ---- the loop ---- */

static bool anything_drains(const struct agent *a)
{
    for (uint32_t i = 0; i < a->lease_count; i++) {
        const struct agent_lease *al = a->lease[i];
        if (al->l.state == LEASE_DRAINING ||
            (al->l.state == LEASE_ACTIVE && (al->shim_gone || al->l.exited)))
            return true;
    }
    return false;
}

static int timeout_ms(const struct agent *a)
{
    uint64_t now = clock_now_ns(), next = a->next_sample_ns;
    for (uint32_t i = 0; i < a->lease_count; i++) {
        const struct agent_lease *al = a->lease[i];
        if (al->l.state == LEASE_PENDING)
            next = min_u64(next, al->wait_until_ns);
        if (al->l.state == LEASE_ACTIVE && al->expires_ns)
            next = min_u64(next, al->expires_ns);
    }
    int ms = now >= next ? 0 : (int)((next - now) / NS_PER_MS) + 1;
    if (anything_drains(a) && ms > DRAIN_LOOK_MS)
        ms = DRAIN_LOOK_MS;
    int of_api = api_timeout_ms(a->api);
    return of_api >= 0 && of_api < ms ? of_api : ms;
}

static void mind_broker(struct agent *a, uint64_t now_ns)
{
    struct sl_err err = { 0 };
    if (a->broker.fd >= 0)
        return;
    if (a->broker_watch.fd >= 0) {
        log_warn("broker-lost", "pid=%d", a->broker.pid);
        a->broker_watch.fd = -1; /* closed by whoever found it dead */
        a->broker_retry_ns = 0;
    }
    if (now_ns < a->broker_retry_ns)
        return;
    a->broker_retry_ns = now_ns + BROKER_RETRY_NS;
    if (restate_open(a, &err) < 0)
        log_error("broker-start", "error=\"%s\"", err.msg);
}

/* Without its directory nobody can reach this agent: it ends with its last lease, and
 * touches no path any more, since another agent may have made the directory anew. */
static void mind_directory(struct agent *a)
{
    char path[128];
    struct stat ours, now;
    agent_path(a, "agent.lock", path, sizeof path);
    if (a->homeless || fstat(a->lock_fd, &ours) != 0)
        return;
    a->homeless =
        stat(path, &now) != 0 || now.st_dev != ours.st_dev || now.st_ino != ours.st_ino;
    if (a->homeless)
        log_error("directory-removed", "path=%s leases=%u", path, agent_live_count(a));
}

/* A cleaner of old files may take the socket alone: nobody finds this agent, and while it
 * has the lock no other can start. */
static void mind_socket(struct agent *a)
{
    char path[128];
    struct stat st;
    struct sl_err err = { 0 };
    agent_path(a, "agent.sock", path, sizeof path);
    if (a->homeless || lstat(path, &st) == 0 || errno != ENOENT)
        return;
    AUTO_CLOSE int fd = listen_for_clients(a, &err);
    if (fd < 0 || api_listen_on(a->api, fd, &err) < 0) {
        log_error("socket-removed", "path=%s error=\"%s\"", path, err.msg);
        unlink(path); /* of whom nobody would hear; the next second tries again */
        return;
    }
    dup3(fd, a->listen.fd, O_CLOEXEC);
    log_warn("socket-removed", "path=%s listening=again", path);
}

static void mind_idleness(struct agent *a, uint64_t now_ns)
{
    if (agent_live_count(a) > 0)
        a->idle_since_ns = now_ns;
    else if (a->homeless)
        a->ending = a->end_broker = true;
    if (a->o.embedded && now_ns - a->idle_since_ns >= a->o.idle_exit_ms * NS_PER_MS) {
        log_info("idle-exit", "after_ms=%" PRIu64, a->o.idle_exit_ms);
        a->ending = a->end_broker = true;
    }
}

static void every_second(struct agent *a, uint64_t now_ns)
{
    if (now_ns < a->next_sample_ns)
        return;
    a->next_sample_ns += NS_PER_S;
    if (a->next_sample_ns < now_ns)
        a->next_sample_ns = now_ns + NS_PER_S;
    mind_directory(a);
    mind_socket(a);
    telemetry_sample(a, now_ns);
    audit_run(a, now_ns);
    lease_retry_pending(a); /* a shrink was met, a device was given back */
    if (!a->homeless)
        agent_tidy(a);
}

/* With `sluice down`, not before the last lease is released. */
static bool may_leave(const struct agent *a)
{
    return a->ending && !(a->down && agent_live_count(a) > 0);
}

int agent_run(struct agent *a, struct sl_err *err)
{
    struct epoll_event events[32];
    a->next_sample_ns = clock_now_ns() + NS_PER_S;
    while (!may_leave(a)) {
        int n = epoll_wait(a->epoll_fd, events, ARRAY_LEN(events), timeout_ms(a));
        if (n < 0 && errno != EINTR)
            return sl_fail_sys(err, SL_INTERNAL, errno, "epoll_wait");
        for (int i = 0; i < n; i++) {
            struct watch *w = events[i].data.ptr;
            if (w->fd >= 0)
                w->ready(a, w);
        }
        api_run(a->api); /* also when its own clock has run out */
        uint64_t now = clock_now_ns();
        mind_broker(a, now);
        lease_tick(a, now);
        drain_tick(a, now);
        every_second(a, now);
        mind_idleness(a, now);
    }
    return 0;
}

/* ---- the end ---- */

static void end_broker(struct agent *a)
{
    struct proto_ctl m = broker_link_message(PROTO_CTL_QUIT);
    struct sl_err err = { 0 };
    m.info.force = 1;
    int rc = broker_link_call(&a->broker, &m, &err);
    if (rc < 0 && rc != -SL_UNAVAILABLE)
        log_warn("broker-quit", "error=\"%s\"", err.msg);
}

void agent_finish(struct agent *a)
{
    char path[128];
    if (a->down) {
        struct api_request *r = a->down;
        a->down = NULL;
        api_answer(r, 200, json_pack("{s:b}", "down", 1));
    }
    if (a->api) {
        api_run(a->api);
        agent_path(a, "agent.sock", path, sizeof path);
        if (!a->homeless)
            unlink(path);
        api_destroy(a->api);
    }
    if (a->end_broker && a->broker.fd >= 0)
        end_broker(a);
    if (a->end_broker && !a->homeless)
        front_remove(a);
    broker_link_close(&a->broker);
    journal_close(a->journal);
    json_decref(a->earlier);
    for (uint32_t i = 0; i < a->lease_count; i++) {
        agent_unwatch(a, &a->lease[i]->shim);
        agent_unwatch(a, &a->lease[i]->caller);
        json_decref(a->lease[i]->job);
        free(a->lease[i]);
    }
    free(a->lease);
    free(a->client);
    if (a->epoll_fd >= 0)
        close(a->epoll_fd);
    if (a->lock_fd >= 0)
        close(a->lock_fd);
}
