/*
 * The HTTP API, written once: routes, JSON and problem+json over a table of
 * operations.  The agent fills the table for one node; the pool's server fills
 * it for all of them.
 *
 * Everything runs on the loop's thread.  An operation answers at once, or keeps
 * the `struct api_request` and answers later (a lease that waits for room).
 *
 *   GET    /v1/node                 what this is: versions, grades, broker, run directory
 *   DELETE /v1/node[?force=1]       `sluice down`: agent and broker end; 409 with "leases"
 *                                   while leases live; forced, they are released first
 *   GET    /v1/devices              {"devices":[…]}
 *   GET    /v1/leases[?all=1]       {"leases":[…]}
 *   POST   /v1/leases[?dry_run=1]   lease request (+ "command") -> 201 lease, or 200 plan
 *   GET    /v1/leases/{id}          id or name
 *   PATCH  /v1/leases/{id}          resize -> {"lease":…,"acknowledged":bool,"over_bytes":n}
 *   DELETE /v1/leases/{id}          release -> 200 lease; ends its processes
 *   POST   /v1/leases/{id}/anchor   {"child_pid":n}; the caller is the shim
 *   POST   /v1/leases/{id}/exit     {"exit_status":n}; the caller is the shim
 *   GET    /v1/jobs[?all=1]         {"jobs":[…]}: leases that have a command
 *   DELETE /v1/jobs                 {"removed":n}: the caller's ended ones, with their logs
 *   POST   /v1/jobs                 submit: {"lease":request,"argv","env","cwd","umask"}
 *   GET    /v1/jobs/{id}            with exit status
 *   GET    /v1/jobs/{id}/log        text/plain
 *   DELETE /v1/jobs/{id}            end the job, release its lease
 *
 * Errors are application/problem+json:
 * {"type","title","status","detail","code","who"}; `code` is core/err.h's wire name.
 */
#ifndef API_API_H
#define API_API_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "core/err.h"
#include "model/lease.h"

struct api_caller {
    pid_t pid;
    uid_t uid;
    gid_t gid;
};

struct api_request; /* one HTTP request that waits for its answer */

/* Each request is answered exactly once, now or later, from the loop's thread.
 * json is taken.  Answering a request whose peer went away does nothing. */
void api_answer(struct api_request *r, int http_status, json_t *json);
void api_answer_text(struct api_request *r, const char *text, size_t len);
void api_fail(struct api_request *r, const struct sl_err *err);
/* As api_fail(), with more members merged into the problem (taken). */
void api_fail_with(struct api_request *r, const struct sl_err *err, json_t *members);

struct api_caller api_request_caller(const struct api_request *r);

/* Called once if the peer goes away before the answer; it must forget r. */
void api_on_cancel(struct api_request *r, void (*cancel)(void *ctx, struct api_request *r),
                   void *ctx);

struct api_ops {
    void (*node)(void *ctx, struct api_request *r);
    void (*shutdown)(void *ctx, struct api_request *r, bool force);
    void (*list_devices)(void *ctx, struct api_request *r);
    void (*list_leases)(void *ctx, struct api_request *r, bool all);
    void (*get_lease)(void *ctx, struct api_request *r, const char *id);
    void (*create_lease)(void *ctx, struct api_request *r, const struct lease_request *q,
                         const char *command, bool dry_run);
    void (*resize_lease)(void *ctx, struct api_request *r, const char *id,
                         const json_t *patch);
    void (*release_lease)(void *ctx, struct api_request *r, const char *id);
    void (*anchor_lease)(void *ctx, struct api_request *r, const char *id, pid_t child);
    void (*exit_lease)(void *ctx, struct api_request *r, const char *id, int exit_status);
    void (*list_jobs)(void *ctx, struct api_request *r, bool all);
    void (*clear_jobs)(void *ctx, struct api_request *r);
    void (*submit_job)(void *ctx, struct api_request *r, const struct lease_request *q,
                       const json_t *job);
    void (*job_log)(void *ctx, struct api_request *r, const char *id);
};

struct api_server;

/* Serve on a listening Unix socket, which stays the caller's (a copy of the
 * descriptor is used).  Destroying counts open requests as gone.  The loop polls
 * api_fd() for reading and calls api_run() when it is ready, and no later than
 * api_timeout_ms(). */
struct api_server *api_create(int listen_fd, const struct api_ops *ops, void *ctx,
                              struct sl_err *err);
/* Take new connections from this socket instead, as of api_create(); those open stay. */
int api_listen_on(struct api_server *s, int listen_fd, struct sl_err *err);
int api_fd(const struct api_server *s);
int api_timeout_ms(const struct api_server *s); /* -1: none */
void api_run(struct api_server *s);
void api_destroy(struct api_server *s);

#endif
