/* What a scenario is once it is read.  Private to the scenarios. */
#ifndef SCENARIO_IMPL_H
#define SCENARIO_IMPL_H

#include <stdbool.h>

#include "sched/sched.h"
#include "sim/names.h"
#include "sim/scenario.h"

#define SCENARIO_QUOTAS 8 /* models in one tenant statement */

/* Some of the names of a kind, as numbers: scenario->index[first…]. */
struct set {
    uint32_t first, count;
};

enum statement_kind {
    ST_NODE,
    ST_TENANT,
    ST_PRICE,
    ST_SUBMIT,
    ST_END,
    ST_OPEN,
    ST_CLOSE,
    ST_FAIL, /* a node: what runs there is over */
    ST_AT,
    ST_AFTER,
    ST_EXPECT,
};

struct tenant_quota {
    uint32_t model;
    bool deserves, limits;
    uint64_t deserved_milli, limit_milli;
};

struct submission {
    struct sched_request request; /* its options are the ones below */
    struct sched_option option[SCHED_MAX_OPTIONS];
    uint64_t run_ms;   /* then it ends by itself; 0: when the scenario ends it */
    uint64_t leave_ms; /* that it takes to go when it is told to */
    bool requeued;     /* … and then it waits again; else it is over */
    uint64_t every_ms; /* one after the other of the set; 0: all at once */
};

enum expected {
    EX_RUNS,
    EX_WAITS,
    EX_LEAVES, /* was told to go and has not gone yet */
    EX_OVER,
    EX_REFUSED,
    EX_EVICTED, /* was told to go, ever */
    EX_WAITED,  /* less or more than a time */
    EX_HOLDS,   /* a tenant, of a model */
};

struct expectation {
    enum expected what;
    bool negated;
    bool counted; /* so many of the set; else all of it */
    bool exactly; /* … no more */
    uint32_t count;
    uint32_t other;     /* the node it runs on, for whom it was told; NAMES_NONE: any */
    int rule;           /* enum sched_rule; -1: any */
    int verdict;        /* enum sched_verdict; -1: any */
    uint64_t within_ms; /* 0: now */
    bool more;          /* of EX_WAITED */
    uint64_t amount;    /* ms, or milli-devices */
    uint32_t model;
};

struct statement {
    enum statement_kind kind;
    uint32_t line;
    struct set who;
    char text[96]; /* of an expectation: its line */
    union {
        struct pool_node node;
        struct {
            uint32_t parent, weight; /* NAMES_NONE, 0: not said */
            bool has_parent, has_weight;
            uint32_t quota_count;
            struct tenant_quota quota[SCENARIO_QUOTAS];
        } tenant;
        struct sched_price price;
        struct submission *submit;
        uint64_t ms;
        struct expectation expect;
    };
};

struct scenario {
    char file[96];
    struct names jobs, nodes, tenants, models, labels, places, tags;
    struct sched_policy policy;
    uint64_t tick_ms;
    struct statement *statement;
    uint32_t count, room;
    uint32_t *index;
    uint32_t index_count, index_room;
};

#endif
