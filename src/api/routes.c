/* The routes: one row each, and the handler that turns it into an operation. */
#include "routes.h"

#include <string.h>

#include "base/json.h"
#include "core/macros.h"

/* The operation's slot, or the answer that this server has none. */
#define CALL(args, op, ...)                                         \
    do {                                                            \
        if ((args)->ops->op)                                        \
            (args)->ops->op((args)->ctx, (args)->r, ##__VA_ARGS__); \
        else                                                        \
            answer_unsupported((args)->r);                          \
    } while (0)

static void answer_unsupported(struct api_request *r)
{
    struct sl_err err;
    sl_fail(&err, SL_UNSUPPORTED, "this server does not offer that");
    api_fail(r, &err);
}

static void get_node(const struct route_args *a)
{
    CALL(a, node);
}
static void delete_node(const struct route_args *a)
{
    CALL(a, shutdown, a->flag);
}
static void get_devices(const struct route_args *a)
{
    CALL(a, list_devices);
}
static void get_leases(const struct route_args *a)
{
    CALL(a, list_leases, a->flag);
}
static void get_lease(const struct route_args *a)
{
    CALL(a, get_lease, a->id);
}
static void delete_lease(const struct route_args *a)
{
    CALL(a, release_lease, a->id);
}
static void get_jobs(const struct route_args *a)
{
    CALL(a, list_jobs, a->flag);
}
static void delete_jobs(const struct route_args *a)
{
    CALL(a, clear_jobs);
}
static void get_log(const struct route_args *a)
{
    CALL(a, job_log, a->id);
}

static void get_openapi(const struct route_args *a)
{
    api_answer(a->r, 200, api_openapi());
}

/* The request with "command" beside it. */
static void post_lease(const struct route_args *a)
{
    struct lease_request q;
    struct sl_err err;
    const char *command = NULL;

    if (json_get_str(a->body, "command", &command, &err) < 0) {
        api_fail(a->r, &err);
        return;
    }
    AUTO_JSON json_t *rest = json_copy(a->body);
    json_object_del(rest, "command");
    if (lease_request_from_json(rest, &q, &err) < 0)
        api_fail(a->r, &err);
    else
        CALL(a, create_lease, &q, command, a->flag);
}

static void patch_lease(const struct route_args *a)
{
    static const char *const keys[] = { "mem", "compute", "priority", NULL };
    struct sl_err err;

    if (json_only_keys(a->body, keys, &err) < 0) {
        api_fail(a->r, &err);
    } else if (json_object_size(a->body) == 0) {
        sl_fail(&err, SL_INVALID,
                "nothing to change: \"mem\", \"compute\" or \"priority\" is expected");
        api_fail(a->r, &err);
    } else {
        CALL(a, resize_lease, a->id, a->body);
    }
}

/* The one integer that a body is about. */
static int only_integer(const json_t *body, const char *key, int64_t least, int64_t most,
                        int *out, struct sl_err *err)
{
    const char *const keys[] = { key, NULL };
    int rc = json_only_keys(body, keys, err);
    if (rc < 0)
        return rc;
    const json_t *j = json_object_get(body, key);
    if (!json_is_integer(j) || json_integer_value(j) < least ||
        json_integer_value(j) > most)
        return sl_fail(err, SL_INVALID, "\"%s\": an integer from %lld to %lld is expected",
                       key, (long long)least, (long long)most);
    *out = (int)json_integer_value(j);
    return 0;
}

static void post_anchor(const struct route_args *a)
{
    struct sl_err err;
    int pid;
    if (only_integer(a->body, "child_pid", 1, INT32_MAX, &pid, &err) < 0)
        api_fail(a->r, &err);
    else
        CALL(a, anchor_lease, a->id, pid);
}

static void post_exit(const struct route_args *a)
{
    struct sl_err err;
    int status;
    if (only_integer(a->body, "exit_status", 0, 255, &status, &err) < 0)
        api_fail(a->r, &err);
    else
        CALL(a, exit_lease, a->id, status);
}

/* A list of texts; `least` of them. */
static int check_texts(const json_t *job, const char *key, size_t least, struct sl_err *err)
{
    const json_t *list = json_object_get(job, key), *item;
    size_t i;
    if (least == 0 && (!list || json_is_null(list)))
        return 0;
    if (!json_is_array(list) || json_array_size(list) < least)
        return sl_fail(err, SL_INVALID, "\"%s\": a list of at least %zu texts is expected",
                       key, least);
    json_array_foreach((json_t *)list, i, item) {
        if (!json_is_string(item))
            return sl_fail(err, SL_INVALID, "\"%s\": entry %zu is not a text", key, i);
    }
    return 0;
}

static int check_job(const json_t *job, struct sl_err *err)
{
    static const char *const keys[] = { "lease", "argv", "env", "cwd", "umask", NULL };
    const char *cwd = NULL;
    uint32_t umask = 0;
    int rc;
    if ((rc = json_only_keys(job, keys, err)) < 0 ||
        (rc = check_texts(job, "argv", 1, err)) < 0 ||
        (rc = check_texts(job, "env", 0, err)) < 0 ||
        (rc = json_get_str(job, "cwd", &cwd, err)) < 0 ||
        (rc = json_get_u32(job, "umask", &umask, err)) < 0)
        return rc;
    if (cwd && cwd[0] != '/')
        return sl_fail(err, SL_INVALID,
                       "\"cwd\" is \"%.80s\"; an absolute path is expected", cwd);
    if (umask > 0777)
        return sl_fail(err, SL_INVALID, "\"umask\" is %u; at most 511 (0777) is possible",
                       umask);
    return 0;
}

static void post_job(const struct route_args *a)
{
    struct lease_request q;
    struct sl_err err;
    json_t *lease = json_object_get(a->body, "lease");

    if (check_job(a->body, &err) < 0) {
        api_fail(a->r, &err);
        return;
    }
    AUTO_JSON json_t *none = lease ? NULL : json_object();
    if (lease_request_from_json(lease ? lease : none, &q, &err) < 0) {
        sl_prefix(&err, "lease");
        api_fail(a->r, &err);
        return;
    }
    CALL(a, submit_job, &q, a->body);
}

const struct route routes[] = {
    { "GET", "/openapi.json", get_openapi, NULL, false, "getOpenapi", "This description" },
    { "GET", "/v1/node", get_node, NULL, false, "getNode",
      "What this is: versions, grades, broker, run directory" },
    { "DELETE", "/v1/node", delete_node, "force", false, "stopNode",
      "End agent and broker; 409 while leases live, unless forced" },
    { "GET", "/v1/devices", get_devices, NULL, false, "listDevices", "The devices" },
    { "GET", "/v1/leases", get_leases, "all", false, "listLeases",
      "The live leases; with all=1 also the released ones" },
    { "POST", "/v1/leases", post_lease, "dry_run", true, "createLease",
      "Ask for a lease; with dry_run=1 only say what would be granted" },
    { "GET", "/v1/leases/{id}", get_lease, NULL, false, "getLease",
      "One lease, by id or name" },
    { "PATCH", "/v1/leases/{id}", patch_lease, NULL, true, "resizeLease",
      "Resize memory or compute of a running lease" },
    { "DELETE", "/v1/leases/{id}", delete_lease, NULL, false, "releaseLease",
      "Release it and end its processes" },
    { "POST", "/v1/leases/{id}/anchor", post_anchor, NULL, true, "anchorLease",
      "The caller is the lease's shim; its child waits" },
    { "POST", "/v1/leases/{id}/exit", post_exit, NULL, true, "exitLease",
      "The lease's program ended" },
    { "GET", "/v1/jobs", get_jobs, "all", false, "listJobs", "Leases that have a command" },
    { "DELETE", "/v1/jobs", delete_jobs, NULL, false, "clearJobs",
      "Forget the caller's ended jobs, with their logs; root: everybody's" },
    { "POST", "/v1/jobs", post_job, NULL, true, "submitJob",
      "Start a command in the background" },
    { "GET", "/v1/jobs/{id}", get_lease, NULL, false, "getJob",
      "One job, with its exit status" },
    { "DELETE", "/v1/jobs/{id}", delete_lease, NULL, false, "endJob",
      "End it and release its lease" },
    { "GET", "/v1/jobs/{id}/log", get_log, NULL, false, "getJobLog",
      "What it wrote, as text" },
};

const size_t route_count = ARRAY_LEN(routes);
