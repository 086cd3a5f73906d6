/*
 * From a method, a path and a body to one operation: the API without HTTP.  For
 * tests, fuzzers and other transports; api/api.h serves it on a socket.
 */
#ifndef API_DISPATCH_H
#define API_DISPATCH_H

#include "api/api.h"

struct api_query {
    const char *key, *value;
};

struct api_call {
    const char *method, *path; /* path unescaped, without the query */
    const struct api_query *query;
    unsigned query_count;
    const char *body;
    size_t body_len;
    struct api_caller caller;
};

struct api_reply {
    int status;
    const char *type;  /* "application/json" */
    const char *allow; /* with 405, else NULL */
    const char *body;
    size_t body_len;
};

/*
 * Call the operation that the call names, or answer with what is wrong.  `reply`
 * is called once for each request, now or later (everything in it is borrowed),
 * unless the peer is reported gone before.
 *
 * *pending is the request while it waits for its answer, NULL once it was
 * answered; the call's strings need not outlive this function.
 */
void api_dispatch(const struct api_ops *ops, void *ctx, const struct api_call *call,
                  void (*reply)(void *reply_ctx, const struct api_reply *reply),
                  void *reply_ctx, struct api_request **pending);

/* The peer of a pending request went away. */
void api_gone(struct api_request *r);

/* The OpenAPI 3.1 description of the routes; NULL when out of memory. */
json_t *api_openapi(void);

#endif
