/* The one agent of a test program: started for each test, ended after it. */
#ifndef TESTS_AGENT_LIVE_ONE_H
#define TESTS_AGENT_LIVE_ONE_H

#include "live.h"

static struct live l;

static int setup(void **state)
{
    live_init(&l);
    return 0;
}

static int teardown(void **state)
{
    live_finish(&l);
    return 0;
}

static void start(const char *const *more)
{
    live_must_start(&l, more);
}

static int ask(const char *body, json_t **out)
{
    return live_call(&l, "POST", "/v1/leases", body, out);
}

#endif
