/* The HTTP server inside somebody's loop: one epoll descriptor for all of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "conn.h"
#include "core/macros.h"

#define EVENTS_MAX        64
#define EXPIRE_EVERY_MS   1000
#define ROOT_CONNECTIONS  1024        /* beyond what the others may have */
#define CONNECTION_MEMORY (32 * 1024) /* bounds the headers too */

const struct http_limits http_limits_default = {
    .body_bytes = 1 << 20,
    .connections = 1024,
    .per_uid = 256,
    .idle_s = 30,
    .request_s = 60,
};

/* Libraries are silent. */
static void no_log(void *cls, const char *fmt, va_list ap) {}

static int add_fd(struct http_server *s, int fd, void *tag)
{
    struct epoll_event ev = { .events = EPOLLIN, .data.ptr = tag };
    return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &ev);
}

static struct MHD_Daemon *start_daemon(struct http_server *s)
{
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
        http_on_data, s, MHD_OPTION_EXTERNAL_LOGGER, no_log, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, http_on_completed, s, MHD_OPTION_NOTIFY_CONNECTION,
        conn_notify, s, MHD_OPTION_CONNECTION_TIMEOUT, s->limits.idle_s,
        MHD_OPTION_CONNECTION_LIMIT, s->limits.connections + ROOT_CONNECTIONS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY, MHD_OPTION_END);
}

struct http_server *http_create(int listen_fd, const struct http_limits *limits,
                                void (*handle)(void *ctx, struct http_request *r),
                                void *ctx, struct sl_err *err)
{
    struct http_server *s = calloc(1, sizeof *s);
    if (!s) {
        sl_fail(err, SL_INTERNAL, "out of memory");
        return NULL;
    }
    s->limits = limits ? *limits : http_limits_default;
    s->handle = handle;
    s->ctx = ctx;
    s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    /* our own descriptor of the same socket: the caller's stays the caller's */
    s->listen_fd = fcntl(listen_fd, F_DUPFD_CLOEXEC, 0);
    s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (s->listen_fd >= 0)
        fcntl(s->listen_fd, F_SETFL, fcntl(s->listen_fd, F_GETFL) | O_NONBLOCK);
    if (s->listen_fd >= 0 && s->epoll_fd >= 0 && add_fd(s, s->listen_fd, s) == 0)
        s->daemon = start_daemon(s);
    const union MHD_DaemonInfo *info =
        s->daemon ? MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (!info || add_fd(s, info->epoll_fd, NULL) < 0) {
        sl_fail_sys(err, SL_IO, errno, "start the HTTP server");
        http_destroy(s);
        return NULL;
    }
    return s;
}

int http_listen_on(struct http_server *s, int listen_fd, struct sl_err *err)
{
    if (fcntl(listen_fd, F_SETFL, fcntl(listen_fd, F_GETFL) | O_NONBLOCK) < 0 ||
        epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, s->listen_fd, NULL) < 0 ||
        dup3(listen_fd, s->listen_fd, O_CLOEXEC) < 0 || add_fd(s, s->listen_fd, s) < 0)
        return sl_fail_sys(err, SL_IO, errno, "listen on another socket");
    return 0;
}

int http_fd(const struct http_server *s)
{
    return s->epoll_fd;
}

int http_timeout_ms(const struct http_server *s)
{
    MHD_UNSIGNED_LONG_LONG ms;
    /* without a listening socket of its own, libmicrohttpd 0.9.75 does not make its
     * descriptor readable when a connection is resumed */
    if (s->resumed)
        return 0;
    uint64_t least = s->conns ? EXPIRE_EVERY_MS : UINT64_MAX;
    if (MHD_get_timeout(s->daemon, &ms) == MHD_YES)
        least = min_u64(least, ms);
    return least == UINT64_MAX ? -1 : (int)min_u64(least, INT32_MAX);
}

void http_run(struct http_server *s)
{
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(s->epoll_fd, events, EVENTS_MAX, 0);
    for (int i = 0; i < count; i++) {
        void *tag = events[i].data.ptr;
        if (tag == s)
            conn_accept(s);
        else if (tag && ((struct http_conn *)tag)->watched)
            http_request_gone(((struct http_conn *)tag)->watched);
    }
    s->resumed = false;
    MHD_run(s->daemon);
    conn_expire(s);
}

void http_destroy(struct http_server *s)
{
    if (!s)
        return;
    if (s->daemon) {
        /* libmicrohttpd does not stop while a connection is suspended */
        http_abandon_all(s);
        MHD_run(s->daemon);
        MHD_stop_daemon(s->daemon);
    }
    http_forget_all(s);
    conn_free_all(s);
    if (s->epoll_fd >= 0)
        close(s->epoll_fd);
    if (s->listen_fd >= 0)
        close(s->listen_fd);
    if (s->spare_fd >= 0)
        close(s->spare_fd);
    free(s);
}
