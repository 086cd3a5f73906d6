/* A lease's names and its JSON form: what `ps` prints and the journal keeps. */
#include "model/lease.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "core/macros.h"
#include "forms.h"

static const char *const state_names[] = {
#define X(name, text) [LEASE_##name] = text,
    LEASE_STATES(X)
#undef X
};

static const char *const mode_names[] = {
    [LEASE_HARD] = "hard",
    [LEASE_BURST] = "burst",
    [LEASE_BESTEFFORT] = "besteffort",
};

const char *lease_state_name(enum lease_state s)
{
    return (unsigned)s < ARRAY_LEN(state_names) ? state_names[s] : "released";
}

const char *lease_mode_name(enum lease_mode m)
{
    return (unsigned)m < ARRAY_LEN(mode_names) ? mode_names[m] : "hard";
}

int lease_mode_parse(const char *text, enum lease_mode *out, struct sl_err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(mode_names); i++)
        if (!strcmp(text, mode_names[i])) {
            *out = (enum lease_mode)i;
            return 0;
        }
    return sl_fail(err, SL_INVALID, "mode \"%.40s\": it is hard, burst or besteffort",
                   text);
}

const char *lease_format_id(uint64_t number, char out[24])
{
    snprintf(out, 24, "L%" PRIu64, number);
    return out;
}

int lease_parse_id(const char *text, uint64_t *number, struct sl_err *err)
{
    uint64_t value = 0;
    const char *p = text + (*text == 'L');
    if (*text != 'L' || *p < '1' || *p > '9')
        return sl_fail(err, SL_INVALID, "\"%.40s\" is not a lease's id: those look like L7",
                       text);
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value) ||
            value > INT64_MAX)
            return sl_fail(err, SL_INVALID, "\"%.40s\": number too large", text);
    if (*p)
        return sl_fail(err, SL_INVALID, "\"%.40s\" is not a lease's id: those look like L7",
                       text);
    *number = value;
    return 0;
}

/* ---- to JSON ---- */

static json_t *mem_to_json(const struct lease_slice *s)
{
    bool ok = true;
    json_t *j = json_object();
    json_put(j, "request", form_nonzero(s->mem_request_bytes), &ok);
    json_put(j, "limit", form_nonzero(s->mem_limit_bytes), &ok);
    json_put(j, "used", json_u64(s->mem_used_bytes), &ok);
    json_put(j, "over", json_u64(s->mem_over_bytes), &ok);
    return form_done(j, ok);
}

static json_t *compute_to_json(const struct lease_slice *s)
{
    bool ok = true;
    json_t *j = json_object();
    json_put(j, "request", json_u64(s->compute_request_permille), &ok);
    json_put(j, "limit", json_u64(s->compute_limit_permille), &ok);
    json_put(j, "achieved_10s",
             s->achieved_permille_10s < 0 ? json_null()
                                          : json_integer(s->achieved_permille_10s),
             &ok);
    return form_done(j, ok);
}

static json_t *slice_to_json(const struct lease_slice *s)
{
    bool ok = true;
    json_t *j = json_object();
    json_put(j, "device", form_text(s->device), &ok);
    json_put(j, "index", json_u64(s->device_index), &ok);
    json_put(j, "mem", mem_to_json(s), &ok);
    json_put(j, "compute", compute_to_json(s), &ok);
    json_put(j, "held_ns", json_u64(s->held_ns), &ok);
    json_put(j, "turns", json_u64(s->turns), &ok);
    json_put(j, "wait_ns", json_u64(s->wait_ns), &ok);
    json_put(j, "overrun_ns", json_u64(s->overrun_ns), &ok);
    json_put(j, "kernels", json_u64(s->kernels), &ok);
    json_put(j, "copies", json_u64(s->copies), &ok);
    json_put(j, "ungated", json_u64(s->ungated), &ok);
    json_put(j, "refused", json_u64(s->refused), &ok);
    json_put(j, "holds", json_boolean(s->holds), &ok);
    json_put(j, "waits", json_boolean(s->waits), &ok);
    json_put(j, "late", json_boolean(s->late), &ok);
    json_put(j, "stuck", json_boolean(s->stuck), &ok);
    return form_done(j, ok);
}

static json_t *slices_to_json(const struct lease *l)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < l->slice_count && i < LEASE_MAX_SLICES; i++)
        if (json_array_append_new(list, slice_to_json(&l->slice[i])) != 0)
            return form_done(list, false);
    return list;
}

static json_t *shim_to_json(const struct lease *l)
{
    if (!l->shim_pid)
        return json_null();
    return json_pack("{s:i,s:I}", "pid", (int)l->shim_pid, "start_ticks",
                     (json_int_t)l->shim_start_ticks);
}

static json_t *ns_as_ms(uint64_t ns)
{
    if (ns == UNKNOWN_U64)
        return json_null();
    return ns % 1000000 ? json_real((double)ns / 1e6) : json_u64(ns / 1000000);
}

/* Who may use what, and how well it is held. */
static void put_right(json_t *j, const struct lease *l, bool *ok)
{
    /* the first slice stands for the lease; a gang's slices are alike */
    struct lease_slice none = { .mem_used_bytes = UNKNOWN_U64,
                                .achieved_permille_10s = -1 };
    const struct lease_slice *first = l->slice_count ? &l->slice[0] : &none;
    char id[24];

    json_put(j, "id", json_string(lease_format_id(l->number, id)), ok);
    json_put(j, "name", form_text(l->name), ok);
    json_put(j, "tenant", form_text(l->tenant), ok);
    json_put(j, "uid", json_u64(l->uid), ok);
    json_put(j, "device", form_text(first->device), ok);
    json_put(j, "state", json_string(lease_state_name(l->state)), ok);
    json_put(j, "mode", json_string(lease_mode_name(l->mode)), ok);
    json_put(j, "priority", json_u64(l->priority), ok);
    json_put(j, "mem", mem_to_json(first), ok);
    json_put(j, "compute", compute_to_json(first), ok);
    json_put(j, "grade", form_grades(&l->grades), ok);
    json_put(j, "placement", form_text(l->placement), ok);
    json_put(j, "epoch", json_u64(l->epoch), ok);
    json_put(j, "granularity_ms", ns_as_ms(l->granularity_ns), ok);
    json_put(j, "slices", slices_to_json(l), ok);
    json_put(j, "emulated", json_boolean(l->emulated), ok);
    json_put(j, "fail_closed", json_boolean(l->fail_closed), ok);
    json_put(j, "time_ms", form_nonzero(l->time_ms), ok);
    json_put(j, "max_kernel_ms", form_nonzero(l->max_kernel_ms), ok);
    json_put(j, "cpu_milli", form_nonzero(l->cpu_milli), ok);
    json_put(j, "host_mem", form_nonzero(l->host_mem_bytes), ok);
    json_put(j, "host_limits", form_text(l->host_limits), ok);
}

/* What became of it. */
static void put_life(json_t *j, const struct lease *l, bool *ok)
{
    json_put(j, "created_at", form_time(l->created_ms), ok);
    json_put(j, "granted_at", form_time(l->granted_ms), ok);
    json_put(j, "released_at", form_time(l->released_ms), ok);
    json_put(j, "why", form_text(l->why), ok);
    json_put(j, "command", form_text(l->command), ok);
    json_put(j, "shim", shim_to_json(l), ok);
    json_put(j, "cgroup_id", form_nonzero(l->cgroup_id), ok);
    json_put(j, "exit_status", l->exited ? json_integer(l->exit_status) : json_null(), ok);
    json_put(j, "clients", json_u64(l->clients), ok);
    json_put(j, "suspects", json_u64(l->suspects), ok);
}

json_t *lease_to_json(const struct lease *l)
{
    bool ok = true;
    json_t *j = json_object();
    put_right(j, l, &ok);
    put_life(j, l, &ok);
    return form_done(j, ok);
}

/* ---- from JSON ---- */

static int slice_mem_from_json(const json_t *j, struct lease_slice *s, struct sl_err *err)
{
    const json_t *mem;
    int rc = form_get_obj(j, "mem", &mem, err);
    if (rc < 0 || !mem)
        return rc;
    if ((rc = json_get_u64(mem, "request", &s->mem_request_bytes, err)) < 0 ||
        (rc = json_get_u64(mem, "limit", &s->mem_limit_bytes, err)) < 0 ||
        (rc = json_get_u64(mem, "used", &s->mem_used_bytes, err)) < 0)
        return rc;
    return json_get_u64(mem, "over", &s->mem_over_bytes, err);
}

static int slice_compute_from_json(const json_t *j, struct lease_slice *s,
                                   struct sl_err *err)
{
    const json_t *compute;
    int rc = form_get_obj(j, "compute", &compute, err);
    if (rc < 0 || !compute)
        return rc;
    if ((rc = json_get_u32(compute, "request", &s->compute_request_permille, err)) < 0 ||
        (rc = json_get_u32(compute, "limit", &s->compute_limit_permille, err)) < 0)
        return rc;
    return form_get_i32(compute, "achieved_10s", &s->achieved_permille_10s, err);
}

static int slice_from_json(const json_t *j, struct lease_slice *s, struct sl_err *err)
{
    struct {
        const char *key;
        uint64_t *out;
    } counters[] = {
        { "held_ns", &s->held_ns }, { "turns", &s->turns },
        { "wait_ns", &s->wait_ns }, { "overrun_ns", &s->overrun_ns },
        { "kernels", &s->kernels }, { "copies", &s->copies },
        { "ungated", &s->ungated }, { "refused", &s->refused },
    };
    int rc = 0;

    if (!json_is_object(j))
        return sl_fail(err, SL_INVALID, "a slice is a JSON object");
    s->mem_used_bytes = s->mem_over_bytes = UNKNOWN_U64;
    s->achieved_permille_10s = -1;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(counters); i++) {
        *counters[i].out = UNKNOWN_U64;
        rc = json_get_u64(j, counters[i].key, counters[i].out, err);
    }
    if (rc < 0 || (rc = json_copy_str(j, "device", s->device, sizeof s->device, err)) < 0 ||
        (rc = json_get_u32(j, "index", &s->device_index, err)) < 0 ||
        (rc = slice_mem_from_json(j, s, err)) < 0 ||
        (rc = slice_compute_from_json(j, s, err)) < 0 ||
        (rc = json_get_bool(j, "holds", &s->holds, err)) < 0 ||
        (rc = json_get_bool(j, "waits", &s->waits, err)) < 0 ||
        (rc = json_get_bool(j, "late", &s->late, err)) < 0)
        return rc;
    return json_get_bool(j, "stuck", &s->stuck, err);
}

static int slices_from_json(const json_t *j, struct lease *l, struct sl_err *err)
{
    const json_t *list = json_object_get(j, "slices"), *item;
    size_t i;
    if (!list || json_is_null(list))
        return 0;
    if (!json_is_array(list) || json_array_size(list) > LEASE_MAX_SLICES)
        return sl_fail(err, SL_INVALID, "\"slices\" is a list of at most %d",
                       LEASE_MAX_SLICES);
    json_array_foreach((json_t *)list, i, item) {
        int rc = slice_from_json(item, &l->slice[i], err);
        if (rc < 0)
            return sl_prefix(err, "slice %zu", i);
        l->slice_count++;
    }
    return 0;
}

static int id_from_json(const json_t *j, struct lease *l, struct sl_err *err)
{
    const char *id = NULL;
    int rc = json_get_str(j, "id", &id, err);
    if (rc < 0)
        return rc;
    if (!id)
        return sl_fail(err, SL_INVALID, "a lease needs an \"id\"");
    return lease_parse_id(id, &l->number, err);
}

static int granularity_from_json(const json_t *j, struct lease *l, struct sl_err *err)
{
    const json_t *ms = json_object_get(j, "granularity_ms");
    if (!ms || json_is_null(ms))
        return 0;
    double value = json_number_value(ms);
    if (!json_is_number(ms) || !(value >= 0 && value <= 1e9))
        return sl_fail(err, SL_INVALID,
                       "\"granularity_ms\" is not a number of milliseconds");
    l->granularity_ns = (uint64_t)llround(value * 1e6);
    return 0;
}

static int right_from_json(const json_t *j, struct lease *l, struct sl_err *err)
{
    int state = LEASE_PENDING, mode = LEASE_HARD, rc;
    if ((rc = id_from_json(j, l, err)) < 0 ||
        (rc = json_copy_str(j, "name", l->name, sizeof l->name, err)) < 0 ||
        (rc = json_copy_str(j, "tenant", l->tenant, sizeof l->tenant, err)) < 0 ||
        (rc = json_get_u32(j, "uid", &l->uid, err)) < 0 ||
        (rc = form_find_name(j, "state", state_names, ARRAY_LEN(state_names), &state,
                             err)) < 0 ||
        (rc = form_find_name(j, "mode", mode_names, ARRAY_LEN(mode_names), &mode, err)) <
            0 ||
        (rc = json_get_u32(j, "priority", &l->priority, err)) < 0 ||
        (rc = form_get_grades(j, "grade", &l->grades, err)) < 0 ||
        (rc = json_copy_str(j, "placement", l->placement, sizeof l->placement, err)) < 0 ||
        (rc = json_get_u64(j, "epoch", &l->epoch, err)) < 0 ||
        (rc = granularity_from_json(j, l, err)) < 0 ||
        (rc = slices_from_json(j, l, err)) < 0 ||
        (rc = json_get_bool(j, "emulated", &l->emulated, err)) < 0 ||
        (rc = json_get_bool(j, "fail_closed", &l->fail_closed, err)) < 0 ||
        (rc = json_get_u64(j, "time_ms", &l->time_ms, err)) < 0 ||
        (rc = json_get_u64(j, "max_kernel_ms", &l->max_kernel_ms, err)) < 0 ||
        (rc = json_get_u32(j, "cpu_milli", &l->cpu_milli, err)) < 0 ||
        (rc = json_get_u64(j, "host_mem", &l->host_mem_bytes, err)) < 0 ||
        (rc = form_cut_str(j, "host_limits", l->host_limits, sizeof l->host_limits, err)) <
            0)
        return rc;
    l->state = (enum lease_state)state;
    l->mode = (enum lease_mode)mode;
    return 0;
}

static int shim_from_json(const json_t *j, struct lease *l, struct sl_err *err)
{
    const json_t *shim;
    int rc = form_get_obj(j, "shim", &shim, err);
    if (rc < 0 || !shim)
        return rc;
    if ((rc = form_get_i32(shim, "pid", &l->shim_pid, err)) < 0)
        return rc;
    if (l->shim_pid <= 0) { /* that is nobody */
        l->shim_pid = 0;
        return 0;
    }
    return json_get_u64(shim, "start_ticks", &l->shim_start_ticks, err);
}

static int life_from_json(const json_t *j, struct lease *l, struct sl_err *err)
{
    int rc;
    if ((rc = form_get_time(j, "created_at", &l->created_ms, err)) < 0 ||
        (rc = form_get_time(j, "granted_at", &l->granted_ms, err)) < 0 ||
        (rc = form_get_time(j, "released_at", &l->released_ms, err)) < 0 ||
        (rc = form_cut_str(j, "why", l->why, sizeof l->why, err)) < 0 ||
        (rc = form_cut_str(j, "command", l->command, sizeof l->command, err)) < 0 ||
        (rc = shim_from_json(j, l, err)) < 0 ||
        (rc = json_get_u64(j, "cgroup_id", &l->cgroup_id, err)) < 0 ||
        (rc = form_get_i32(j, "exit_status", &l->exit_status, err)) < 0 ||
        (rc = json_get_u32(j, "clients", &l->clients, err)) < 0 ||
        (rc = json_get_u32(j, "suspects", &l->suspects, err)) < 0)
        return rc;
    l->exited = json_is_integer(json_object_get(j, "exit_status"));
    return 0;
}

int lease_from_json(const json_t *j, struct lease *out, struct sl_err *err)
{
    struct lease l = { 0 };
    int rc;
    if (!json_is_object(j))
        return sl_fail(err, SL_INVALID, "a lease is a JSON object");
    if ((rc = right_from_json(j, &l, err)) < 0 || (rc = life_from_json(j, &l, err)) < 0)
        return rc;
    *out = l;
    return 0;
}
