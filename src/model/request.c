/* What a caller asks: defaults, what follows from the rest, and the JSON form. */
#include "model/lease.h"

#include <ctype.h>
#include <string.h>

#include "base/json.h"
#include "forms.h"
#include "model/units.h"

#define PRIORITY_DEFAULT      50
#define PRIORITY_MAX          100
#define MAX_KERNEL_DEFAULT_MS 10000

void lease_request_init(struct lease_request *r)
{
    *r = (struct lease_request){
        .compute_request_permille = 1000,
        .compute_limit_permille = 1000,
        .mode = LEASE_HARD,
        .priority = PRIORITY_DEFAULT,
        .slice_count = 1,
    };
}

static int check_name(const char *name, struct sl_err *err)
{
    if (!*name)
        return 0;
    const char *end = memchr(name, '\0', LEASE_NAME_SIZE);
    if (!end)
        return sl_fail(err, SL_INVALID, "a name has at most %d characters",
                       LEASE_NAME_SIZE - 1);
    for (const char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && (p == name || !strchr("._-", *p)))
            return sl_fail(
                err, SL_INVALID,
                "name \"%s\": letters, digits, \".\", \"_\" and \"-\" are possible, "
                "the first a letter or digit",
                name);
    uint64_t number;
    if (lease_parse_id(name, &number, NULL) == 0 ||
        strspn(name, "0123456789") == strlen(name))
        return sl_fail(
            err, SL_INVALID,
            "name \"%s\" looks like an id; choose one with another letter in front", name);
    return 0;
}

static int check_memory(struct lease_request *r, struct sl_err *err)
{
    if (r->mem_limit_bytes && !r->mem_request_bytes)
        return sl_fail(
            err, SL_INVALID,
            "a memory limit needs a memory request: without one the whole device "
            "is asked");
    if (!r->mem_limit_bytes)
        r->mem_limit_bytes = r->mem_request_bytes;
    if (r->mem_request_bytes > INT64_MAX || r->mem_limit_bytes > INT64_MAX)
        return sl_fail(err, SL_INVALID, "memory is at most 2^63-1 bytes");
    char request[32], limit[32];
    if (r->mem_request_bytes > r->mem_limit_bytes)
        return sl_fail(err, SL_INVALID, "the memory request, %s, is above the limit, %s",
                       units_format_size(r->mem_request_bytes, request),
                       units_format_size(r->mem_limit_bytes, limit));
    return 0;
}

static int check_compute(struct lease_request *r, struct sl_err *err)
{
    if ((unsigned)r->mode > LEASE_BESTEFFORT)
        return sl_fail(err, SL_INVALID, "mode is hard, burst or besteffort");
    /* what is only ever idle time is not set aside */
    if (r->mode == LEASE_BESTEFFORT) {
        if (!r->compute_limit_permille)
            r->compute_limit_permille = r->compute_request_permille;
        r->compute_request_permille = 0;
    } else if (r->compute_request_permille < 1) {
        return sl_fail(err, SL_INVALID, "compute is between 0.1 and 100 percent");
    }
    if (!r->compute_limit_permille)
        r->compute_limit_permille = r->compute_request_permille;
    if (r->compute_limit_permille < 1 || r->compute_limit_permille > 1000 ||
        r->compute_request_permille > 1000)
        return sl_fail(err, SL_INVALID, "compute is between 0.1 and 100 percent");
    if (r->compute_request_permille > r->compute_limit_permille)
        return sl_fail(err, SL_INVALID,
                       "the compute request (%u permille) is above the limit (%u permille)",
                       r->compute_request_permille, r->compute_limit_permille);
    if (r->mode == LEASE_HARD && r->compute_limit_permille > r->compute_request_permille)
        return sl_fail(
            err, SL_INVALID,
            "a compute limit above the request needs mode burst: hard never goes "
            "above its request");
    return 0;
}

int lease_request_check(struct lease_request *r, struct sl_err *err)
{
    int rc;
    if ((rc = check_name(r->name, err)) < 0 || (rc = check_memory(r, err)) < 0 ||
        (rc = check_compute(r, err)) < 0)
        return rc;
    if (r->priority > PRIORITY_MAX)
        return sl_fail(err, SL_INVALID, "priority %u: it is between 0 and %d", r->priority,
                       PRIORITY_MAX);
    if (r->slice_count < 1 || r->slice_count > LEASE_MAX_SLICES)
        return sl_fail(err, SL_INVALID, "%u devices: a lease has between 1 and %d",
                       r->slice_count, LEASE_MAX_SLICES);
    if (!r->max_kernel_ms)
        r->max_kernel_ms = MAX_KERNEL_DEFAULT_MS;
    return 0;
}

static json_t *pair_to_json(uint64_t request, uint64_t limit)
{
    bool ok = true;
    json_t *j = json_object();
    json_put(j, "request", json_u64(request), &ok);
    json_put(j, "limit", json_u64(limit), &ok);
    return form_done(j, ok);
}

json_t *lease_request_to_json(const struct lease_request *r)
{
    bool ok = true;
    json_t *j = json_object();
    json_put(j, "name", form_text(r->name), &ok);
    if (r->mem_request_bytes)
        json_put(j, "mem",
                 pair_to_json(r->mem_request_bytes, r->mem_limit_bytes
                                                        ? r->mem_limit_bytes
                                                        : r->mem_request_bytes),
                 &ok);
    json_put(j, "compute",
             pair_to_json(r->compute_request_permille, r->compute_limit_permille), &ok);
    json_put(j, "mode", json_string(lease_mode_name(r->mode)), &ok);
    json_put(j, "priority", json_u64(r->priority), &ok);
    json_put(j, "slices", json_u64(r->slice_count), &ok);
    json_put(j, "device", form_text(r->device), &ok);
    json_put(j, "fail_closed", json_boolean(r->fail_closed), &ok);
    json_put(j, "time_ms", form_nonzero(r->time_ms), &ok);
    json_put(j, "wait_ms",
             r->wait_ms == UNKNOWN_U64 ? json_string("forever") : json_u64(r->wait_ms),
             &ok);
    json_put(j, "max_kernel_ms", form_nonzero(r->max_kernel_ms), &ok);
    json_put(j, "cpu_milli", form_nonzero(r->cpu_milli), &ok);
    json_put(j, "host_mem", form_nonzero(r->host_mem_bytes), &ok);
    return form_done(j, ok);
}

int form_get_pair(const json_t *obj, const char *key, struct form_pair *out,
                  struct sl_err *err)
{
    static const char *const keys[] = { "request", "limit", NULL };
    const json_t *j;
    *out = (struct form_pair){ .request = UNKNOWN_U64, .limit = UNKNOWN_U64 };
    int rc = form_get_obj(obj, key, &j, err);
    if (rc < 0 || !j)
        return rc;
    if ((rc = json_only_keys(j, keys, err)) < 0 ||
        (rc = json_get_u64(j, "request", &out->request, err)) < 0 ||
        (rc = json_get_u64(j, "limit", &out->limit, err)) < 0)
        return sl_prefix(err, "%s", key);
    out->has_request = out->request != UNKNOWN_U64;
    out->has_limit = out->limit != UNKNOWN_U64;
    return 0;
}

static int memory_from_json(const json_t *j, struct lease_request *r, struct sl_err *err)
{
    struct form_pair mem;
    int rc = form_get_pair(j, "mem", &mem, err);
    if (rc < 0)
        return rc;
    if ((mem.has_request && !mem.request) || (mem.has_limit && !mem.limit))
        return sl_fail(err, SL_INVALID,
                       "mem: at least 1 byte; leave it out for the whole device");
    if (mem.has_request)
        r->mem_request_bytes = mem.request;
    if (mem.has_limit)
        r->mem_limit_bytes = mem.limit;
    return 0;
}

/* Alone, either of request and limit stands for both; a span without a mode is burst. */
static int compute_from_json(const json_t *j, struct lease_request *r, struct sl_err *err)
{
    struct form_pair compute;
    int rc = form_get_pair(j, "compute", &compute, err);
    if (rc < 0)
        return rc;
    if (compute.has_request || compute.has_limit) {
        uint64_t request = compute.has_request ? compute.request : compute.limit;
        uint64_t limit = compute.has_limit ? compute.limit : compute.request;
        if (request > 1000 || limit > 1000 || limit == 0)
            return sl_fail(err, SL_INVALID, "compute: permille, between 1 and 1000");
        r->compute_request_permille = (uint32_t)request;
        r->compute_limit_permille = (uint32_t)limit;
    }
    const char *mode = NULL;
    rc = json_get_str(j, "mode", &mode, err);
    if (rc < 0)
        return rc;
    if (mode)
        return lease_mode_parse(mode, &r->mode, err);
    if (r->compute_limit_permille > r->compute_request_permille)
        r->mode = LEASE_BURST;
    return 0;
}

static int wait_from_json(const json_t *j, struct lease_request *r, struct sl_err *err)
{
    const json_t *wait = json_object_get(j, "wait_ms");
    if (json_is_string(wait) && !strcmp(json_string_value(wait), "forever")) {
        r->wait_ms = UNKNOWN_U64;
        return 0;
    }
    if (json_is_string(wait))
        return sl_fail(err, SL_INVALID, "\"wait_ms\" is milliseconds or \"forever\"");
    return json_get_u64(j, "wait_ms", &r->wait_ms, err);
}

int lease_request_from_json(const json_t *j, struct lease_request *out, struct sl_err *err)
{
    static const char *const keys[] = {
        "name",          "mem",       "compute",     "mode",    "priority",
        "slices",        "device",    "fail_closed", "time_ms", "wait_ms",
        "max_kernel_ms", "cpu_milli", "host_mem",    NULL,
    };
    struct lease_request r;
    int rc;

    lease_request_init(&r);
    if ((rc = json_only_keys(j, keys, err)) < 0 ||
        (rc = json_copy_str(j, "name", r.name, sizeof r.name, err)) < 0 ||
        (rc = memory_from_json(j, &r, err)) < 0 ||
        (rc = compute_from_json(j, &r, err)) < 0 ||
        (rc = json_get_u32(j, "priority", &r.priority, err)) < 0 ||
        (rc = json_get_u32(j, "slices", &r.slice_count, err)) < 0 ||
        (rc = json_copy_str(j, "device", r.device, sizeof r.device, err)) < 0 ||
        (rc = json_get_bool(j, "fail_closed", &r.fail_closed, err)) < 0 ||
        (rc = json_get_u64(j, "time_ms", &r.time_ms, err)) < 0 ||
        (rc = wait_from_json(j, &r, err)) < 0 ||
        (rc = json_get_u64(j, "max_kernel_ms", &r.max_kernel_ms, err)) < 0 ||
        (rc = json_get_u32(j, "cpu_milli", &r.cpu_milli, err)) < 0 ||
        (rc = json_get_u64(j, "host_mem", &r.host_mem_bytes, err)) < 0)
        return rc;
    rc = lease_request_check(&r, err);
    if (rc == 0)
        *out = r;
    return rc;
}
