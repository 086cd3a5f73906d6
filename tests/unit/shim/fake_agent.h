/*
 * A FAKE agent for the tests of the shim and of `sluice run`: a process on
 * agent.sock that says yes to everything and writes down what it was asked.  It
 * places nothing, holds nothing and enforces nothing.
 */
#ifndef TEST_FAKE_AGENT_H
#define TEST_FAKE_AGENT_H

#include <stdbool.h>
#include <sys/types.h>

struct fake_agent {
    char dir[64]; /* the run directory; removed by fake_stop() */
    pid_t pid;
};

/* "no room" etc.: the whole answer (status line to body) to POST /v1/leases;
 * NULL: 201 with a lease L7. */
void fake_start(struct fake_agent *a, const char *lease_answer);
void fake_kill(struct fake_agent *a); /* the agent dies, the directory stays */
void fake_restart(struct fake_agent *a);
void fake_stop(struct fake_agent *a);

/* All requests so far, "POST /v1/leases/L7/anchor {…}\n…"; static memory. */
const char *fake_requests(const struct fake_agent *a);
/* Wait (up to 10 s) until the requests contain `text`. */
bool fake_saw(const struct fake_agent *a, const char *text);

#endif
