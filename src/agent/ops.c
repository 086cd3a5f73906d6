/* Owns the table of operations that the API calls, and the small ones of them. */
#include "agent.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/clock.h"
#include "os/log.h"

static json_t *broker_json(struct agent *a)
{
    struct proto_ctl m = broker_link_message(PROTO_CTL_INFO);
    struct sl_err err = { 0 };
    if (broker_link_call(&a->broker, &m, &err) < 0)
        return json_pack("{s:b, s:s}", "running", 0, "error", err.msg);
    uint64_t age_ms = (m.info.now_ns - m.info.started_ns) / NS_PER_MS;
    return json_pack("{s:b, s:i, s:s, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
                     "running", 1, "pid", (int)m.info.pid, "version", a->broker.version,
                     "clients", (int)m.info.clients, "leases", (int)m.info.leases,
                     "devices", (int)m.info.devices, "uptime_ms", (json_int_t)age_ms,
                     "recovered_clients", (json_int_t)m.info.recovered_clients,
                     "refused_clients", (json_int_t)m.info.refused_clients,
                     "nonsense_messages", (json_int_t)m.info.nonsense_messages, "deaths",
                     (json_int_t)m.info.deaths, "death_to_free_ns_max",
                     (json_int_t)m.info.death_to_free_ns_max, "started_by_agent",
                     (json_int_t)a->broker.starts);
}

static json_t *best_grades(const struct agent *a)
{
    struct grades best = { 0 };
    for (uint32_t i = 0; i < a->device_count; i++) {
        const struct grades *g = &a->device[i].grades;
        best.memory = g->memory > best.memory ? g->memory : best.memory;
        best.time = g->time > best.time ? g->time : best.time;
        best.fault = g->fault > best.fault ? g->fault : best.fault;
        best.visibility = g->visibility > best.visibility ? g->visibility : best.visibility;
        best.network = g->network > best.network ? g->network : best.network;
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:s}", "memory", grade_name(best.memory), "time",
                     grade_name(best.time), "fault", grade_name(best.fault), "visibility",
                     grade_name(best.visibility), "network", grade_name(best.network));
}

static json_t *text_or_null(const char *text)
{
    return text[0] ? json_string(text) : json_null();
}

static void node(void *ctx, struct api_request *r)
{
    struct agent *a = ctx;
    struct utsname u;
    char layer[160], loader[160];
    uname(&u);
    agent_path(a, "front/libsluice-opencl.so", layer, sizeof layer);
    agent_path(a, "front/libOpenCL.so.1", loader, sizeof loader);
    json_t *front = json_pack("{s:s, s:s, s:s, s:b}", "placement", a->placement, "path",
                              layer, "loader", loader, "ready", a->front_ready);
    json_t *j = json_pack(
        "{s:s, s:i, s:i, s:s, s:b, s:o, s:o, s:o, s:s, s:s, s:i, s:i, s:b, s:i}", "version",
        SLUICE_VERSION, "pid", (int)getpid(), "uid", (int)geteuid(), "run_dir", a->dir.path,
        "embedded", a->o.embedded, "broker", broker_json(a), "front", front, "grades",
        best_grades(a), "kernel", u.release, "host", u.nodename, "devices",
        (int)a->device_count, "leases", (int)agent_live_count(a), "share_tenants",
        a->o.share_tenants, "mem_overcommit_permille", (int)a->o.mem_overcommit_permille);
    json_object_set_new(j, "options_taken_over", text_or_null(a->change.taken));
    json_object_set_new(j, "options_lost", text_or_null(a->change.lost));
    json_object_set_new(j, "cgroup",
                        a->cgroups.v2[0] ? json_string(a->cgroups.v2) : json_null());
    json_object_set_new(
        j, "uptime_ms",
        json_integer((json_int_t)((clock_now_ns() - a->started_ns) / NS_PER_MS)));
    api_answer(r, 200, j);
}

static void list_devices(void *ctx, struct api_request *r)
{
    struct agent *a = ctx;
    json_t *list = json_array();
    telemetry_refresh(a);
    for (uint32_t i = 0; i < a->device_count; i++)
        json_array_append_new(list, device_to_json(&a->device[i]));
    api_answer(r, 200, json_pack("{s:o}", "devices", list));
}

static void list_leases(void *ctx, struct api_request *r, bool all)
{
    struct agent *a = ctx;
    json_t *list = json_array();
    telemetry_refresh(a);
    for (uint32_t i = 0; i < a->lease_count; i++)
        if (all || agent_lease_is_live(a->lease[i]))
            json_array_append_new(list, agent_lease_json(a, a->lease[i]));
    api_answer(r, 200, json_pack("{s:o}", "leases", list));
}

static void get_lease(void *ctx, struct api_request *r, const char *id)
{
    struct agent *a = ctx;
    struct agent_lease *al = agent_find(a, id, api_request_caller(r).uid);
    struct sl_err err = { 0 };
    if (!al) {
        sl_fail(&err, SL_NOT_FOUND, "no lease is called \"%.60s\"", id);
        api_fail(r, &err);
        return;
    }
    telemetry_refresh(a);
    api_answer(r, 200, al->l.command[0] ? agent_job_json(a, al) : agent_lease_json(a, al));
}

static json_t *live_leases(const struct agent *a)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < a->lease_count; i++)
        if (agent_lease_is_live(a->lease[i]))
            json_array_append_new(list, agent_lease_json(a, a->lease[i]));
    return list;
}

bool agent_may_end(uid_t uid)
{
    return uid == 0 || uid == geteuid();
}

static void down_gone(void *ctx, struct api_request *r)
{
    ((struct agent *)ctx)->down = NULL;
}

/* `sluice down`: the loop ends when the last lease is released. */
static void down(void *ctx, struct api_request *r, bool force)
{
    struct agent *a = ctx;
    struct api_caller caller = api_request_caller(r);
    struct sl_err err = { 0 };
    uint32_t live = agent_live_count(a);
    if (!agent_may_end(caller.uid))
        sl_fail(&err, SL_DENIED, "this agent is uid %u's", geteuid());
    else if (a->down)
        sl_fail(&err, SL_CONFLICT, "it is going down already");
    else if (live > 0 && !force)
        sl_fail(&err, SL_CONFLICT,
                "%u lease%s live; release them, or use --force to end them", live,
                live == 1 ? "" : "s");
    if (err.code) {
        api_fail_with(r, &err, live ? json_pack("{s:o}", "leases", live_leases(a)) : NULL);
        return;
    }
    log_info("down", "by_uid=%u by_pid=%d leases=%u", caller.uid, caller.pid, live);
    a->ending = true;
    a->end_broker = true;
    a->down = r;
    api_on_cancel(r, down_gone, a);
    for (uint32_t i = 0; i < a->lease_count; i++) {
        struct agent_lease *al = a->lease[i];
        sl_fail(&err, SL_UNAVAILABLE, "this agent is going down");
        if (al->l.state == LEASE_PENDING)
            lease_refuse_pending(a, al, &err, NULL);
        else if (al->l.state == LEASE_ACTIVE)
            drain_start(a, al, "ended by sluice down");
    }
}

const struct api_ops agent_ops = {
    .node = node,
    .shutdown = down,
    .list_devices = list_devices,
    .list_leases = list_leases,
    .get_lease = get_lease,
    .create_lease = lease_create_op,
    .resize_lease = resize_op,
    .release_lease = drain_release_op,
    .anchor_lease = anchor_op,
    .exit_lease = anchor_exit_op,
    .list_jobs = job_list_op,
    .clear_jobs = keep_clear_op,
    .submit_job = job_submit_op,
    .job_log = job_log_op,
};
