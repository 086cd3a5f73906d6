/* The Nth allocation fails: an error or success, never a crash, never half an answer. */
#include "../rows.h"
#include "../nth_alloc.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "api/dispatch.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/suggest.h"
#include "model/device.h"
#include "model/lease.h"

static bool build_text(void)
{
    struct buf b = { 0 };
    for (int i = 0; i < 100; i++)
        buf_addf(&b, "%d,", i);
    bool failed = buf_failed(&b);
    char *text = buf_take(&b);
    if (!failed != (text != NULL))
        fail_msg("a text of %p after failed=%d", (void *)text, failed);
    if (text && strlen(text) != 290)
        fail_msg("half a text: %zu", strlen(text));
    free(text);
    return text != NULL;
}

static bool read_request(void)
{
    static const char text[] =
        "{\"name\":\"b\",\"mem\":{\"request\":1,\"limit\":2},\"compute\":"
        "{\"request\":200,\"limit\":600},\"device\":\"a\"}";
    struct sl_err err;
    struct lease_request r = { .priority = 77 };
    AUTO_JSON json_t *j = json_parse(text, strlen(text), &err);
    if (!j)
        return false;
    if (lease_request_from_json(j, &r, &err) < 0)
        return false;
    if (r.mem_limit_bytes != 2 || r.priority != 50)
        fail_msg("half a request");
    AUTO_JSON json_t *back = lease_request_to_json(&r);
    if (back && !json_object_get(back, "host_mem"))
        fail_msg("half a form");
    return back != NULL;
}

static bool round_trip_lease(void)
{
    struct lease l = { .number = 7,
                       .slice_count = 2,
                       .shim_pid = 5,
                       .granularity_ns = 123456,
                       .created_ms = 1779271200123,
                       .command = "a \xff b",
                       .exited = true },
                 again;
    AUTO_JSON json_t *j = lease_to_json(&l);
    if (!j)
        return false;
    if (json_array_size(json_object_get(j, "slices")) != 2 ||
        !json_object_get(j, "suspects"))
        fail_msg("half a lease");
    int rc = lease_from_json(j, &again, NULL);
    if (rc < 0 && rc != -SL_INVALID)
        fail_msg("rc %d", rc);
    return rc == 0;
}

static bool round_trip_device(void)
{
    struct device d = { .id = "x", .holder_pid = 7 }, again;
    AUTO_JSON json_t *j = device_to_json(&d);
    if (j && !json_object_get(j, "holder"))
        fail_msg("half a device");
    return j && device_from_json(j, &again, NULL) == 0;
}

static void op_create(void *ctx, struct api_request *r, const struct lease_request *q,
                      const char *command, bool dry_run)
{
    api_answer(r, 201, lease_request_to_json(q));
}

static void op_get(void *ctx, struct api_request *r, const char *id)
{
    struct sl_err err;
    sl_fail(&err, SL_NO_CAPACITY, "no room");
    api_fail_with(r, &err, json_pack("{s:i}", "alternatives", 3));
}

static const struct api_ops ops = { .create_lease = op_create, .get_lease = op_get };
static int replies, status;

static void take_reply(void *ctx, const struct api_reply *reply)
{
    replies++;
    status = reply->status;
}

/* Every call is answered once, if need be with 500 or 503. */
static bool answer(const char *method, const char *path, const char *body, int want)
{
    struct api_request *pending;
    struct api_call call = {
        .method = method, .path = path, .body = body, .body_len = strlen(body)
    };
    replies = 0;
    api_dispatch(&ops, NULL, &call, take_reply, NULL, &pending);
    if (replies != 1 || pending)
        fail_msg("%s %s: %d answers", method, path, replies);
    return status == want;
}

static bool post_lease(void)
{
    return answer("POST", "/v1/leases", "{\"command\":\"x\",\"mem\":{\"request\":1}}", 201);
}
static bool get_lease(void)
{
    return answer("GET", "/v1/leases/b", "", 409);
}
static bool not_found(void)
{
    return answer("GET", "/v1/lease", "", 404);
}
static bool wrong_method(void)
{
    return answer("PUT", "/v1/leases", "", 405);
}
static bool describe(void)
{
    return answer("GET", "/openapi.json", "", 200);
}

static void the_nth_allocation_fails(void **state)
{
    static const struct nth_alloc_row rows[] = {
        { "building a text", build_text },
        { "reading and writing a request", read_request },
        { "writing and reading a lease", round_trip_lease },
        { "writing and reading a device", round_trip_device },
        { "asking for a lease", post_lease },
        { "a problem with more members", get_lease },
        { "a path that is not there", not_found },
        { "a wrong method", wrong_method },
        { "the description", describe },
    };
    nth_alloc_rows(rows, ARRAY_LEN(rows));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_nth_allocation_fails),
};
ROWS_MAIN(tests)
