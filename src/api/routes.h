/*
 * The table of routes.  From a row come dispatch, 404 and 405, and OpenAPI.
 * Private to this part.
 */
#ifndef API_ROUTES_H
#define API_ROUTES_H

#include "request.h"

#define SEGMENTS_MAX 6
#define ID_SIZE      64

/* What a route's handler gets: everything is checked but the body's meaning. */
struct route_args {
    const struct api_ops *ops;
    void *ctx;
    struct api_request *r;
    char id[ID_SIZE]; /* "" where the pattern has no {id} */
    bool flag;        /* the value of the row's query key */
    json_t *body;     /* an object, where the row wants one; borrowed */
};

struct route {
    const char *method, *pattern;
    void (*handle)(const struct route_args *args);
    const char *flag; /* the one query key it takes, a boolean; or NULL */
    bool has_body;
    const char *name, *summary; /* OpenAPI's operationId and summary */
};

extern const struct route routes[];
extern const size_t route_count;

#endif
