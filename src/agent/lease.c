/* Owns a lease from the request to the grant: placement, waiting, and the clocks that end
 * it. */
#include "agent.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "core/clock.h"
#include "core/macros.h"
#include "model/units.h"
#include "os/log.h"

#define WAITING_MAX_BYTES (64u << 20) /* a quarter of what the journal may have */
#define RECORD_BYTES      4096u       /* at most, of a lease's record without its job */

static const struct lease **list_leases(const struct agent *a)
{
    const struct lease **list = calloc(a->lease_count + 1, sizeof *list);
    for (uint32_t i = 0; list && i < a->lease_count; i++)
        list[i] = &a->lease[i]->l;
    return list;
}

/* What is taken of each device, without `except`. */
static bool sum_up(const struct agent *a, const struct lease *except, struct place_use *use)
{
    const struct lease **list = list_leases(a);
    if (!list)
        return false;
    place_sum(a->device, a->device_count, list, a->lease_count, except, use);
    free(list);
    return true;
}

static void find_place(const struct agent *a, const struct lease_request *q, uint32_t uid,
                       struct place_verdict *v)
{
    struct place_use use[AGENT_MAX_DEVICES];
    struct place_policy policy = { .mem_overcommit_permille =
                                       a->o.mem_overcommit_permille };
    if (sum_up(a, NULL, use)) {
        place_find(a->device, use, a->device_count, q, uid, &policy, v);
        return;
    }
    memset(v, 0, sizeof *v);
    v->code = SL_INTERNAL;
    v->cause = "state";
    snprintf(v->why, sizeof v->why, "out of memory");
}

/* A program may hold more than its request where its limit is above it: how much, now? */
static void look_at_borrowers(struct agent *a)
{
    bool any = false;
    for (uint32_t i = 0; i < a->lease_count; i++) {
        const struct lease *l = &a->lease[i]->l;
        for (uint32_t s = 0; l->state == LEASE_ACTIVE && s < l->slice_count; s++)
            any |= l->slice[s].mem_limit_bytes > l->slice[s].mem_request_bytes;
    }
    if (any)
        telemetry_refresh(a);
}

static void fail_placement(const struct agent *a, struct api_request *r,
                           const struct lease_request *q, const struct place_verdict *v,
                           enum sl_code code)
{
    struct sl_err err = { 0 };
    sl_fail(&err, code, "%s", v->why);
    json_t *members = place_explain(v, a->device, a->device_count, q);
    if (members)
        json_object_set_new(members, "request", lease_request_to_json(q));
    if (strcmp(v->cause, "tenancy") == 0 && agent_may_end(api_request_caller(r).uid))
        json_array_append_new(
            json_object_get(members, "alternatives"),
            json_string("sluice down, then sluice up --share-tenants, lets users share"));
    api_fail_with(r, &err, members);
}

/* ---- the record ---- */

static void fill_lease(struct agent_lease *al, const struct lease_request *q,
                       const struct api_caller *c, const char *command)
{
    struct lease *l = &al->l;
    char id[24];
    snprintf(l->name, sizeof l->name, "%s",
             q->name[0] ? q->name : lease_format_id(l->number, id));
    snprintf(l->tenant, sizeof l->tenant, "uid:%u", c->uid);
    snprintf(l->command, sizeof l->command, "%s", command ? command : "");
    l->uid = c->uid;
    l->state = LEASE_PENDING;
    l->epoch = 1;
    l->mode = q->mode;
    l->priority = q->priority;
    l->fail_closed = q->fail_closed;
    l->time_ms = q->time_ms;
    l->max_kernel_ms = q->max_kernel_ms;
    l->cpu_milli = q->cpu_milli;
    l->host_mem_bytes = q->host_mem_bytes;
    l->created_ms = agent_wall_ms();
    l->slice_count = q->slice_count;
    for (uint32_t i = 0; i < l->slice_count; i++)
        place_slice_ask(q, &l->slice[i]);
    al->q = *q;
    al->by_run = l->command[0] != '\0';
}

static void fill_slices(const struct agent *a, struct agent_lease *al,
                        const struct place_verdict *v)
{
    struct lease *l = &al->l;
    l->slice_count = al->q.slice_count;
    l->emulated = false;
    for (uint32_t i = 0; i < l->slice_count; i++) {
        const struct device *d = &a->device[v->device[i]];
        place_slice_fill(d, &al->q, &l->slice[i]);
        l->emulated |= d->emulated;
        l->grades = d->grades;
    }
}

static void caller_gone(struct agent *a, struct watch *w)
{
    agent_unwatch(a, w); /* lease_tick() looks at it when the time for anchoring is over */
}

void lease_arm_timers(struct agent *a, struct agent_lease *al)
{
    uint64_t now = clock_now_ns(), wall = agent_wall_ms();
    if (al->l.time_ms) {
        uint64_t past = sub_sat_u64(wall, al->l.granted_ms);
        al->expires_ns = now + sub_sat_u64(al->l.time_ms, past) * NS_PER_MS + 1;
    }
    if (al->by_run && !al->l.shim_pid)
        al->unanchored_until_ns = now + a->o.orphan_grace_ms * NS_PER_MS;
    if (al->l.state == LEASE_PENDING) {
        uint64_t past = sub_sat_u64(wall, al->l.created_ms);
        al->wait_until_ns = al->q.wait_ms > INT64_MAX / NS_PER_MS
                                ? UNKNOWN_U64
                                : now + sub_sat_u64(al->q.wait_ms, past) * NS_PER_MS;
    }
}

/* The shim of a submitted job ended before it had a program to anchor. */
static void starter_gone(struct agent *a, struct watch *w)
{
    struct agent_lease *al = w->owner;
    agent_unwatch(a, w);
    if (al->l.state == LEASE_ACTIVE && !al->l.shim_pid)
        drain_start(a, al, "never started");
}

void lease_watch_starter(struct agent *a, struct agent_lease *al, pid_t pid)
{
    struct proc_id id;
    int fd = proc_identify(pid, &id, NULL) < 0 ? -1 : proc_open(&id, NULL);
    agent_unwatch(a, &al->caller);
    al->caller =
        (struct watch){ .fd = fd < 0 ? -1 : fd, .ready = starter_gone, .owner = al };
    if (fd < 0)
        starter_gone(a, &al->caller);
    else
        agent_watch(a, &al->caller, NULL);
}

static void watch_caller(struct agent *a, struct agent_lease *al, pid_t pid)
{
    struct proc_id id;
    if (!al->by_run || al->job || proc_identify(pid, &id, NULL) < 0)
        return;
    int fd = proc_open(&id, NULL);
    if (fd < 0)
        return;
    al->caller = (struct watch){ .fd = fd, .ready = caller_gone, .owner = al };
    agent_watch(a, &al->caller, NULL);
}

int lease_end(struct agent *a, struct agent_lease *al, const char *why, struct sl_err *err)
{
    al->l.state = LEASE_RELEASED;
    al->l.released_ms = agent_wall_ms();
    snprintf(al->l.why, sizeof al->l.why, "%.199s", why);
    return agent_save(a, al, err);
}

/* Placed: durable, then told to the broker.  On failure its caller ends it. */
static int grant(struct agent *a, struct agent_lease *al, const struct place_verdict *v,
                 struct sl_err *err)
{
    fill_slices(a, al, v);
    al->l.state = LEASE_ACTIVE;
    al->l.why[0] = '\0';
    al->l.granted_ms = agent_wall_ms();
    int rc = al->by_run ? job_make_dir(a, al, err) : 0;
    if (rc == 0)
        rc = agent_save(a, al, err);
    if (rc == 0)
        rc = restate_lease(a, al, NULL, err);
    if (rc == -SL_UNAVAILABLE)
        rc = 0; /* the broker is being started again and will be told */
    if (rc < 0)
        return rc;
    if (al->by_run && !al->job)
        cgroup_make(&a->cgroups, al->l.number);
    lease_arm_timers(a, al);
    log_info("lease-granted",
             "lease=L%" PRIu64 " name=%s uid=%u device=%s mem=%" PRIu64 " compute=%u",
             al->l.number, al->l.name, al->l.uid, al->l.slice[0].device,
             al->l.slice[0].mem_request_bytes, al->l.slice[0].compute_request_permille);
    return 0;
}

/* ---- waiting ---- */

static void waiter_gone(void *ctx, struct api_request *r)
{
    struct agent *a = ctx;
    for (uint32_t i = 0; i < a->lease_count; i++) {
        struct agent_lease *al = a->lease[i];
        if (al->waiting != r)
            continue;
        al->waiting = NULL;
        lease_end(a, al, "gave up waiting", NULL);
        return;
    }
}

int lease_refuse_pending(struct agent *a, struct agent_lease *al, const struct sl_err *why,
                         struct sl_err *err)
{
    struct api_request *r = al->waiting;
    al->waiting = NULL;
    int rc = lease_end(a, al, why->msg, err);
    if (r)
        api_fail(r, why);
    return rc;
}

/* `r` is NULL where it was answered already: that one waits on, on a full disk too. */
static void start_waiting(struct agent *a, struct agent_lease *al, struct api_request *r,
                          const struct place_verdict *v)
{
    struct sl_err err = { 0 };
    snprintf(al->l.why, sizeof al->l.why, "%.199s", v->why);
    lease_arm_timers(a, al);
    int rc = agent_save(a, al, &err);
    if (rc < 0 && r) {
        lease_refuse_pending(a, al, &err, NULL);
        api_fail(r, &err);
        return;
    }
    log_info("lease-waits", "lease=L%" PRIu64 " uid=%u why=\"%s\"", al->l.number, al->l.uid,
             v->why);
    if (!r)
        return;
    if (al->job) { /* it waits by itself: whoever handed it over goes home */
        api_answer(r, 202, agent_job_json(a, al));
        return;
    }
    al->waiting = r;
    api_on_cancel(r, waiter_gone, a);
}

/* ---- the grant of one that has a place ---- */

/* Not now, as the broker says: programs took memory since it was last asked.  Wait on, or
 * refuse whoever would not wait. */
static void wait_on(struct agent *a, struct agent_lease *al, struct api_request *r)
{
    struct place_verdict v;
    telemetry_refresh(a);
    find_place(a, &al->q, al->l.uid, &v);
    if (v.code == SL_OK) {
        v.code = SL_NO_CAPACITY;
        v.cause = "memory";
        snprintf(v.why, sizeof v.why, "the broker has no room for it now");
    }
    if (!r || al->q.wait_ms) {
        start_waiting(a, al, r, &v);
        return;
    }
    lease_end(a, al, v.why, NULL);
    fail_placement(a, r, &al->q, &v, v.code);
}

/* Grant, start what a submit asked for, answer whoever waits.  False: it waits on, for the
 * broker has no room, or the disk has none for a submitted job that was answered already
 * (no `r`). */
static bool grant_and_answer(struct agent *a, struct agent_lease *al, struct api_request *r,
                             const struct place_verdict *v)
{
    struct sl_err err = { 0 };
    struct lease was = al->l;
    bool submit = al->job != NULL;
    int rc = grant(a, al, v, &err);
    char why[200];
    snprintf(why, sizeof why, "not granted: %.150s", err.msg);
    if (rc == -SL_NO_CAPACITY) {
        al->l = was;
        wait_on(a, al, r);
        return false;
    }
    if (rc == -SL_IO && !r) {
        al->l = was;
        snprintf(al->l.why, sizeof al->l.why, "%s", why);
        return false;
    }
    if (rc < 0)
        lease_end(a, al, why, NULL);
    else if (submit)
        rc = job_start(a, al, &err);
    if (r && rc < 0)
        api_fail(r, &err);
    else if (r)
        api_answer(r, 201, submit ? agent_job_json(a, al) : agent_lease_json(a, al));
    return true;
}

static const char behind[] = "behind another that waits";

/* The one to look at next: highest priority, then oldest; NULL after the last. */
static struct agent_lease *next_pending(struct agent *a, const struct agent_lease *after)
{
    struct agent_lease *best = NULL;
    for (uint32_t i = 0; i < a->lease_count; i++) {
        struct agent_lease *al = a->lease[i];
        if (al->l.state != LEASE_PENDING)
            continue;
        if (after &&
            (al->l.priority > after->l.priority ||
             (al->l.priority == after->l.priority && al->l.number <= after->l.number)))
            continue;
        if (!best || al->l.priority > best->l.priority)
            best = al;
    }
    return best;
}

/* A bit for each device that the name may mean. */
static uint64_t named_devices(const struct agent *a, const char *name)
{
    bool named[AGENT_MAX_DEVICES];
    uint64_t bits = 0;
    place_named(a->device, a->device_count, name, named);
    for (uint32_t i = 0; i < a->device_count; i++)
        bits |= (uint64_t)named[i] << i;
    return bits;
}
_Static_assert(AGENT_MAX_DEVICES <= 64, "a bit each");

void lease_retry_pending(struct agent *a)
{
    if (a->ending)
        return;
    if (next_pending(a, NULL))
        look_at_borrowers(a);
    /* In order, and none passes one before it that asks for the same devices: a stream of
     * small ones would keep a large one waiting for ever.  One that these devices never fit
     * keeps nobody: it waits for an agent with others. */
    struct agent_lease *al = NULL;
    uint64_t blocked = 0;
    while ((al = next_pending(a, al)) != NULL) {
        uint64_t named = named_devices(a, al->q.device);
        struct place_verdict v;
        find_place(a, &al->q, al->l.uid, &v);
        if (v.code == SL_OK && !(blocked & named)) {
            struct api_request *r = al->waiting;
            al->waiting = NULL;
            if (!grant_and_answer(a, al, r, &v))
                blocked |= named; /* tried again each second */
            continue;
        }
        snprintf(al->l.why, sizeof al->l.why, "%.199s", v.code == SL_OK ? behind : v.why);
        if (!v.never)
            blocked |= named;
    }
}

/* ---- the operation ---- */

static int check_name(struct agent *a, const struct lease_request *q, uid_t uid,
                      struct sl_err *err)
{
    for (uint32_t i = 0; q->name[0] && i < a->lease_count; i++) {
        const struct agent_lease *al = a->lease[i];
        if (agent_lease_is_live(al) && al->l.uid == uid && strcmp(al->l.name, q->name) == 0)
            return sl_fail(err, SL_CONFLICT,
                           "lease L%" PRIu64
                           " is called \"%s\" and still lives; choose another "
                           "name or release it",
                           al->l.number, q->name);
    }
    return 0;
}

/* Would lease_retry_pending() pass it over for one before it?  Who does not wait, never. */
static bool is_behind(const struct agent *a, const struct lease_request *q)
{
    uint64_t named = q->wait_ms ? named_devices(a, q->device) : 0;
    for (uint32_t i = 0; named && i < a->lease_count; i++) {
        const struct agent_lease *al = a->lease[i];
        struct place_verdict v;
        if (al->l.state != LEASE_PENDING || al->l.priority < q->priority ||
            !(named_devices(a, al->q.device) & named))
            continue;
        find_place(a, &al->q, al->l.uid, &v);
        if (!v.never)
            return true;
    }
    return false;
}

/* All that waits must fit into the journal, and whoever may connect may submit. */
static int check_queue(const struct agent *a, struct sl_err *err)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < a->lease_count; i++)
        if (a->lease[i]->l.state == LEASE_PENDING && a->lease[i]->job)
            bytes += a->lease[i]->job_bytes + RECORD_BYTES;
    return bytes < WAITING_MAX_BYTES
               ? 0
               : sl_fail(err, SL_QUOTA,
                         "too much waits already: jobs with %u MiB of arguments and "
                         "environments",
                         WAITING_MAX_BYTES >> 20);
}

static json_t *plan_slice(const struct device *d, const struct lease_slice *s)
{
    return json_pack("{s:s, s:s, s:b, s:{s:I, s:I}, s:{s:i, s:i}, s:s}", "device", d->id,
                     "model", d->model, "emulated", d->emulated, "mem", "request",
                     (json_int_t)s->mem_request_bytes, "limit",
                     (json_int_t)s->mem_limit_bytes, "compute", "request",
                     (int)s->compute_request_permille, "limit",
                     (int)s->compute_limit_permille, "grade", grade_name(d->grades.memory));
}

/* What to type for it.  Memory that differs from device to device was not named. */
static void format_normal(const struct lease_request *q, const struct lease_slice *slices,
                          char *out, size_t size)
{
    const struct lease_slice *s = &slices[0];
    char text[32];
    bool alike = true;
    size_t at = 0;
    for (uint32_t i = 1; i < q->slice_count; i++)
        alike &= slices[i].mem_request_bytes == s->mem_request_bytes;
    if (alike)
        at += (size_t)snprintf(out, size, "--mem %s ",
                               units_format_size(s->mem_request_bytes, text));
    if (alike && s->mem_limit_bytes != s->mem_request_bytes)
        at += (size_t)snprintf(out + at, size - at, "--mem-limit %s ",
                               units_format_size(s->mem_limit_bytes, text));
    at += (size_t)snprintf(out + at, size - at, "--compute %s --mode %s",
                           units_format_share(q->compute_request_permille
                                                  ? q->compute_request_permille
                                                  : q->compute_limit_permille,
                                              q->compute_limit_permille, text),
                           lease_mode_name(q->mode));
    if (q->slice_count > 1)
        snprintf(out + at, size - at, " --devices %u", q->slice_count);
}

/* The first slice's members at the top, as a lease shows them; "normal" is what to type. */
static void answer_plan(const struct agent *a, struct api_request *r,
                        const struct lease_request *q, const struct place_verdict *v)
{
    struct lease_slice slice[LEASE_MAX_SLICES];
    char normal[200];
    json_t *slices = json_array();
    for (uint32_t i = 0; i < q->slice_count; i++) {
        place_slice_fill(&a->device[v->device[i]], q, &slice[i]);
        json_array_append_new(slices, plan_slice(&a->device[v->device[i]], &slice[i]));
    }
    json_t *plan = json_deep_copy(json_array_get(slices, 0));
    format_normal(q, slice, normal, sizeof normal);
    json_object_set_new(plan, "normal", json_string(normal));
    json_object_set_new(plan, "mode", json_string(lease_mode_name(q->mode)));
    json_object_set_new(plan, "dry_run", json_true());
    json_object_set_new(plan, "request", lease_request_to_json(q));
    json_object_set_new(plan, "slices", slices);
    api_answer(r, 200, plan);
}

void lease_ask(struct agent *a, struct api_request *r, const struct lease_request *q,
               const char *command, bool dry_run, json_t *job)
{
    AUTO_JSON json_t *owned_job = job;
    struct api_caller caller = api_request_caller(r);
    struct sl_err err = { 0 };
    if (a->ending)
        sl_fail(&err, SL_UNAVAILABLE, "this agent is ending");
    if (err.code || check_name(a, q, caller.uid, &err) < 0) {
        api_fail(r, &err);
        return;
    }
    struct place_verdict v;
    look_at_borrowers(a);
    find_place(a, q, caller.uid, &v);
    if (v.code == SL_OK && is_behind(a, q)) {
        v.code = SL_NO_CAPACITY;
        v.cause = "queue";
        snprintf(v.why, sizeof v.why, "%s", behind);
    }
    bool wait = q->wait_ms && !v.never && !dry_run && v.code != SL_NOT_FOUND;
    if (v.code != SL_OK && !wait) {
        fail_placement(a, r, q, &v, v.code);
        return;
    }
    if (dry_run) {
        answer_plan(a, r, q, &v);
        return;
    }
    struct agent_lease *al = NULL;
    if (!owned_job || v.code == SL_OK || check_queue(a, &err) == 0)
        al = agent_add(a, a->next_number, &err);
    if (!al) {
        api_fail(r, &err);
        return;
    }
    fill_lease(al, q, &caller, command);
    agent_set_job(al, TAKE_PTR(owned_job));
    watch_caller(a, al, caller.pid);
    if (v.code == SL_OK) {
        grant_and_answer(a, al, r, &v);
    } else {
        start_waiting(a, al, r, &v);
        lease_retry_pending(a);
    }
}

void lease_create_op(void *ctx, struct api_request *r, const struct lease_request *q,
                     const char *command, bool dry_run)
{
    lease_ask(ctx, r, q, command, dry_run, NULL);
}

/* ---- clocks ---- */

static void end_wait(struct agent *a, struct agent_lease *al)
{
    struct place_verdict v;
    struct api_request *r = al->waiting;
    find_place(a, &al->q, al->l.uid, &v);
    al->waiting = NULL;
    if (!v.why[0])
        snprintf(v.why, sizeof v.why, "no room in the time given: %.150s", al->l.why);
    lease_end(a, al, "no room in time", NULL);
    if (r)
        fail_placement(a, r, &al->q, &v, SL_TIMEOUT);
}

void lease_tick(struct agent *a, uint64_t now_ns)
{
    for (uint32_t i = 0; i < a->lease_count; i++) {
        struct agent_lease *al = a->lease[i];
        if (al->l.state == LEASE_PENDING && now_ns >= al->wait_until_ns)
            end_wait(a, al);
        if (al->l.state != LEASE_ACTIVE)
            continue;
        if (al->expires_ns && now_ns >= al->expires_ns)
            drain_start(a, al, "out of time");
        else if (al->unanchored_until_ns && now_ns >= al->unanchored_until_ns &&
                 al->caller.fd < 0)
            drain_start(a, al, "never started");
    }
}
