/* Connections: who they are, how many there may be, and how long they may be silent. */
#include "conn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/clock.h"
#include "os/sock.h"

#define ACCEPT_BATCH 64 /* then the open ones have their turn */

#define BUSY                                                              \
    "{\"type\":\"about:blank\",\"title\":\"unavailable\",\"status\":503," \
    "\"detail\":\"too many connections\",\"code\":\"unavailable\","       \
    "\"who\":\"caller: close some\"}"

/* One try: who does not read must not hold us. */
static void say_busy(int fd)
{
    char text[512];
    int len = snprintf(text, sizeof text,
                       "HTTP/1.1 503 Service Unavailable\r\n"
                       "Content-Type: application/problem+json\r\n"
                       "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                       strlen(BUSY), BUSY);
    send(fd, text, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void conn_free(struct http_conn *c)
{
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    free(c);
}

void conn_free_all(struct http_server *s)
{
    while (s->conns)
        conn_free(s->conns);
}

static struct http_conn *find_fd(struct http_server *s, int fd)
{
    struct http_conn *c = s->conns;
    while (c && c->fd != fd)
        c = c->next;
    return c;
}

static bool has_room_for(const struct http_server *s, uid_t uid)
{
    unsigned of_uid = 0, others = 0;
    if (uid == 0)
        return true;
    for (const struct http_conn *c = s->conns; c; c = c->next) {
        of_uid += c->peer.uid == uid;
        others += c->peer.uid != 0;
    }
    return of_uid < s->limits.per_uid && others < s->limits.connections;
}

/* Takes fd. */
static void admit(struct http_server *s, int fd)
{
    struct ucred peer;
    struct sockaddr_un none = { .sun_family = AF_UNIX };

    if (sock_peer(fd, &peer, NULL) < 0) {
        close(fd);
        return;
    }
    /* libmicrohttpd may have dropped a socket without a word when out of memory */
    struct http_conn *c = find_fd(s, fd);
    if (c)
        conn_free(c);
    c = has_room_for(s, peer.uid) ? calloc(1, sizeof *c) : NULL;
    if (!c) {
        say_busy(fd);
        close(fd);
        return;
    }
    *c = (struct http_conn){ .fd = fd,
                             .peer = peer,
                             .since_ns = clock_now_ns(),
                             .next = s->conns,
                             .link = &s->conns };
    if (c->next)
        c->next->link = &c->next;
    s->conns = c;
    if (MHD_add_connection(s->daemon, fd, (struct sockaddr *)&none, sizeof none) != MHD_YES)
        conn_free(c);
}

/* Without a free descriptor a waiting connection would keep the loop awake for ever:
 * the spare one is given up to accept it and turn it away. */
static void turn_one_away(struct http_server *s)
{
    close(s->spare_fd);
    int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        close(fd);
    s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void conn_accept(struct http_server *s)
{
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            admit(s, fd);
        else if (errno == EMFILE || errno == ENFILE)
            turn_one_away(s);
        else if (errno != EINTR && errno != ECONNABORTED)
            return;
    }
}

struct http_conn *conn_of(struct http_server *s, struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? find_fd(s, info->connect_fd) : NULL;
}

void conn_notify(void *cls, struct MHD_Connection *mhd, void **socket_context,
                 enum MHD_ConnectionNotificationCode what)
{
    struct http_server *s = cls;
    if (what == MHD_CONNECTION_NOTIFY_STARTED)
        return;
    struct http_conn *c = conn_of(s, mhd);
    if (c)
        conn_free(c);
}

/* No event is asked for: the kernel always tells of a hang-up.  A peer that only shuts
 * down its sending side (EPOLLRDHUP) still wants its answer. */
void conn_watch(struct http_server *s, struct http_conn *c, struct http_request *r)
{
    struct epoll_event ev = { .events = 0, .data.ptr = c };
    c->watched = r;
    epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, c->fd, &ev);
}

void conn_unwatch(struct http_server *s, struct http_conn *c)
{
    c->watched = NULL;
    epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
}

void conn_expire(struct http_server *s)
{
    uint64_t now = clock_now_ns();
    for (struct http_conn *c = s->conns; c; c = c->next) {
        if (!c->busy && now - c->since_ns > s->limits.request_s * NS_PER_S) {
            shutdown(c->fd, SHUT_RDWR); /* libmicrohttpd sees the end and closes */
            c->since_ns = now;
        }
    }
}
