/* Finding the route of a call, and saying what is wrong where there is none. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/suggest.h"
#include "core/macros.h"
#include "routes.h"

#define ROUTES_MAX 32

/* The length of the segment that begins at p (behind its slash). */
static size_t segment_len(const char *p)
{
    return strcspn(p, "/");
}

static bool is_id(const char *segment, size_t len)
{
    return len == strlen("{id}") && !strncmp(segment, "{id}", len);
}

/* Segment by segment; what stands for {id} goes to id, if it fits and is not empty. */
static bool matches(const char *pattern, const char *path, char id[ID_SIZE])
{
    id[0] = '\0';
    while (*pattern == '/' && *path == '/') {
        size_t want = segment_len(++pattern), have = segment_len(++path);
        if (is_id(pattern, want)) {
            if (have == 0 || have >= ID_SIZE)
                return false;
            memcpy(id, path, have);
            id[have] = '\0';
        } else if (want != have || strncmp(pattern, path, want)) {
            return false;
        }
        pattern += want;
        path += have;
    }
    return *pattern == '\0' && *path == '\0';
}

/* A HEAD is a GET whose body the transport leaves out. */
static bool method_is(const struct route *route, const char *method)
{
    return !strcmp(route->method, method) ||
           (!strcmp(route->method, "GET") && !strcmp(method, "HEAD"));
}

/* The pattern with the path's own segment in the place of {id}: comparable. */
static void fill_pattern(const char *pattern, const char *path, struct buf *out)
{
    while (*pattern == '/') {
        size_t want = segment_len(++pattern), have = *path == '/' ? segment_len(++path) : 0;
        buf_add(out, "/");
        if (is_id(pattern, want) && have > 0)
            buf_add_bytes(out, path, have);
        else
            buf_add_bytes(out, pattern, want);
        pattern += want;
        path += have;
    }
}

static void answer_not_found(struct api_request *r, const char *path)
{
    char *filled[ROUTES_MAX];
    size_t count = 0;
    struct sl_err err;
    for (size_t i = 0; i < route_count && i < ROUTES_MAX; i++) {
        struct buf text = { 0 };
        fill_pattern(routes[i].pattern, path, &text);
        if ((filled[count] = buf_take(&text)))
            count++;
    }
    const char *near = suggest_nearest(path, (const char *const *)filled, count);
    if (near)
        sl_fail(&err, SL_NOT_FOUND, "no such path: %.80s; did you mean %.80s?", path, near);
    else
        sl_fail(&err, SL_NOT_FOUND, "no such path: %.80s; GET /openapi.json lists them",
                path);
    for (size_t i = 0; i < count; i++)
        free(filled[i]);
    api_fail(r, &err);
}

static void answer_wrong_method(struct api_request *r, const struct api_call *call)
{
    AUTO_BUF struct buf allow = { 0 };
    char id[ID_SIZE];
    struct sl_err err;
    for (size_t i = 0; i < route_count; i++)
        if (matches(routes[i].pattern, call->path, id))
            buf_addf(&allow, "%s%s", allow.len ? ", " : "", routes[i].method);
    r->allow = buf_failed(&allow) ? "GET" : allow.text;
    sl_fail(&err, SL_INVALID, "%.20s is not possible on %.80s: %s", call->method,
            call->path, r->allow);
    api_fail(r, &err);
}

static int read_flag(const struct route *route, const struct api_query *q, bool *out,
                     struct sl_err *err)
{
    if (!route->flag)
        return sl_fail(err, SL_INVALID, "\"%.40s\": this path takes no parameters", q->key);
    if (strcmp(q->key, route->flag))
        return sl_fail(err, SL_INVALID,
                       "parameter \"%.40s\" is not known; did you mean \"%s\"?", q->key,
                       route->flag);
    if (!*q->value || !strcmp(q->value, "1") || !strcmp(q->value, "true"))
        *out = true;
    else if (strcmp(q->value, "0") && strcmp(q->value, "false"))
        return sl_fail(err, SL_INVALID, "\"%s\" is \"%.40s\"; it is 1 or 0", q->key,
                       q->value);
    else
        *out = false;
    return 0;
}

static int read_call(const struct route *route, const struct api_call *call,
                     struct route_args *args, struct sl_err *err)
{
    for (unsigned i = 0; i < call->query_count; i++) {
        int rc = read_flag(route, &call->query[i], &args->flag, err);
        if (rc < 0)
            return rc;
    }
    if (!route->has_body)
        return 0;
    args->body = json_parse(call->body, call->body_len, err);
    if (!args->body)
        return sl_prefix(err, "body");
    if (!json_is_object(args->body))
        return sl_fail(err, SL_INVALID, "body: a JSON object is expected");
    return 0;
}

static void run(const struct route *route, const struct api_call *call,
                struct route_args *args)
{
    struct sl_err err = { 0 };
    if (read_call(route, call, args, &err) < 0)
        api_fail(args->r, &err);
    else
        route->handle(args);
    json_decref(args->body);
}

void api_dispatch(const struct api_ops *ops, void *ctx, const struct api_call *call,
                  void (*reply)(void *reply_ctx, const struct api_reply *reply),
                  void *reply_ctx, struct api_request **pending)
{
    struct api_request *r = calloc(1, sizeof *r);
    *pending = r;
    if (!r) {
        static const struct api_reply none = { .status = 503,
                                               .type = "text/plain",
                                               .body = "" };
        reply(reply_ctx, &none);
        return;
    }
    r->caller = call->caller;
    r->reply = reply;
    r->reply_ctx = reply_ctx;
    r->pending = pending;

    struct route_args args = { .ops = ops, .ctx = ctx, .r = r };
    bool path_known = false;
    const struct route *route = NULL;
    for (size_t i = 0; i < route_count && !route; i++) {
        if (!matches(routes[i].pattern, call->path, args.id))
            continue;
        path_known = true;
        if (method_is(&routes[i], call->method))
            route = &routes[i];
    }
    if (route)
        run(route, call, &args);
    else if (path_known)
        answer_wrong_method(r, call);
    else
        answer_not_found(r, call->path);
    if (*pending)
        (*pending)->pending = NULL;
}
