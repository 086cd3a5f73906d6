/*
 * A running agent with its broker on emulated devices, in a run directory of its
 * own, and calls to it.  Assertions are cmocka's.
 */
#ifndef TESTS_AGENT_LIVE_H
#define TESTS_AGENT_LIVE_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

/* Options of live_start(), and a request, not yet closed, that only half a card fits. */
#define TWO_CARDS ((const char *const[]){ "--emulate", "a100-80g:2", NULL })
#define HALF      "{\"mem\":{\"request\":51539607552},\"compute\":{\"request\":300}"

struct live {
    char dir[64], sock[80];
    pid_t agent;
};

void live_init(struct live *l);
/* Start it and wait until it answers; more arguments, NULL-terminated.  Returns what it
 * said through --ready-fd. */
const char *live_start(struct live *l, const char *const *more);
/* The same of one that must: else the test fails with what it said. */
void live_must_start(struct live *l, const char *const *more);
/* Signal and reap; returns the exit status, or 128 + signal. */
int live_stop(struct live *l, int sig);
/* Down by force, and the directory away. */
void live_finish(struct live *l);

/* HTTP status; *out (may be NULL) is the body, problem or not; the caller's.  `body` is
 * JSON text or NULL. */
int live_call(struct live *l, const char *method, const char *path, const char *body,
              json_t **out);
/* The same by another process, as `uid`; live_join() returns its HTTP status. */
pid_t live_call_async(struct live *l, uid_t uid, const char *method, const char *path,
                      const char *body);
int live_join(pid_t caller);

/* "a.b.c" or "a.0.b" as a string, number or null; "" if it is missing.  One buffer. */
const char *live_get(const json_t *j, const char *path);
/* Ask until `path` of the answer is `want`; false after 10 s. */
bool live_until(struct live *l, const char *url, const char *path, const char *want);
/* live_until() of a lease. */
bool live_lease_is(struct live *l, const char *name, const char *key, const char *value);
/* Release it, which must be done. */
void live_release(struct live *l, const char *name);
pid_t live_broker(struct live *l);

#endif
