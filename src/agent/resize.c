/* Owns the change of a running lease: checked, journalled, given to the broker,
 * acknowledged. */
#include "agent.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "core/macros.h"
#include "model/units.h"
#include "os/log.h"

struct change {
    bool has_mem, has_limit, has_compute, has_priority;
    uint64_t mem_bytes, limit_bytes;
    uint32_t request_permille, limit_permille, priority;
};

/* Bytes as a number, or as people write them. */
static int read_size(const json_t *j, const char *key, uint64_t *out, struct sl_err *err)
{
    if (json_is_string(j))
        return units_parse_size(json_string_value(j), out, err);
    if (!json_is_integer(j) || json_integer_value(j) <= 0)
        return sl_fail(err, SL_INVALID, "\"%s\" must be a number of bytes above 0", key);
    *out = (uint64_t)json_integer_value(j);
    return 0;
}

static int read_mem(const json_t *patch, struct change *c, struct sl_err *err)
{
    static const char *const keys[] = { "request", "limit", NULL };
    const json_t *mem = json_object_get(patch, "mem");
    const json_t *limit = NULL;
    int rc = 0;
    if (json_is_object(mem)) {
        rc = json_only_keys(mem, keys, err);
        limit = json_object_get(mem, "limit");
        mem = json_object_get(mem, "request");
    }
    if (rc == 0 && mem && !json_is_null(mem)) {
        rc = read_size(mem, "mem", &c->mem_bytes, err);
        c->has_mem = true;
    }
    if (rc == 0 && limit && !json_is_null(limit)) {
        rc = read_size(limit, "mem.limit", &c->limit_bytes, err);
        c->has_limit = true;
    }
    return rc;
}

static int read_compute(const json_t *patch, struct change *c, struct sl_err *err)
{
    static const char *const keys[] = { "request", "limit", NULL };
    const json_t *compute = json_object_get(patch, "compute");
    if (!compute || json_is_null(compute))
        return 0;
    c->has_compute = true;
    if (json_is_string(compute)) {
        struct units_share share;
        int rc = units_parse_share(json_string_value(compute), &share, err);
        if (rc == 0) {
            c->request_permille = share.request_permille;
            c->limit_permille = share.limit_permille;
        }
        return rc;
    }
    uint64_t request = UNKNOWN_U64, limit = UNKNOWN_U64;
    if (!json_is_object(compute))
        return sl_fail(err, SL_INVALID,
                       "\"compute\" must be {\"request\",\"limit\"} in permille");
    int rc = json_only_keys(compute, keys, err);
    if (rc == 0)
        rc = json_get_u64(compute, "request", &request, err);
    if (rc == 0)
        rc = json_get_u64(compute, "limit", &limit, err);
    if (rc < 0)
        return rc;
    if (request == UNKNOWN_U64)
        request = limit;
    if (limit == UNKNOWN_U64)
        limit = request;
    if (request > limit || limit < 1 || limit > 1000)
        return sl_fail(err, SL_INVALID,
                       "\"compute\": 0 <= request <= limit <= 1000 permille");
    c->request_permille = (uint32_t)request;
    c->limit_permille = (uint32_t)limit;
    return 0;
}

static int read_change(const json_t *patch, struct change *c, struct sl_err *err)
{
    static const char *const keys[] = { "mem", "compute", "priority", NULL };
    memset(c, 0, sizeof *c);
    c->priority = UINT32_MAX;
    int rc = json_is_object(patch) ? json_only_keys(patch, keys, err)
                                   : sl_fail(err, SL_INVALID, "a resize is a JSON object");
    if (rc == 0)
        rc = read_mem(patch, c, err);
    if (rc == 0)
        rc = read_compute(patch, c, err);
    if (rc == 0)
        rc = json_get_u32(patch, "priority", &c->priority, err);
    if (rc < 0)
        return rc;
    c->has_priority = c->priority != UINT32_MAX;
    if (c->has_priority && c->priority > 100)
        return sl_fail(err, SL_INVALID, "\"priority\" is 0 to 100");
    if (!c->has_mem && !c->has_limit && !c->has_compute && !c->has_priority)
        return sl_fail(err, SL_INVALID, "nothing to change: give mem, compute or priority");
    return 0;
}

/* The lease as it would be.  A limit that was the request's figure goes with it; one that was
 * above it stays. */
static int apply(const struct change *c, struct lease *l, struct sl_err *err)
{
    char request[32], limit[32];
    for (uint32_t i = 0; i < l->slice_count; i++) {
        struct lease_slice *s = &l->slice[i];
        bool one_figure = s->mem_limit_bytes == s->mem_request_bytes;
        if (c->has_mem)
            s->mem_request_bytes = c->mem_bytes;
        if (c->has_limit)
            s->mem_limit_bytes = c->limit_bytes;
        else if (c->has_mem && one_figure)
            s->mem_limit_bytes = c->mem_bytes;
        if (s->mem_limit_bytes < s->mem_request_bytes)
            return sl_fail(err, SL_INVALID,
                           "the memory limit, %s, would be below the request, %s: change "
                           "both (--mem, --mem-limit)",
                           units_format_size_human(s->mem_limit_bytes, limit),
                           units_format_size_human(s->mem_request_bytes, request));
        if (!c->has_compute)
            continue;
        if (l->mode != LEASE_BESTEFFORT && c->request_permille == 0)
            return sl_fail(err, SL_INVALID, "only besteffort has no compute request");
        if (l->mode == LEASE_HARD && c->request_permille != c->limit_permille)
            l->mode = LEASE_BURST; /* a range says so, as it does at the start */
        s->compute_request_permille = l->mode == LEASE_BESTEFFORT ? 0 : c->request_permille;
        s->compute_limit_permille = c->limit_permille;
    }
    if (c->has_priority)
        l->priority = c->priority;
    l->epoch++;
    return 0;
}

static const struct device *device_of(const struct agent *a, const struct lease_slice *s,
                                      uint32_t *at)
{
    for (*at = 0; *at < a->device_count; ++*at)
        if (strcmp(a->device[*at].id, s->device) == 0)
            return &a->device[*at];
    return NULL;
}

/* Room beside all others for every slice, or why not. */
static int check_room(struct agent *a, const struct agent_lease *al,
                      const struct lease *next, json_t **members, struct sl_err *err)
{
    struct place_use use[AGENT_MAX_DEVICES];
    struct place_policy policy = { .mem_overcommit_permille =
                                       a->o.mem_overcommit_permille };
    const struct lease **all = calloc(a->lease_count, sizeof *all);
    if (!all)
        return sl_fail(err, SL_INTERNAL, "out of memory");
    for (uint32_t i = 0; i < a->lease_count; i++)
        all[i] = &a->lease[i]->l;
    place_sum(a->device, a->device_count, all, a->lease_count, &al->l, use);
    free(all);

    for (uint32_t i = 0; i < next->slice_count; i++) {
        const struct lease_slice *was = &al->l.slice[i], *now = &next->slice[i];
        uint32_t at;
        const struct device *d = device_of(a, now, &at);
        const char *cause = "state";
        bool grows = now->mem_request_bytes > was->mem_request_bytes ||
                     now->mem_limit_bytes > was->mem_limit_bytes ||
                     now->compute_request_permille > was->compute_request_permille;
        if (!grows || (d && place_slice_fits(d, &use[at], now, &policy, &cause)))
            continue;
        uint64_t bytes =
            d ? sub_sat_u64(device_lendable_bytes(d),
                            use[at].mem_request_bytes + use[at].mem_above_bytes)
              : 0;
        uint32_t permille = d ? (uint32_t)sub_sat_u64(1000, use[at].permille) : 0;
        char size[32];
        *members =
            json_pack("{s:s, s:s, s:I, s:i}", "cause", cause, "device", now->device,
                      "most_bytes", (json_int_t)bytes, "most_permille", (int)permille);
        return sl_fail(
            err, SL_NO_CAPACITY,
            "%s has no room for that (%s): this lease can have %s and %.1f %% there now",
            now->device, cause, units_format_size_human(bytes, size), permille / 10.0);
    }
    return 0;
}

/* The broker said no to what the journal already has: the old figures, under a newer epoch.
 */
static void take_back(struct agent *a, struct agent_lease *al, const struct lease *was)
{
    uint64_t epoch = al->l.epoch;
    al->l = *was;
    al->l.epoch = epoch + 1;
    agent_save(a, al, NULL);
    restate_lease(a, al, NULL, NULL);
}

static int commit(struct agent *a, struct agent_lease *al, const struct lease *next,
                  uint64_t *over_bytes, bool *told, struct sl_err *err)
{
    struct lease was = al->l;
    al->l = *next;
    int rc = agent_save(a, al, err);
    if (rc < 0) {
        al->l = was;
        al->unsaved = false;
        return rc;
    }
    rc = restate_lease(a, al, over_bytes, err);
    *told = rc == 0;
    if (rc == -SL_UNAVAILABLE)
        return 0; /* durable; the next broker is told, the answer says "not acknowledged" */
    if (rc < 0)
        take_back(a, al, &was);
    return rc;
}

void resize_op(void *ctx, struct api_request *r, const char *id, const json_t *patch)
{
    struct agent *a = ctx;
    struct api_caller caller = api_request_caller(r);
    struct agent_lease *al = agent_find(a, id, caller.uid);
    struct sl_err err = { 0 };
    struct change change;
    struct lease next;
    json_t *members = NULL;
    uint64_t over = 0;
    bool told = false;
    if (!al)
        sl_fail(&err, SL_NOT_FOUND, "no lease is called \"%.60s\"", id);
    else if (!agent_may_change(al, &caller))
        sl_fail(&err, SL_DENIED, "lease L%" PRIu64 " belongs to uid %u", al->l.number,
                al->l.uid);
    else if (al->l.state == LEASE_PENDING)
        sl_fail(&err, SL_CONFLICT,
                "lease L%" PRIu64
                " waits for room and has no slice yet: release it, and ask anew",
                al->l.number);
    else if (al->l.state != LEASE_ACTIVE)
        sl_fail(&err, SL_CONFLICT, "lease L%" PRIu64 " is %s: nothing of it can be changed",
                al->l.number, lease_state_name(al->l.state));
    else if (read_change(patch, &change, &err) == 0) {
        next = al->l;
        if (apply(&change, &next, &err) == 0 &&
            check_room(a, al, &next, &members, &err) == 0)
            commit(a, al, &next, &over, &told, &err);
    }
    if (err.code && err.code != SL_UNAVAILABLE) {
        api_fail_with(r, &err, members);
        return;
    }
    log_info("lease-resized",
             "lease=L%" PRIu64 " epoch=%" PRIu64 " mem=%" PRIu64
             " compute=%u over=%" PRIu64,
             al->l.number, al->l.epoch, al->l.slice[0].mem_limit_bytes,
             al->l.slice[0].compute_request_permille, over);
    api_answer(r, 200,
               json_pack("{s:o, s:b, s:I}", "lease", agent_lease_json(a, al),
                         "acknowledged", told && over == 0, "over_bytes",
                         (json_int_t)over));
    lease_retry_pending(a);
}
