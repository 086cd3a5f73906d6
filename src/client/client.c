/* The client: one HTTP call over the agent's Unix socket, and its errors as ours. */
#include "client/client.h"

#include <curl/curl.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "core/macros.h"

#define ANSWER_MAX         (64u << 20)
#define CONNECT_TIMEOUT_MS 10000L

struct client {
    CURL *curl;
    char socket_path[sizeof((struct sockaddr_un){ 0 }.sun_path)];
};

struct answer {
    struct buf body;
    bool too_large;
    long status;
};

struct client *client_create(const char *socket_path, struct sl_err *err)
{
    struct client *c = calloc(1, sizeof *c);
    if (!c) {
        sl_fail(err, SL_INTERNAL, "out of memory");
        return NULL;
    }
    if (strlen(socket_path) >= sizeof c->socket_path) {
        sl_fail(err, SL_INVALID,
                "socket path %.60s… has %zu bytes, at most %zu fit: choose a shorter run "
                "directory",
                socket_path, strlen(socket_path), sizeof c->socket_path - 1);
        client_destroy(c);
        return NULL;
    }
    strcpy(c->socket_path, socket_path);
    c->curl = curl_easy_init();
    if (!c->curl) {
        sl_fail(err, SL_INTERNAL, "libcurl: out of memory");
        client_destroy(c);
        return NULL;
    }
    return c;
}

void client_destroy(struct client *c)
{
    if (!c)
        return;
    curl_easy_cleanup(c->curl);
    free(c);
}

static size_t take_body(char *data, size_t size, size_t count, void *ctx)
{
    struct answer *a = ctx;
    size_t len = size * count;
    if (len > ANSWER_MAX - a->body.len) {
        a->too_large = true;
        return 0;
    }
    buf_add_bytes(&a->body, data, len);
    return buf_failed(&a->body) ? 0 : len;
}

/* A peer that goes away must not end our caller: SIGPIPE is blocked for the call, and
 * taken back if it came. */
static CURLcode perform_without_sigpipe(CURL *curl)
{
    sigset_t pipe_only, before, pending;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigpending(&pending);
    bool was_pending = sigismember(&pending, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
    CURLcode rc = curl_easy_perform(curl);
    if (!was_pending)
        while (sigtimedwait(&pipe_only, NULL, &(struct timespec){ 0 }) < 0 &&
               errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

static int curl_failed(const struct client *c, CURLcode rc, const struct answer *a,
                       struct sl_err *err)
{
    if (a->too_large)
        return sl_fail(err, SL_TOO_LARGE, "the answer is larger than %u MiB",
                       ANSWER_MAX >> 20);
    if (buf_failed(&a->body) || rc == CURLE_OUT_OF_MEMORY)
        return sl_fail(err, SL_INTERNAL, "out of memory");
    switch (rc) {
    case CURLE_COULDNT_CONNECT: {
        long sys = 0;
        curl_easy_getinfo(c->curl, CURLINFO_OS_ERRNO, &sys);
        if (sys == EACCES || sys == EPERM)
            return sl_fail_sys(err, SL_DENIED, (int)sys, "connect to %s", c->socket_path);
        return sl_fail(err, SL_UNAVAILABLE, "nobody listens at %s", c->socket_path);
    }
    case CURLE_OPERATION_TIMEDOUT:
        return sl_fail(err, SL_TIMEOUT, "no answer from %s in time", c->socket_path);
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_PARTIAL_FILE:
        return sl_fail(err, SL_UNAVAILABLE, "%s went away in the middle of the call",
                       c->socket_path);
    default:
        return sl_fail(err, SL_PROTOCOL, "%s: %s", c->socket_path, curl_easy_strerror(rc));
    }
}

/* The proxy variables of the environment are not meant for a socket on this machine. */
static void set_options(struct client *c, const char *method, const char *url,
                        const char *body, uint64_t timeout_ms, struct curl_slist *headers,
                        struct answer *out)
{
    CURL *curl = c->curl;
    curl_easy_reset(curl);
    curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, c->socket_path);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http");
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    /* a call on a kept connection may be sent twice when that one died; a new one costs
     * less than a lease too many */
    curl_easy_setopt(curl, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)min_u64(timeout_ms, LONG_MAX));
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, out);
    if (body) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(body));
    }
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
}

static int exchange(struct client *c, const char *method, const char *path,
                    const char *body, uint64_t timeout_ms, struct answer *out,
                    struct sl_err *err)
{
    AUTO_BUF struct buf url = { 0 };
    buf_addf(&url, "http://localhost%s", path);
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    struct curl_slist *more = headers ? curl_slist_append(headers, "Expect:") : NULL;
    if (buf_failed(&url) || !more) {
        curl_slist_free_all(headers);
        return sl_fail(err, SL_INTERNAL, "out of memory");
    }
    set_options(c, method, url.text, body, timeout_ms, headers, out);
    CURLcode rc = perform_without_sigpipe(c->curl);
    curl_slist_free_all(headers);
    if (rc != CURLE_OK)
        return curl_failed(c, rc, out, err);
    curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &out->status);
    return 0;
}

/* For an answer without a code that we know: the first code of that status, but a conflict
 * of an unknown kind is not yet a lack of room. */
static enum sl_code code_of_status(long status)
{
    if (status == 409)
        return SL_CONFLICT;
    for (int code = SL_OK + 1; code < SL_CODE_COUNT; code++)
        if (sl_code_row(code)->http_status == status)
            return code;
    return SL_INTERNAL;
}

/* What an answer with status 400 and more says. */
static int problem_failed(const struct answer *a, json_t **problem, struct sl_err *err)
{
    AUTO_JSON json_t *j = a->body.text ? json_parse(a->body.text, a->body.len, NULL) : NULL;
    const char *name = NULL, *detail = NULL;
    if (j && json_is_object(j)) {
        json_get_str(j, "code", &name, NULL);
        json_get_str(j, "detail", &detail, NULL);
    }
    /* a newer server's code is known by its status at least */
    enum sl_code code = name ? sl_code_parse(name) : SL_INTERNAL;
    if (code == SL_OK || (code == SL_INTERNAL && (!name || strcmp(name, "internal"))))
        code = code_of_status(a->status);
    if (problem)
        *problem = TAKE_PTR(j);
    if (detail)
        return sl_fail(err, code, "%s", detail);
    return sl_fail(err, code, "the agent answered with status %ld", a->status);
}

int client_call(struct client *c, const char *method, const char *path, const json_t *body,
                uint64_t timeout_ms, json_t **out, json_t **problem, struct sl_err *err)
{
    struct answer a = { 0 };
    json_t *decoded = NULL;

    if (problem)
        *problem = NULL;
    AUTO_FREE char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    if (body && !text)
        return sl_fail(err, SL_INTERNAL, "out of memory");
    int rc = exchange(c, method, path, text, timeout_ms, &a, err);
    if (rc == 0 && a.status >= 400) {
        rc = problem_failed(&a, problem, err);
    } else if (rc == 0 && out) {
        decoded = a.body.len ? json_parse(a.body.text, a.body.len, err) : json_null();
        if (!decoded) {
            if (err)
                err->code = SL_PROTOCOL;
            sl_prefix(err, "the agent's answer");
            rc = -SL_PROTOCOL;
        }
    }
    buf_finish(&a.body);
    if (rc == 0 && out)
        *out = decoded;
    return rc;
}

int client_get_text(struct client *c, const char *path, char **out, size_t *len,
                    struct sl_err *err)
{
    struct answer a = { 0 };
    int rc = exchange(c, "GET", path, NULL, 0, &a, err);
    if (rc == 0 && a.status >= 400)
        rc = problem_failed(&a, NULL, err);
    if (rc < 0) {
        buf_finish(&a.body);
        return rc;
    }
    size_t have = a.body.len;
    char *text = buf_take(&a.body);
    if (!text)
        return sl_fail(err, SL_INTERNAL, "out of memory");
    *out = text;
    if (len)
        *len = have;
    return 0;
}
