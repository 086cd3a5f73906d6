/* Routes, bodies and answers, without a socket. */
#include "../rows.h"

#include <stdlib.h>
#include <string.h>

#include "api/dispatch.h"
#include "base/json.h"

/* What the last operation was given, as text. */
static char called[400];
static struct api_request *kept;

#define CALLED(...) snprintf(called, sizeof called, __VA_ARGS__)

static void op_node(void *ctx, struct api_request *r)
{
    CALLED("node uid=%u", api_request_caller(r).uid);
    api_answer(r, 200, json_object());
}
static void op_shutdown(void *ctx, struct api_request *r, bool force)
{
    CALLED("shutdown force=%d", force);
    api_answer(r, 200, json_object());
}
static void op_devices(void *ctx, struct api_request *r)
{
    CALLED("devices");
    api_answer(r, 200, NULL); /* out of memory */
}
static void op_leases(void *ctx, struct api_request *r, bool all)
{
    CALLED("leases all=%d", all);
    api_answer(r, 200, json_pack("{s:[]}", "leases"));
}
static void op_get(void *ctx, struct api_request *r, const char *id)
{
    struct sl_err err;
    CALLED("get %s", id);
    sl_fail(&err, SL_NOT_FOUND, "no lease %s", id);
    api_fail(r, &err);
}
static void op_create(void *ctx, struct api_request *r, const struct lease_request *q,
                      const char *command, bool dry_run)
{
    CALLED("create mem=%llu compute=%u..%u command=%s dry=%d",
           (unsigned long long)q->mem_request_bytes, q->compute_request_permille,
           q->compute_limit_permille, command ? command : "-", dry_run);
    kept = r;
}
static void op_resize(void *ctx, struct api_request *r, const char *id, const json_t *patch)
{
    CALLED("resize %s %zu", id, json_object_size(patch));
    api_answer(r, 200, json_object());
}
static void op_release(void *ctx, struct api_request *r, const char *id)
{
    struct sl_err err;
    CALLED("release %s", id);
    sl_fail(&err, SL_NO_CAPACITY, "busy");
    api_fail_with(r, &err, json_pack("{s:i,s:i}", "alternatives", 3, "status", 1));
}
static void op_anchor(void *ctx, struct api_request *r, const char *id, pid_t child)
{
    CALLED("anchor %s %d", id, (int)child);
    api_answer(r, 200, json_object());
}
static void op_exit(void *ctx, struct api_request *r, const char *id, int status)
{
    CALLED("exit %s %d", id, status);
    api_answer(r, 200, json_object());
}
static void op_submit(void *ctx, struct api_request *r, const struct lease_request *q,
                      const json_t *job)
{
    CALLED("submit compute=%u argc=%zu", q->compute_request_permille,
           json_array_size(json_object_get(job, "argv")));
    api_answer(r, 201, json_object());
}
static void op_clear(void *ctx, struct api_request *r)
{
    CALLED("clear");
    api_answer(r, 200, json_pack("{s:i}", "removed", 2));
}
static void op_log(void *ctx, struct api_request *r, const char *id)
{
    CALLED("log %s", id);
    api_answer_text(r, "a\0b", 3);
}

static const struct api_ops ops = {
    .node = op_node,
    .shutdown = op_shutdown,
    .list_devices = op_devices,
    .list_leases = op_leases,
    .get_lease = op_get,
    .create_lease = op_create,
    .resize_lease = op_resize,
    .release_lease = op_release,
    .anchor_lease = op_anchor,
    .exit_lease = op_exit,
    .clear_jobs = op_clear,
    .submit_job = op_submit,
    .job_log = op_log,
    /* list_jobs is not offered */
};

static struct {
    int count, status;
    char type[60], allow[60], body[9000];
    size_t len;
} got;

static void take_reply(void *ctx, const struct api_reply *reply)
{
    got.count++;
    got.status = reply->status;
    got.len = reply->body_len;
    snprintf(got.type, sizeof got.type, "%s", reply->type);
    snprintf(got.allow, sizeof got.allow, "%s", reply->allow ? reply->allow : "");
    assert_true(reply->body_len < sizeof got.body);
    memcpy(got.body, reply->body, reply->body_len);
    got.body[reply->body_len] = '\0';
}

/* "/v1/leases?all=1&x=2" */
static struct api_request *call(const char *method, const char *target, const char *body)
{
    char copy[200], *next;
    struct api_query query[8];
    struct api_call c = { .method = method, .query = query, .caller = { 7, 1000, 1000 } };
    struct api_request *pending;

    snprintf(copy, sizeof copy, "%s", target);
    char *rest = strchr(copy, '?');
    if (rest)
        *rest++ = '\0';
    while (rest && (next = strsep(&rest, "&"))) {
        char *value = strchr(next, '=');
        if (value)
            *value++ = '\0';
        query[c.query_count++] = (struct api_query){ next, value ? value : "" };
    }
    c.path = copy;
    c.body = body ? body : "";
    c.body_len = strlen(c.body);
    memset(&got, 0, sizeof got);
    called[0] = '\0';
    kept = NULL;
    api_dispatch(&ops, NULL, &c, take_reply, NULL, &pending);
    return pending;
}

static void routes_lead_to_operations(void **state)
{
    static const struct {
        const char *method, *target, *body;
        int status;
        const char *called, *say; /* say: what the answer holds */
    } rows[] = {
        { "GET", "/v1/node", 0, 200, "node uid=1000", "{}" },
        { "HEAD", "/v1/node", 0, 200, "node uid=1000", "{}" },
        { "DELETE", "/v1/node?force=1", 0, 200, "shutdown force=1", "{}" },
        { "DELETE", "/v1/node", 0, 200, "shutdown force=0", "{}" },
        { "GET", "/v1/devices", 0, 500, "devices", "out of memory" },
        { "GET", "/v1/leases", 0, 200, "leases all=0", "{\"leases\":[]}" },
        { "GET", "/v1/leases?all=1", 0, 200, "leases all=1", "leases" },
        { "GET", "/v1/leases?all=0", 0, 200, "leases all=0", "leases" },
        { "GET", "/v1/leases?all", 0, 200, "leases all=1", "leases" },
        { "GET", "/v1/leases?all=maybe", 0, 400, "", "it is 1 or 0" },
        { "GET", "/v1/leases?al=1", 0, 400, "", "did you mean \\\"all\\\"?" },
        { "GET", "/v1/node?x=1", 0, 400, "", "takes no parameters" },
        { "GET", "/v1/leases/L7", 0, 404, "get L7", "no lease L7" },
        { "GET", "/v1/jobs/b", 0, 404, "get b", "no lease b" },
        { "PATCH", "/v1/leases/b", "{\"mem\":{\"request\":5}}", 200, "resize b 1", "{}" },
        { "PATCH", "/v1/leases/b", "{}", 400, "", "nothing to change" },
        { "PATCH", "/v1/leases/b", "{\"memm\":1}", 400, "", "did you mean \\\"mem\\\"?" },
        { "DELETE", "/v1/leases/L7", 0, 409, "release L7", "\"alternatives\":3" },
        { "DELETE", "/v1/jobs/L7", 0, 409, "release L7", "\"status\":409" },
        { "POST", "/v1/leases/L7/anchor", "{\"child_pid\":42}", 200, "anchor L7 42", "{}" },
        { "POST", "/v1/leases/L7/anchor", "{\"child_pid\":0}", 400, "", "from 1 to" },
        { "POST", "/v1/leases/L7/anchor", "{\"child_pid\":4294967297}", 400, "",
          "from 1 to" },
        { "POST", "/v1/leases/L7/anchor", "{\"pid\":1}", 400, "", "is not known" },
        { "POST", "/v1/leases/L7/anchor", "", 400, "", "body: " },
        { "POST", "/v1/leases/L7/exit", "{\"exit_status\":137}", 200, "exit L7 137", "{}" },
        { "POST", "/v1/leases/L7/exit", "{\"exit_status\":256}", 400, "", "from 0 to 255" },
        { "GET", "/v1/jobs", 0, 501, "", "does not offer that" },
        { "DELETE", "/v1/jobs", 0, 200, "clear", "{\"removed\":2}" },
        { "DELETE", "/v1/jobs?all=1", 0, 400, "", "takes no parameters" },
        { "POST", "/v1/jobs", "{\"argv\":[\"a\",\"b\"],\"cwd\":\"/\",\"umask\":18}", 201,
          "submit compute=1000 argc=2", "{}" },
        { "POST", "/v1/jobs", "{\"argv\":[],\"lease\":{}}", 400, "", "at least 1" },
        { "POST", "/v1/jobs", "{\"argv\":[7]}", 400, "", "entry 0 is not a text" },
        { "POST", "/v1/jobs", "{\"argv\":[\"a\"],\"cwd\":\"x\"}", 400, "",
          "absolute path" },
        { "POST", "/v1/jobs", "{\"argv\":[\"a\"],\"umask\":512}", 400, "", "0777" },
        { "POST", "/v1/jobs", "{\"argv\":[\"a\"],\"lease\":{\"prio\":1}}", 400, "",
          "lease: " },
        { "POST", "/v1/leases", "[]", 400, "", "a JSON object is expected" },
        { "POST", "/v1/leases", "{", 400, "", "body: line 1" },
        { "POST", "/v1/leases", "{\"comand\":1}", 400, "", "\\\"comand\\\" is not known" },
        { "POST", "/v1/leases", "{\"command\":1}", 400, "", "a string is expected" },
        { "POST", "/v1/leases", "{\"compute\":{\"request\":1010}}", 400, "", "permille" },
        { "GET", "/v1/lease", 0, 404, "", "did you mean /v1/leases?" },
        { "GET", "/v1/leses/L7", 0, 404, "", "did you mean /v1/leases/L7?" },
        { "GET", "/v1/leases/", 0, 404, "", "no such path" },
        { "GET", "/v1/leases/L7/", 0, 404, "", "no such path" },
        { "GET", "/", 0, 404, "", "GET /openapi.json lists them" },
        { "GET", "", 0, 404, "", "no such path" },
        { "GET", "/v2/zebra/of/no/use/here/at/all", 0, 404, "", "no such path" },
        { "PUT", "/v1/leases", 0, 405, "", "PUT is not possible" },
        { "BREW", "/v1/node", 0, 405, "", "GET, DELETE" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char label[120];
        snprintf(label, sizeof label, "%s %s %.40s", rows[i].method, rows[i].target,
                 rows[i].body ? rows[i].body : "");
        struct api_request *pending = call(rows[i].method, rows[i].target, rows[i].body);
        ROW(label, !pending && got.count == 1);
        ROW_STR(label, called, rows[i].called);
        if (got.status != rows[i].status || !strstr(got.body, rows[i].say))
            fail_msg("row \"%s\": status %d, %s", label, got.status, got.body);
        ROW_STR(label, got.type,
                got.status < 400 ? "application/json" : "application/problem+json");
    }
}

static void a_problem_is_whole(void **state)
{
    call("GET", "/v1/leases/L7", NULL);
    AUTO_JSON json_t *j = json_parse(got.body, got.len, NULL);
    static const struct {
        const char *key, *want;
    } rows[] = {
        { "type", "about:blank" }, { "title", "not-found" }, { "detail", "no lease L7" },
        { "code", "not-found" },   { "who", "caller" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        ROW_STR(rows[i].key, json_string_value(json_object_get(j, rows[i].key)),
                rows[i].want);
    assert_int_equal(json_integer_value(json_object_get(j, "status")), 404);
}

static void a_wrong_method_names_the_right_ones(void **state)
{
    call("PUT", "/v1/leases/L7", NULL);
    assert_int_equal(got.status, 405);
    assert_string_equal(got.allow, "GET, PATCH, DELETE");
}

static void an_answer_may_come_later(void **state)
{
    struct api_request *pending =
        call("POST", "/v1/leases?dry_run=1",
             "{\"mem\":{\"request\":5},\"compute\":{\"request\":200,\"limit\":600},"
             "\"command\":\"ls -l\"}");
    assert_non_null(pending);
    assert_ptr_equal(pending, kept);
    assert_int_equal(got.count, 0);
    assert_string_equal(called, "create mem=5 compute=200..600 command=ls -l dry=1");
    api_answer(kept, 201, json_pack("{s:s}", "id", "L7"));
    assert_int_equal(got.count, 1);
    assert_int_equal(got.status, 201);
    assert_string_equal(got.body, "{\"id\":\"L7\"}");
}

static int cancelled;
static void on_cancel(void *ctx, struct api_request *r)
{
    assert_ptr_equal(r, kept);
    cancelled++;
}

static void a_peer_that_goes_is_noticed_once(void **state)
{
    struct api_request *pending = call("POST", "/v1/leases", "{}");
    api_on_cancel(kept, on_cancel, NULL);
    api_gone(pending);
    assert_int_equal(cancelled, 1);
    assert_int_equal(got.count, 0);
}

static void an_answer_to_nobody_does_nothing(void **state)
{
    struct api_request *pending = call("POST", "/v1/leases", "{}");
    api_gone(pending);
    api_answer(kept, 201, json_object());
    assert_int_equal(got.count, 0);
}

static void a_log_is_text_of_any_bytes(void **state)
{
    call("GET", "/v1/jobs/L7/log", NULL);
    assert_int_equal(got.len, 3);
    assert_memory_equal(got.body, "a\0b", 3);
    assert_string_equal(got.type, "text/plain; charset=utf-8");
}

/* What OpenAPI 3.1 requires of each operation, and that every route of the table is there
 * and answers. */
static void the_description_agrees_with_the_routes(void **state)
{
    call("GET", "/openapi.json", NULL);
    AUTO_JSON json_t *j = json_parse(got.body, got.len, NULL);
    const char *pattern, *method;
    json_t *item, *operation;
    int count = 0;
    assert_string_equal(json_string_value(json_object_get(j, "openapi")), "3.1.0");
    json_t *info = json_object_get(j, "info");
    assert_non_null(json_object_get(info, "title"));
    assert_non_null(json_object_get(info, "version"));
    json_object_foreach(json_object_get(j, "paths"), pattern, item) {
        json_object_foreach(item, method, operation) {
            count++;
            ROW(pattern, json_string_length(json_object_get(operation, "operationId")) > 0);
            ROW(pattern, json_string_length(json_object_get(operation, "summary")) > 0);
            ROW(pattern, json_object_size(json_object_get(operation, "responses")) == 2);
            json_t *first = json_array_get(json_object_get(operation, "parameters"), 0);
            ROW(pattern,
                !strstr(pattern, "{id}") ||
                    !strcmp(json_string_value(json_object_get(first, "in")), "path"));
        }
    }
    assert_int_equal(count, 17);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(routes_lead_to_operations),
    cmocka_unit_test(a_problem_is_whole),
    cmocka_unit_test(a_wrong_method_names_the_right_ones),
    cmocka_unit_test(an_answer_may_come_later),
    cmocka_unit_test(a_peer_that_goes_is_noticed_once),
    cmocka_unit_test(an_answer_to_nobody_does_nothing),
    cmocka_unit_test(a_log_is_text_of_any_bytes),
    cmocka_unit_test(the_description_agrees_with_the_routes),
};
ROWS_MAIN(tests)
