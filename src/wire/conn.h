/*
 * Connections of the HTTP edge: accepting within the bounds, deadlines, and the
 * notice that a waiting peer hung up.  Private to this part.
 *
 * We accept ourselves and hand the socket to libmicrohttpd, so that SO_PEERCRED
 * is known before anything is allocated for a client.  libmicrohttpd closes it.
 */
#ifndef WIRE_CONN_H
#define WIRE_CONN_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "wire/http.h"

struct http_conn {
    int fd;
    struct ucred peer;
    uint64_t since_ns;            /* when it began to owe us a request */
    bool busy;                    /* a request of it is being answered */
    struct http_request *watched; /* suspended, and its peer is watched */
    struct http_conn *next, **link;
};

struct http_server {
    struct http_limits limits;
    struct MHD_Daemon *daemon;
    int epoll_fd, listen_fd, spare_fd;
    void (*handle)(void *ctx, struct http_request *r);
    void *ctx;
    struct http_conn *conns;
    struct http_request *open; /* handed out */
    bool resumed;              /* since the last run: an answer waits to be sent */
};

/* Accept what waits, within the bounds. */
void conn_accept(struct http_server *s);
/* The connection behind libmicrohttpd's; NULL if it is not one of ours. */
struct http_conn *conn_of(struct http_server *s, struct MHD_Connection *mhd);
/* libmicrohttpd's notice that a connection begins or ends. */
void conn_notify(void *cls, struct MHD_Connection *mhd, void **socket_context,
                 enum MHD_ConnectionNotificationCode what);
void conn_watch(struct http_server *s, struct http_conn *c, struct http_request *r);
void conn_unwatch(struct http_server *s, struct http_conn *c);
/* Cut those that owe a request for too long. */
void conn_expire(struct http_server *s);
void conn_free_all(struct http_server *s);

/* http.c: the peer of a watched request hung up. */
void http_request_gone(struct http_request *r);
/* http.c: all that are handed out count as gone. */
void http_abandon_all(struct http_server *s);
void http_forget_all(struct http_server *s);

/* Callbacks of http.c for server.c. */
enum MHD_Result http_on_data(void *cls, struct MHD_Connection *mhd, const char *url,
                             const char *method, const char *version, const char *data,
                             size_t *data_len, void **req);
void http_on_completed(void *cls, struct MHD_Connection *mhd, void **req,
                       enum MHD_RequestTerminationCode how);

#endif
