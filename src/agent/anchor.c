/* Owns the tie between a lease and the processes of its job: the shim, the cgroup, and
 * their end. */
#include "agent.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "family.h"
#include "job/status.h"
#include "model/units.h"
#include "os/log.h"

/* The signal that ended it, as far as the shim could write that down. */
static int take_status(struct agent *a, struct agent_lease *al)
{
    struct job_status s;
    char id[24];
    if (job_status_read(&a->dir, lease_format_id(al->l.number, id), &s, NULL) < 0)
        return 0;
    if (s.exited) {
        al->l.exited = true;
        al->l.exit_status = s.exit_status;
    }
    snprintf(al->l.placement, sizeof al->l.placement, "%s", s.placement);
    return s.exited ? s.signal : 0;
}

/* Nobody asked for its end: by itself, or by the kernel for its host memory. */
static void say_end(const struct agent *a, struct agent_lease *al, int signal)
{
    const char *name = signal ? sigabbrev_np(signal) : NULL;
    char how[40], size[32];
    if (name)
        snprintf(how, sizeof how, "killed by SIG%s", name);
    else if (signal)
        snprintf(how, sizeof how, "killed by signal %d", signal);
    else
        snprintf(how, sizeof how, "exited %d", al->l.exit_status);
    bool over = al->l.host_mem_bytes && al->l.exit_status &&
                cgroup_oom_kills(&a->cgroups, al->l.number) > 0;
    snprintf(al->l.why, sizeof al->l.why, "%s%s%s", how,
             over ? ": it used more host memory than --host-mem " : "",
             over ? units_format_size(al->l.host_mem_bytes, size) : "");
}

static void shim_ended(struct agent *a, struct watch *w)
{
    struct agent_lease *al = w->owner;
    bool seen = w->fd >= 0; /* else it was gone when we came */
    agent_unwatch(a, w);
    if (!agent_lease_is_live(al) || al->l.exited)
        return;
    int signal = take_status(a, al);
    al->shim_gone = true;
    /* What the status file says as exited was written after the last orphan.  Without that
     * word nobody is left who could end the job or report how it ended: end it. */
    if (al->l.exited) {
        if (al->l.state == LEASE_ACTIVE)
            say_end(a, al, signal);
        drain_try_finish(a, al);
        return;
    }
    log_warn("shim-died", "lease=L%" PRIu64 " pid=%d", al->l.number, al->l.shim_pid);
    drain_start(a, al,
                seen ? "sluice-shim was killed"
                     : "ended while no agent ran; how is not known");
}

static void watch_shim(struct agent *a, struct agent_lease *al)
{
    struct proc_id id = { al->l.shim_pid, al->l.shim_start_ticks };
    agent_unwatch(a, &al->shim);
    int fd = proc_open(&id, NULL);
    al->shim = (struct watch){ .fd = fd < 0 ? -1 : fd, .ready = shim_ended, .owner = al };
    if (fd < 0)
        shim_ended(a, &al->shim);
    else
        agent_watch(a, &al->shim, NULL);
}

void anchor_adopt(struct agent *a, struct agent_lease *al)
{
    struct sl_err err = { 0 };
    if (al->l.shim_pid) {
        watch_shim(a, al);
        return;
    }
    if (al->l.state == LEASE_DRAINING)
        drain_try_finish(a, al);
    /* One that was granted a moment ago, in the room of another, is started already.  A shim
     * of the last agent may try too: one is anchored. */
    else if (al->l.state == LEASE_ACTIVE && al->job && al->caller.fd < 0)
        job_start(a, al, &err);
}

/* The caller is the shim, in the name of whom the lease stands; the child waits below it.
 */
static int check(const struct agent_lease *al, const struct api_caller *c, pid_t child,
                 struct sl_err *err)
{
    if (!agent_may_change(al, c))
        return sl_fail(err, SL_DENIED, "lease L%" PRIu64 " belongs to uid %u", al->l.number,
                       al->l.uid);
    if (al->l.state != LEASE_ACTIVE)
        return sl_fail(err, SL_CONFLICT, "lease L%" PRIu64 " is %s", al->l.number,
                       lease_state_name(al->l.state));
    if (al->l.shim_pid && al->l.shim_pid != c->pid)
        return sl_fail(err, SL_CONFLICT, "lease L%" PRIu64 " has a shim already: pid %d",
                       al->l.number, al->l.shim_pid);
    if (child <= 0 || family_parent(child) != c->pid)
        return sl_fail(err, SL_DENIED, "pid %d is not a child of the caller (pid %d)",
                       child, c->pid);
    return 0;
}

/* Where the front is, by the kernel's word: a shim that could not mount it goes on with the
 * environment alone. */
static bool front_is_mounted(pid_t child)
{
    static const char forward[] = "/front/libOpenCL.so.1";
    char path[32], line[1024], root[512];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/mountinfo", child);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    while (!found && fgets(line, sizeof line, f)) {
        size_t len = sscanf(line, "%*d %*d %*s %511s", root) == 1 ? strlen(root) : 0;
        found = len >= sizeof forward - 1 &&
                !strcmp(root + len - (sizeof forward - 1), forward);
    }
    fclose(f);
    return found;
}

static void enter_cgroup(struct agent *a, struct agent_lease *al, pid_t child)
{
    struct cgroup_limits limits = { al->l.cpu_milli, al->l.host_mem_bytes };
    struct sl_err err = { 0 };
    uint64_t id = 0;
    int rc = cgroup_enter(&a->cgroups, al->l.number, &limits, child, &id, al->l.host_limits,
                          sizeof al->l.host_limits, &err);
    al->l.cgroup_id = rc == 0 ? id : 0;
    if (rc < 0 && a->cgroups.v2[0])
        log_warn("cgroup", "lease=L%" PRIu64 " error=\"%s\"", al->l.number, err.msg);
}

static void answer(struct agent *a, struct api_request *r, const struct agent_lease *al)
{
    char layer[160], loader[160], real[160], broker[160], dir[CGROUP_PATH_SIZE] = "",
                                                          id[24];
    agent_path(a, "front/libsluice-opencl.so", layer, sizeof layer);
    agent_path(a, "front/libOpenCL.so.1", loader, sizeof loader);
    agent_path(a, "front/real", real, sizeof real);
    agent_path(a, "broker.sock", broker, sizeof broker);
    if (al->l.cgroup_id)
        cgroup_path(&a->cgroups, al->l.number, dir);
    json_t *front =
        json_pack("{s:s, s:s, s:s}", "layer", layer, "loader", loader, "real", real);
    api_answer(r, 200,
               json_pack("{s:s, s:s, s:o, s:s, s:s?, s:s?, s:s}", "lease",
                         lease_format_id(al->l.number, id), "placement", al->l.placement,
                         "front", front, "broker", broker, "cgroup", dir[0] ? dir : NULL,
                         "cgroup_mount", dir[0] ? a->cgroups.v2 : NULL, "host_limits",
                         al->l.host_limits));
}

void anchor_op(void *ctx, struct api_request *r, const char *lease, pid_t child)
{
    struct agent *a = ctx;
    struct api_caller caller = api_request_caller(r);
    struct agent_lease *al = agent_find(a, lease, caller.uid);
    struct sl_err err = { 0 };
    struct proc_id shim = { 0 };
    if (!al)
        sl_fail(&err, SL_NOT_FOUND, "no lease is called \"%.60s\"", lease);
    else if (check(al, &caller, child, &err) == 0)
        proc_identify(caller.pid, &shim, &err);
    if (err.code) {
        api_fail(r, &err);
        return;
    }

    bool again = al->l.shim_pid == caller.pid;
    al->l.shim_pid = shim.pid;
    al->l.shim_start_ticks = shim.start_ticks;
    al->child = child;
    snprintf(al->l.placement, sizeof al->l.placement, "%s",
             caller.uid == 0 && front_is_mounted(child) ? a->placement : "environment");
    enter_cgroup(a, al, child);
    if (agent_save(a, al, &err) < 0) {
        al->l.shim_pid = 0; /* unknown to the next agent: it must not run */
        api_fail(r, &err);
        return;
    }
    al->unanchored_until_ns = 0;
    agent_unwatch(a, &al->caller);
    if (!again)
        watch_shim(a, al);
    int rc = restate_anchor(a, al, &err);
    if (rc < 0 && rc != -SL_UNAVAILABLE) {
        api_fail(r, &err);
        return;
    }
    log_info("lease-anchored", "lease=L%" PRIu64 " shim=%d child=%d cgroup=%" PRIu64,
             al->l.number, shim.pid, child, al->l.cgroup_id);
    answer(a, r, al);
}

void anchor_exit_op(void *ctx, struct api_request *r, const char *lease, int exit_status)
{
    struct agent *a = ctx;
    struct api_caller caller = api_request_caller(r);
    struct agent_lease *al = agent_find(a, lease, caller.uid);
    struct sl_err err = { 0 };
    if (!al)
        sl_fail(&err, SL_NOT_FOUND, "no lease is called \"%.60s\"", lease);
    else if (!agent_may_change(al, &caller) || al->l.shim_pid != caller.pid)
        sl_fail(&err, SL_DENIED, "only the shim of lease L%" PRIu64 " may report its end",
                al->l.number);
    if (err.code) {
        api_fail(r, &err);
        return;
    }
    int signal = take_status(a, al);
    al->l.exited = true;
    al->l.exit_status = exit_status;
    if (al->l.state == LEASE_ACTIVE)
        say_end(a, al, signal);
    if (!drain_try_finish(a, al))
        agent_save(a, al, NULL);
    api_answer(r, 200, agent_lease_json(a, al));
}
