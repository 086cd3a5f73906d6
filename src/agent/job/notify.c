/* One HTTP request on the agent's socket and its answer. */
#include "notify.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "os/sock.h"

#define REPLY_MAX 65536

static int send_all(int fd, const char *text, size_t len, struct sl_err *err)
{
    while (len) {
        ssize_t n = send(fd, text, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return sl_fail_sys(err, SL_UNAVAILABLE, errno, "agent");
        text += n;
        len -= (size_t)n;
    }
    return 0;
}

/* Until the peer closes, as "Connection: close" asks it to. */
static int receive_all(int fd, char *out, size_t size, struct sl_err *err)
{
    size_t used = 0;
    for (;;) {
        ssize_t n = recv(fd, out + used, size - 1 - used, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return sl_fail_sys(err, SL_UNAVAILABLE, errno, "agent");
        used += (size_t)n;
        if (n == 0 || used == size - 1)
            break;
    }
    out[used] = 0;
    return 0;
}

/* A problem's own code and detail, or what the status line says. */
static int explain(int http_status, const char *reply, struct sl_err *err)
{
    const char *body = strstr(reply, "\r\n\r\n");
    const char *brace = body ? strchr(body, '{') : NULL;
    AUTO_JSON json_t *problem =
        brace ? json_loads(brace, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    const char *code = json_string_value(json_object_get(problem, "code"));
    const char *detail = json_string_value(json_object_get(problem, "detail"));
    if (code)
        return sl_fail(err, sl_code_parse(code), "%s", detail ? detail : code);
    return sl_fail(err, SL_PROTOCOL, "the agent answered %d without a reason", http_status);
}

static int post(const struct rundir *run, const char *lease, const char *verb,
                const char *key, int value, uint64_t timeout_ms, struct sl_err *err)
{
    char path[128];
    int rc = rundir_path(run, "agent.sock", path, sizeof path, err);
    if (rc < 0)
        return rc;
    AUTO_CLOSE int fd = sock_connect_unix(path, SOCK_STREAM, err);
    if (fd < 0)
        return fd;
    struct timeval limit = { .tv_sec = (time_t)(timeout_ms / 1000),
                             .tv_usec = (suseconds_t)(timeout_ms % 1000 * 1000) };
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);

    char body[64], request[320];
    int body_len = snprintf(body, sizeof body, "{\"%s\":%d}", key, value);
    int len = snprintf(request, sizeof request,
                       "POST /v1/leases/%s/%s HTTP/1.1\r\nHost: localhost\r\n"
                       "Content-Type: application/json\r\nContent-Length: %d\r\n"
                       "Connection: close\r\n\r\n%s",
                       lease, verb, body_len, body);
    AUTO_FREE char *reply = malloc(REPLY_MAX);
    if (!reply)
        return sl_fail(err, SL_INTERNAL, "out of memory");
    if ((rc = send_all(fd, request, (size_t)len, err)) < 0 ||
        (rc = receive_all(fd, reply, REPLY_MAX, err)) < 0)
        return rc;
    int http_status = 0;
    if (sscanf(reply, "HTTP/1.%*d %d", &http_status) != 1)
        return sl_fail(err, SL_UNAVAILABLE, "the agent closed without an answer");
    return http_status >= 200 && http_status < 300 ? 0 : explain(http_status, reply, err);
}

int notify_anchor(const struct rundir *run, const char *lease, pid_t child,
                  uint64_t timeout_ms, struct sl_err *err)
{
    return post(run, lease, "anchor", "child_pid", child, timeout_ms, err);
}

int notify_exit(const struct rundir *run, const char *lease, int exit_status,
                uint64_t timeout_ms, struct sl_err *err)
{
    return post(run, lease, "exit", "exit_status", exit_status, timeout_ms, err);
}
