/* Requests over libmicrohttpd: reading, handing out, answering now or later. */
#include "wire/http.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "core/clock.h"

/* Two hold a request: libmicrohttpd until its connection is done with it, and the
 * handler until it has answered or was told that the peer is gone. */
struct http_request {
    struct http_server *server;
    struct http_conn *conn; /* NULL likewise */
    struct ucred peer;
    struct MHD_Connection *mhd; /* NULL once libmicrohttpd is done with it */
    char *method, *path;
    struct http_query query[HTTP_QUERY_MAX];
    unsigned query_count;
    char *body;
    size_t body_len, body_room;
    bool too_large, broken;               /* broken: out of memory while reading */
    bool handed_out, suspended, finished; /* finished: the handler is done with it */
    struct MHD_Response *response;
    int status;
    void (*gone)(void *ctx, struct http_request *r);
    void *gone_ctx;
    struct http_request *next, **link; /* the server's list of those handed out */
};

/* ---- life ---- */

static void request_free(struct http_request *r)
{
    if (r->link) {
        *r->link = r->next;
        if (r->next)
            r->next->link = r->link;
    }
    if (r->response)
        MHD_destroy_response(r->response);
    for (unsigned i = 0; i < r->query_count && i < HTTP_QUERY_MAX; i++) {
        free((char *)r->query[i].key);
        free((char *)r->query[i].value);
    }
    free(r->method);
    free(r->path);
    free(r->body);
    free(r);
}

static void request_release(struct http_request *r)
{
    if (!r->mhd && (r->finished || !r->handed_out))
        request_free(r);
}

static enum MHD_Result keep_query(void *cls, enum MHD_ValueKind kind, const char *key,
                                  const char *value)
{
    struct http_request *r = cls;
    if (r->query_count < HTTP_QUERY_MAX) {
        struct http_query *q = &r->query[r->query_count];
        q->key = strdup(key);
        q->value = strdup(value ? value : "");
        if (!q->key || !q->value)
            r->broken = true;
    }
    r->query_count++;
    return MHD_YES;
}

static struct http_request *request_create(struct http_server *s,
                                           struct MHD_Connection *mhd, const char *method,
                                           const char *url)
{
    struct http_request *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->server = s;
    r->method = strdup(method);
    r->path = strdup(url);
    r->body = calloc(1, 1);
    MHD_get_connection_values(mhd, MHD_GET_ARGUMENT_KIND, keep_query, r);
    if (!r->method || !r->path || !r->body || r->broken) {
        request_free(r);
        return NULL;
    }
    r->mhd = mhd;
    return r;
}

/* ---- reading ---- */

static void body_add(struct http_request *r, const char *data, size_t len)
{
    if (r->too_large || r->broken)
        return;
    if (len > r->server->limits.body_bytes - r->body_len) {
        r->too_large = true;
        return;
    }
    size_t need = r->body_len + len + 1;
    if (need > r->body_room) {
        size_t room = r->body_room * 2 > need ? r->body_room * 2 : need;
        char *body = realloc(r->body, room);
        if (!body) {
            r->broken = true;
            return;
        }
        r->body = body;
        r->body_room = room;
    }
    memcpy(r->body + r->body_len, data, len);
    r->body_len += len;
    r->body[r->body_len] = '\0';
}

static bool announces_too_much(const struct http_request *r)
{
    const char *text = MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND,
                                                   MHD_HTTP_HEADER_CONTENT_LENGTH);
    return text && strtoull(text, NULL, 10) > r->server->limits.body_bytes;
}

static enum MHD_Result send_plain(struct MHD_Connection *mhd, int status,
                                  const char *problem)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        strlen(problem), (void *)problem, MHD_RESPMEM_PERSISTENT);
    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, "Content-Type", "application/problem+json");
    enum MHD_Result sent = MHD_queue_response(mhd, (unsigned)status, response);
    MHD_destroy_response(response);
    return sent;
}

#define TOO_LARGE                                                                      \
    "{\"type\":\"about:blank\",\"title\":\"too-large\",\"status\":413,"                \
    "\"detail\":\"the body is larger than this server takes\",\"code\":\"too-large\"," \
    "\"who\":\"caller\"}"

static enum MHD_Result send_ready(struct http_request *r)
{
    return MHD_queue_response(r->mhd, (unsigned)r->status, r->response);
}

static enum MHD_Result hand_out(struct http_request *r)
{
    struct http_server *s = r->server;
    r->handed_out = true;
    r->next = s->open;
    r->link = &s->open;
    if (r->next)
        r->next->link = &r->next;
    s->open = r;
    r->conn->busy = true;

    s->handle(s->ctx, r);
    if (r->response)
        return send_ready(r);
    if (r->finished) /* answered, but out of memory */
        return MHD_NO;
    r->suspended = true;
    conn_watch(s, r->conn, r);
    MHD_suspend_connection(r->mhd);
    return MHD_YES;
}

enum MHD_Result http_on_data(void *cls, struct MHD_Connection *mhd, const char *url,
                             const char *method, const char *version, const char *data,
                             size_t *data_len, void **req)
{
    struct http_server *s = cls;
    struct http_request *r = *req;

    if (!r) {
        r = request_create(s, mhd, method, url);
        if (!r)
            return MHD_NO;
        *req = r;
        r->conn = conn_of(s, mhd);
        if (!r->conn)
            return MHD_NO;
        r->peer = r->conn->peer;
        if (announces_too_much(r))
            return send_plain(mhd, 413, TOO_LARGE);
        return MHD_YES;
    }
    if (*data_len) {
        body_add(r, data, *data_len);
        *data_len = 0;
        return MHD_YES;
    }
    if (r->handed_out)
        return r->response ? send_ready(r) : MHD_NO;
    if (r->broken)
        return MHD_NO;
    return r->too_large ? send_plain(mhd, 413, TOO_LARGE) : hand_out(r);
}

void http_on_completed(void *cls, struct MHD_Connection *mhd, void **req,
                       enum MHD_RequestTerminationCode how)
{
    struct http_request *r = *req;
    if (!r)
        return;
    *req = NULL;
    r->mhd = NULL;
    if (r->conn) {
        r->conn->busy = false;
        r->conn->since_ns = clock_now_ns();
        r->conn = NULL;
    }
    request_release(r);
}

/* ---- answering ---- */

static struct MHD_Response *make_response(const char *type, const char *allow,
                                          const void *body, size_t len)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(len, (void *)body, MHD_RESPMEM_MUST_COPY);
    if (response && ((type && !MHD_add_response_header(response, "Content-Type", type)) ||
                     (allow && !MHD_add_response_header(response, "Allow", allow)))) {
        MHD_destroy_response(response);
        return NULL;
    }
    return response;
}

/* Back to libmicrohttpd, which sends what there is or closes the connection. */
static void resume(struct http_request *r)
{
    if (!r->suspended)
        return;
    r->suspended = false;
    conn_unwatch(r->server, r->conn);
    MHD_resume_connection(r->mhd);
    r->server->resumed = true;
}

void http_answer(struct http_request *r, int status, const char *type, const char *allow,
                 const void *body, size_t len)
{
    r->finished = true;
    if (!r->mhd) { /* the peer went away and nobody wanted to know */
        request_release(r);
        return;
    }
    r->status = status;
    r->response = make_response(type, allow, body, len);
    resume(r);
}

void http_on_gone(struct http_request *r, void (*gone)(void *ctx, struct http_request *r),
                  void *ctx)
{
    r->gone = gone;
    r->gone_ctx = ctx;
}

/* The peer of a suspended request hung up. */
void http_request_gone(struct http_request *r)
{
    if (r->gone) {
        r->finished = true;
        r->gone(r->gone_ctx, r);
    }
    resume(r);
}

void http_abandon_all(struct http_server *s)
{
    struct http_request *r = s->open;
    while (r) {
        bool told = r->suspended;
        if (told)
            http_request_gone(r);
        r = told ? s->open : r->next; /* the callback may have answered others */
    }
}

/* What nobody answered yet outlives the server. */
void http_forget_all(struct http_server *s)
{
    struct http_request *next;
    for (struct http_request *r = s->open; r; r = next) {
        next = r->next;
        r->next = NULL;
        r->link = NULL;
    }
}

const char *http_method(const struct http_request *r)
{
    return r->method;
}
const char *http_path(const struct http_request *r)
{
    return r->path;
}
const struct ucred *http_peer(const struct http_request *r)
{
    return &r->peer;
}

const char *http_body(const struct http_request *r, size_t *len)
{
    *len = r->body_len;
    return r->body;
}

const struct http_query *http_query(const struct http_request *r, unsigned *count)
{
    *count = r->query_count;
    return r->query;
}
