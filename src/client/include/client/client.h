/*
 * The client of the HTTP API: one call, one answer, over the agent's Unix
 * socket.  Blocking; one thread at a time per client.
 */
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

#include <jansson.h>
#include <stdint.h>

#include "core/err.h"

struct client;

/* Does not connect yet.  `socket_path` is copied. */
struct client *client_create(const char *socket_path, struct sl_err *err);
void client_destroy(struct client *c);

/*
 * Returns 0 and, if `out` is not NULL, the decoded body (owned by the caller).
 * A problem+json answer becomes its code with its detail in err; the problem
 * itself is left in *problem if that is not NULL (alternatives and so on).
 * -SL_UNAVAILABLE: nobody listens.  timeout_ms 0: for ever.
 */
int client_call(struct client *c, const char *method, const char *path, const json_t *body,
                uint64_t timeout_ms, json_t **out, json_t **problem, struct sl_err *err);

/* As client_call() for a text body; owned by the caller (free). */
int client_get_text(struct client *c, const char *path, char **out, size_t *len,
                    struct sl_err *err);

#endif
