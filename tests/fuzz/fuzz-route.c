/*
 * The API's dispatcher on any method, path, query and body: each call is answered
 * exactly once, now, later, or not at all when its peer went away.
 *
 * An input is "METHOD PATH KEY=VALUE BODY", cut at the first three spaces.
 */
#include <stdbool.h>
#include <string.h>

#include "api/dispatch.h"
#include "base/json.h"
#include "fuzz.h"

const char *const fuzz_seeds[] = {
    "GET /v1/node  ",
    "DELETE /v1/node force=1 ",
    "GET /v1/leases all=true ",
    "POST /v1/leases dry_run=0 {\"command\":\"x\",\"mem\":{\"request\":5}}",
    "GET /v1/leases/L7  ",
    "PATCH /v1/leases/b  {\"compute\":{\"request\":5,\"limit\":6},\"priority\":1}",
    "POST /v1/leases/L7/anchor  {\"child_pid\":7}",
    "POST /v1/leases/L7/exit  {\"exit_status\":7}",
    "POST /v1/jobs  {\"argv\":[\"a\",\"b\"],\"env\":[\"A=1\"],\"cwd\":\"/\",\"umask\":18,"
    "\"lease\":{\"mode\":\"hard\"}}",
    "GET /v1/jobs/L7/log  ",
    "GET /openapi.json  ",
    "PUT /v1/lease x=y z",
    NULL,
};

static struct api_request *kept;
static unsigned replies, cancels, operations;

/* Each operation in turn answers, fails, or keeps its request. */
static void serve(struct api_request *r)
{
    struct sl_err err;
    switch (operations++ % 3) {
    case 0:
        api_answer(r, 200, json_object());
        break;
    case 1:
        sl_fail(&err, SL_NO_CAPACITY, "no room");
        api_fail_with(r, &err, json_pack("{s:i}", "free", 7));
        break;
    default:
        kept = r;
    }
}

static void op(void *ctx, struct api_request *r)
{
    serve(r);
}
static void op_flag(void *ctx, struct api_request *r, bool flag)
{
    serve(r);
}
static void op_id(void *ctx, struct api_request *r, const char *id)
{
    FUZZ_CHECK(*id && !strchr(id, '/'));
    serve(r);
}
static void op_create(void *ctx, struct api_request *r, const struct lease_request *q,
                      const char *command, bool dry_run)
{
    FUZZ_CHECK(q->compute_limit_permille >= 1 && q->slice_count >= 1);
    serve(r);
}
static void op_patch(void *ctx, struct api_request *r, const char *id, const json_t *patch)
{
    FUZZ_CHECK(json_object_size(patch) > 0);
    serve(r);
}
static void op_anchor(void *ctx, struct api_request *r, const char *id, pid_t child)
{
    FUZZ_CHECK(child > 0);
    serve(r);
}
static void op_exit(void *ctx, struct api_request *r, const char *id, int status)
{
    FUZZ_CHECK(status >= 0 && status <= 255);
    serve(r);
}
static void op_submit(void *ctx, struct api_request *r, const struct lease_request *q,
                      const json_t *job)
{
    FUZZ_CHECK(json_array_size(json_object_get(job, "argv")) > 0);
    serve(r);
}

static const struct api_ops ops = {
    .node = op,
    .shutdown = op_flag,
    .list_devices = op,
    .list_leases = op_flag,
    .get_lease = op_id,
    .create_lease = op_create,
    .resize_lease = op_patch,
    .release_lease = op_id,
    .anchor_lease = op_anchor,
    .exit_lease = op_exit,
    .list_jobs = op_flag,
    .clear_jobs = op,
    .submit_job = op_submit,
    .job_log = op_id,
};

static void take_reply(void *ctx, const struct api_reply *reply)
{
    replies++;
    FUZZ_CHECK(reply->status >= 200 && reply->status < 600);
    FUZZ_CHECK((reply->allow != NULL) == (reply->status == 405));
    AUTO_JSON json_t *j = json_parse(reply->body, reply->body_len, NULL);
    FUZZ_CHECK(json_is_object(j));
    FUZZ_CHECK(reply->status < 400 || json_object_get(j, "detail"));
}

static void on_cancel(void *ctx, struct api_request *r)
{
    FUZZ_CHECK(r == kept);
    cancels++;
}

/* What becomes of a request that waits: answered, noticed as gone, or gone unnoticed. */
static void settle(struct api_request *pending, unsigned how)
{
    FUZZ_CHECK(pending == kept && replies == 0);
    if (how % 3 == 0) {
        api_answer(kept, 201, json_object());
        FUZZ_CHECK(replies == 1);
        return;
    }
    if (how % 3 == 1)
        api_on_cancel(kept, on_cancel, NULL);
    api_gone(pending);
    FUZZ_CHECK(cancels == (how % 3 == 1));
    if (how % 3 == 2)
        api_answer(kept, 201, json_object());
    FUZZ_CHECK(replies == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = calloc(1, size + 1), *rest = text, *part[3];
    memcpy(text, data, size);
    for (int i = 0; i < 3; i++) {
        part[i] = rest ? strsep(&rest, " ") : NULL;
        part[i] = part[i] ? part[i] : text + size;
    }
    char *value = strchr(part[2], '=');
    if (value)
        *value++ = '\0';
    struct api_query query = { part[2], value ? value : "" };
    struct api_call call = {
        .method = part[0],
        .path = part[1],
        .query = &query,
        .query_count = *part[2] != '\0',
        .body = rest ? rest : "",
        .body_len = rest ? size - (size_t)(rest - text) : 0,
    };
    struct api_request *pending;
    kept = NULL;
    replies = cancels = 0;
    operations = size % 3; /* the same each time for the same input */
    api_dispatch(&ops, NULL, &call, take_reply, NULL, &pending);
    if (pending)
        settle(pending, (unsigned)size / 3);
    else
        FUZZ_CHECK(replies == 1);
    free(text);
    return 0;
}
