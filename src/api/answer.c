/* Answers: JSON, text and problem+json, each exactly once. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "request.h"

/* When even the answer finds no memory. */
static const char no_memory[] =
    "{\"type\":\"about:blank\",\"title\":\"internal\",\"status\":500,"
    "\"detail\":\"out of memory\",\"code\":\"internal\",\"who\":\"operator\"}";

static void finish(struct api_request *r, int status, const char *type, const char *body,
                   size_t len)
{
    struct api_reply reply = {
        .status = status, .type = type, .allow = r->allow, .body = body, .body_len = len
    };
    if (r->pending)
        *r->pending = NULL;
    if (!r->gone)
        r->reply(r->reply_ctx, &reply);
    free(r);
}

static void finish_json(struct api_request *r, int status, const char *type, json_t *json)
{
    AUTO_FREE char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (text)
        finish(r, status, type, text, strlen(text));
    else
        finish(r, 500, "application/problem+json", no_memory, sizeof no_memory - 1);
}

void api_answer(struct api_request *r, int http_status, json_t *json)
{
    finish_json(r, http_status, "application/json", json);
}

void api_answer_text(struct api_request *r, const char *text, size_t len)
{
    finish(r, 200, "text/plain; charset=utf-8", text, len);
}

void api_fail(struct api_request *r, const struct sl_err *err)
{
    api_fail_with(r, err, NULL);
}

void api_fail_with(struct api_request *r, const struct sl_err *err, json_t *members)
{
    const struct sl_code_row *row = sl_code_row(err->code ? err->code : SL_INTERNAL);
    int status = r->allow ? 405 : row->http_status;
    bool ok = true;
    json_t *problem = json_object();

    json_put(problem, "type", json_string("about:blank"), &ok);
    json_put(problem, "title", json_string(row->wire), &ok);
    json_put(problem, "status", json_integer(status), &ok);
    json_put(problem, "detail", json_text(err->msg[0] ? err->msg : row->wire), &ok);
    json_put(problem, "code", json_string(row->wire), &ok);
    json_put(problem, "who", json_string(row->who), &ok);
    if (ok && members && json_object_update_missing(problem, members) != 0)
        ok = false;
    json_decref(members);
    if (!ok) {
        json_decref(problem);
        problem = NULL;
    }
    finish_json(r, status, "application/problem+json", problem);
}

struct api_caller api_request_caller(const struct api_request *r)
{
    return r->caller;
}

void api_on_cancel(struct api_request *r, void (*cancel)(void *ctx, struct api_request *r),
                   void *ctx)
{
    r->cancel = cancel;
    r->cancel_ctx = ctx;
}

void api_gone(struct api_request *r)
{
    r->gone = true;
    if (!r->cancel)
        return; /* lives until its operation answers, which then goes nowhere */
    r->cancel(r->cancel_ctx, r);
    free(r);
}
