/*
 * The HTTP edge of a server on a Unix socket: connections, limits and late
 * answers.  It knows no routes and no JSON.
 *
 * Everything runs on the thread of the caller's loop, which polls http_fd()
 * for reading and calls http_run() when it is ready, and no later than
 * http_timeout_ms().  There are no threads.
 *
 * No client can hold the others: connections are counted per uid (SO_PEERCRED,
 * taken when the connection is accepted), a body has a largest size, and a
 * connection that does not bring a whole request in time is closed.  The bound
 * per uid does not apply to root.
 */
#ifndef WIRE_HTTP_H
#define WIRE_HTTP_H

#include <stddef.h>
#include <sys/socket.h>

#include "core/err.h"

struct http_server;

/* One request with its whole body.  Lives until it is answered, or until `gone`
 * of http_on_gone() was called. */
struct http_request;

struct http_limits {
    size_t body_bytes;    /* more: 413 */
    unsigned connections; /* in all, root's not counted; more: 503 */
    unsigned per_uid;
    unsigned idle_s;    /* a connection on which nothing moves */
    unsigned request_s; /* from the connection (or the last answer) to a whole request */
};

/* 1 MiB, 1024, 256, 30 s, 60 s. */
extern const struct http_limits http_limits_default;

/* The handler answers r now or later, exactly once.  listen_fd stays the caller's. */
struct http_server *http_create(int listen_fd, const struct http_limits *limits,
                                void (*handle)(void *ctx, struct http_request *r),
                                void *ctx, struct sl_err *err);
/* Take new connections from this socket instead; it stays the caller's, as above. */
int http_listen_on(struct http_server *s, int listen_fd, struct sl_err *err);
int http_fd(const struct http_server *s);
int http_timeout_ms(const struct http_server *s); /* -1: none */
void http_run(struct http_server *s);
/* Open requests count as gone. */
void http_destroy(struct http_server *s);

/* Borrowed from the request. */
const char *http_method(const struct http_request *r);
const char *http_path(const struct http_request *r); /* unescaped, without the query */
const char *http_body(const struct http_request *r, size_t *len); /* NUL-terminated */
const struct ucred *http_peer(const struct http_request *r);

#define HTTP_QUERY_MAX 8

struct http_query {
    const char *key, *value; /* value "" where there is none */
};
/* *count may be larger than HTTP_QUERY_MAX: only so many are kept. */
const struct http_query *http_query(const struct http_request *r, unsigned *count);

/* body is copied.  allow: the Allow header of a 405, else NULL. */
void http_answer(struct http_request *r, int status, const char *type, const char *allow,
                 const void *body, size_t len);

/* Called once if the peer goes away before the answer; r is dead afterwards.  Without
 * it, r lives until it is answered, which then goes nowhere. */
void http_on_gone(struct http_request *r, void (*gone)(void *ctx, struct http_request *r),
                  void *ctx);

#endif
