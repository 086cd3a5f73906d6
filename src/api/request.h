/*
 * One request while an operation works on it.  Private to this part.
 */
#ifndef API_REQUEST_H
#define API_REQUEST_H

#include "api/dispatch.h"

struct api_request {
    struct api_caller caller;
    const char *allow; /* for the answer: a 405's */
    void (*reply)(void *reply_ctx, const struct api_reply *reply);
    void *reply_ctx;
    struct api_request **pending; /* while api_dispatch() runs: cleared by an answer */
    bool gone;                    /* nobody waits for the answer */
    void (*cancel)(void *ctx, struct api_request *r);
    void *cancel_ctx;
};

#endif
