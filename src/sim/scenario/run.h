/* A scenario while it runs: virtual time, the core, and what became of each job.  Private. */
#ifndef SCENARIO_RUN_H
#define SCENARIO_RUN_H

#include "scenario_impl.h"
#include "sim/agenda.h"

enum job_state {
    JOB_NEW,
    JOB_REFUSED,
    JOB_WAITS, /* nominated ones, too */
    JOB_RUNS,
    JOB_LEAVES,
    JOB_OVER,
};

struct job {
    enum job_state state;
    const struct submission *sub;
    uint64_t since_ms;          /* in this state */
    uint64_t waited_ms, ran_ms; /* before that */
    uint32_t epoch;             /* of its state: a timer that is older is void */
    bool evicted;
    uint32_t by; /* … for this one, last */
    enum sched_rule rule;
    uint32_t node; /* that it runs on, the first of a gang */
};

enum timer_kind {
    TIMER_SUBMIT, /* the next of a set */
    TIMER_DONE,   /* it has run its time */
    TIMER_GONE,   /* it went, as it was told */
};

struct run {
    const struct scenario *s;
    struct sched *sched;
    uint64_t now_ms;
    struct job *job;            /* by name */
    uint32_t *core_node;        /* of the core, by name; NAMES_NONE before it is there */
    uint32_t *node_name;        /* by the core's number */
    bool *tenant_known;         /* by name */
    uint32_t *tenant_parent;    /* of the core */
    struct tenant_quota *quota; /* what was said last: [tenant][model] */
    struct agenda
        agenda; /* kinds: enum timer_kind; of: the statement of TIMER_SUBMIT, id: which of its jobs */
    uint32_t waiting;
    scenario_say_fn *say;
    void *ctx;
    struct scenario_result result;
    const struct statement *at; /* the statement at hand */
    struct sl_err *err;
};

uint64_t job_waited_ms(const struct run *r, uint32_t job);

/* Does something happen at this very moment? */
bool run_due(const struct run *r);
/* To the next thing that happens, but not beyond `until_ms`. */
int run_step(struct run *r, uint64_t until_ms);

/* Look at an expectation; says what is not as expected. */
int expect_check(struct run *r, const struct statement *st);

#endif
