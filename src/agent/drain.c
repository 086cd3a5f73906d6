/* Owns the way from "shall end" to released: signals, grace, and the proof that nothing is
 * left. */
#include "agent.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/macros.h"
#include "family.h"
#include "os/log.h"

#define SHIM_GRACE_NS (2 * NS_PER_S) /* after its family was killed */

static bool shim_is_alive(const struct agent_lease *al)
{
    struct proc_id id = { al->l.shim_pid, al->l.shim_start_ticks };
    return al->l.shim_pid > 0 && proc_is_alive(&id);
}

/* Every process of the lease that anybody can name: by its cgroup, by the shim, by the
 * broker. */
uint32_t drain_pids(const struct agent *a, const struct agent_lease *al, pid_t *pids,
                    uint32_t room)
{
    uint32_t n = 0;
    if (al->l.cgroup_id)
        n = cgroup_pids(&a->cgroups, al->l.number, pids, room);
    else if (shim_is_alive(al))
        n = family_below(al->l.shim_pid, pids, room);
    for (uint32_t i = 0; i < a->client_count && n < room; i++) {
        bool known = false;
        for (uint32_t k = 0; k < n; k++)
            known |= pids[k] == a->client[i].id.pid;
        if (a->client[i].lease == al->l.number && !known && proc_is_alive(&a->client[i].id))
            pids[n++] = a->client[i].id.pid;
    }
    return n;
}

static void signal_all(const struct agent *a, const struct agent_lease *al, int sig)
{
    pid_t pids[512];
    uint32_t n = drain_pids(a, al, pids, ARRAY_LEN(pids));
    for (uint32_t i = 0; i < n; i++)
        kill(pids[i], sig);
}

static bool anything_lives(const struct agent *a, const struct agent_lease *al)
{
    pid_t one;
    if (cgroup_is_populated(&a->cgroups, al->l.number)) /* maybe from before the anchor */
        return true;
    if (al->l.exited) /* the shim said so after its last orphan */
        return false;
    return shim_is_alive(al) || drain_pids(a, al, &one, 1) > 0;
}

static void finish(struct agent *a, struct agent_lease *al)
{
    telemetry_last(a, al);
    al->l.state = LEASE_RELEASED;
    al->l.released_ms = agent_wall_ms();
    a->ended_files_grew = true;
    agent_save(a, al,
               NULL); /* a full disk does not keep it alive: agent_tidy() tries again */
    restate_drop(a, al);
    cgroup_remove(&a->cgroups, al->l.number);
    agent_unwatch(a, &al->shim);
    agent_unwatch(a, &al->caller);
    log_info("lease-released", "lease=L%" PRIu64 " exit=%d why=\"%s\"", al->l.number,
             al->l.exited ? al->l.exit_status : -1, al->l.why);
    for (uint32_t i = 0; i < al->end_count; i++)
        api_answer(al->ends[i], 200, agent_lease_json(a, al));
    al->end_count = 0;
    inventory_forget_gone(a);
    lease_retry_pending(a);
}

bool drain_try_finish(struct agent *a, struct agent_lease *al)
{
    if (!agent_lease_is_live(al) || al->l.state == LEASE_PENDING || anything_lives(a, al))
        return !agent_lease_is_live(al);
    finish(a, al);
    return true;
}

void drain_start(struct agent *a, struct agent_lease *al, const char *why)
{
    if (al->l.state != LEASE_ACTIVE)
        return;
    al->l.state = LEASE_DRAINING;
    snprintf(al->l.why, sizeof al->l.why, "%.199s", why);
    if (drain_try_finish(a, al))
        return;
    agent_save(a, al, NULL);
    log_info("lease-drains", "lease=L%" PRIu64 " why=\"%s\"", al->l.number, why);
    /* The shim knows how to end its job: a signal it catches, to each process once. */
    if (shim_is_alive(al)) {
        kill(al->l.shim_pid, SIGTERM);
        kill(al->l.shim_pid, SIGCONT); /* its job may have stopped it */
    } else {
        signal_all(a, al, SIGTERM);
    }
    al->kill_at_ns = clock_now_ns() + a->o.kill_grace_ms * NS_PER_MS + NS_PER_S / 2;
}

static void kill_rest(struct agent *a, struct agent_lease *al, uint64_t now_ns)
{
    log_warn("lease-killed", "lease=L%" PRIu64, al->l.number);
    restate_drop(a, al); /* no more turns and bytes for what does not end */
    cgroup_kill(&a->cgroups, al->l.number);
    signal_all(a, al, SIGKILL);
    al->kill_at_ns = 0;
    al->kill_shim_at_ns = now_ns + SHIM_GRACE_NS;
}

void drain_tick(struct agent *a, uint64_t now_ns)
{
    for (uint32_t i = 0; i < a->lease_count; i++) {
        struct agent_lease *al = a->lease[i];
        bool drains = al->l.state == LEASE_DRAINING;
        if (!drains && !(al->l.state == LEASE_ACTIVE && (al->shim_gone || al->l.exited)))
            continue;
        if (drain_try_finish(a, al) || !drains)
            continue;
        if (al->kill_at_ns && now_ns >= al->kill_at_ns)
            kill_rest(a, al, now_ns);
        if (al->kill_shim_at_ns && now_ns >= al->kill_shim_at_ns && shim_is_alive(al)) {
            kill(al->l.shim_pid, SIGKILL);
            al->kill_shim_at_ns = 0;
        }
        if (!al->kill_at_ns && !al->kill_shim_at_ns)
            al->kill_at_ns =
                now_ns + a->o.kill_grace_ms * NS_PER_MS; /* adopted, or a fork raced */
    }
}

static void end_gone(void *ctx, struct api_request *r)
{
    struct agent *a = ctx;
    for (uint32_t i = 0; i < a->lease_count; i++) {
        struct agent_lease *al = a->lease[i];
        for (uint32_t k = 0; k < al->end_count; k++)
            if (al->ends[k] == r)
                al->ends[k--] = al->ends[--al->end_count];
    }
}

/* A job whose release is not written would be run by the next agent: then it waits on. */
static int release_pending(struct agent *a, struct agent_lease *al, struct sl_err *err)
{
    struct lease was = al->l;
    struct sl_err why = { 0 };
    sl_fail(&why, SL_CONFLICT, "released while it waited for room");
    int rc = lease_refuse_pending(a, al, &why, err);
    if (rc == 0 || !al->job)
        return 0;
    al->l = was;
    return rc;
}

void drain_release_op(void *ctx, struct api_request *r, const char *id)
{
    struct agent *a = ctx;
    struct api_caller caller = api_request_caller(r);
    struct agent_lease *al = agent_find(a, id, caller.uid);
    struct sl_err err = { 0 };
    if (!al)
        sl_fail(&err, SL_NOT_FOUND, "no lease is called \"%.60s\"", id);
    else if (!agent_may_change(al, &caller))
        sl_fail(&err, SL_DENIED, "lease L%" PRIu64 " belongs to uid %u", al->l.number,
                al->l.uid);
    if (err.code) {
        api_fail(r, &err);
        return;
    }
    if (!agent_lease_is_live(al)) {
        json_t *j = agent_lease_json(a, al);
        if (j)
            json_object_set_new(j, "already_released", json_true());
        api_answer(r, 200, j);
        return;
    }
    if (al->l.state != LEASE_PENDING) {
        drain_start(a, al,
                    caller.uid == al->l.uid ? "released by its user" : "released by root");
    } else if (release_pending(a, al, &err) < 0) {
        api_fail(r, &err);
        return;
    }
    if (!agent_lease_is_live(al) || al->end_count == AGENT_MAX_WAITERS) {
        api_answer(r, 200, agent_lease_json(a, al));
        return;
    }
    al->ends[al->end_count++] = r;
    api_on_cancel(r, end_gone, a);
}
