/* The API on a socket: wire's requests to dispatch, replies back. */
#include <stdlib.h>

#include "core/macros.h"
#include "request.h"
#include "wire/http.h"

struct api_server {
    struct http_server *http;
    const struct api_ops *ops;
    void *ctx;
};

static void send_reply(void *ctx, const struct api_reply *reply)
{
    http_answer(ctx, reply->status, reply->type, reply->allow, reply->body,
                reply->body_len);
}

static void on_gone(void *ctx, struct http_request *http)
{
    api_gone(ctx);
}

static void handle(void *ctx, struct http_request *http)
{
    struct api_server *s = ctx;
    const struct ucred *peer = http_peer(http);
    struct api_call call = {
        .method = http_method(http),
        .path = http_path(http),
        .caller = { .pid = peer->pid, .uid = peer->uid, .gid = peer->gid },
    };
    const struct http_query *given = http_query(http, &call.query_count);
    struct api_query query[HTTP_QUERY_MAX];
    struct api_request *pending;

    /* more than are kept cannot all be known: the first unknown one is refused */
    call.query_count = (unsigned)min_u64(call.query_count, HTTP_QUERY_MAX);
    for (unsigned i = 0; i < call.query_count; i++)
        query[i] = (struct api_query){ given[i].key, given[i].value };
    call.query = query;
    call.body = http_body(http, &call.body_len);
    api_dispatch(s->ops, s->ctx, &call, send_reply, http, &pending);
    if (pending)
        http_on_gone(http, on_gone, pending);
}

struct api_server *api_create(int listen_fd, const struct api_ops *ops, void *ctx,
                              struct sl_err *err)
{
    struct api_server *s = calloc(1, sizeof *s);
    if (!s) {
        sl_fail(err, SL_INTERNAL, "out of memory");
        return NULL;
    }
    s->ops = ops;
    s->ctx = ctx;
    s->http = http_create(listen_fd, NULL, handle, s, err);
    if (!s->http) {
        free(s);
        return NULL;
    }
    return s;
}

int api_listen_on(struct api_server *s, int listen_fd, struct sl_err *err)
{
    return http_listen_on(s->http, listen_fd, err);
}

int api_fd(const struct api_server *s)
{
    return http_fd(s->http);
}
int api_timeout_ms(const struct api_server *s)
{
    return http_timeout_ms(s->http);
}
void api_run(struct api_server *s)
{
    http_run(s->http);
}

void api_destroy(struct api_server *s)
{
    if (!s)
        return;
    http_destroy(s->http);
    free(s);
}
