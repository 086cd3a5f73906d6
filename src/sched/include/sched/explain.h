/*
 * Why a request waits, runs or must go, and what is the smallest change that would start
 * it.  Every change is found by trying it on the state, with undo: what is named here
 * would let the request start at once, without anybody told to go; of what has an amount, one
 * unit less of a change would not.
 *
 * Explaining changes no decision.  Not for the hot path: a try per step of a search, and a look
 * at every node.
 */
#ifndef SCHED_EXPLAIN_H
#define SCHED_EXPLAIN_H

#include "base/buf.h"
#include "sched/sched.h"

/* By who can do something about it. */
enum sched_tier {
    SCHED_MISCONFIGURED, /* no node could run it, even if it were empty */
    SCHED_BLOCKED,       /* by a limit */
    SCHED_WAITING,       /* for capacity, or until who was told has gone */
    SCHED_RUNS,
    SCHED_GOES, /* told to go */
};

/* What the ask of a group lacks on a node: the first that applies. */
enum sched_lack {
    SCHED_LACKS_LABEL,
    SCHED_LACKS_MODEL,   /* no device of a model that will do */
    SCHED_LACKS_DEVICES, /* fewer such devices than asked of one node */
    SCHED_LACKS_QUOTA,   /* a limit bars its models */
    SCHED_IS_CLOSED,     /* by the operator */
    SCHED_IS_KEPT,       /* for a request that others make room for */
    SCHED_LACKS_SHARING, /* devices of other owners, or that another lease spans */
    SCHED_LACKS_MEMORY,
    SCHED_LACKS_COMPUTE,
    SCHED_LACKS_PROFILE, /* … that covers it and is free, where devices are cut */
    SCHED_LACKS_CPU,
    SCHED_LACKS_HOST_MEMORY,
    SCHED_LACKS_NOTHING, /* one has room here; not all of them, or not as near or apart */
    SCHED_LACKS,
};

/* How many nodes lack it, and the most any of them has: devices, bytes (of each device),
 * permille, milli-cores; 0 where that says nothing. */
struct sched_lacking {
    uint32_t nodes;
    uint64_t most;
};

enum sched_change_kind {
    SCHED_LESS_MEMORY,  /* bytes of each device, in MiB steps */
    SCHED_LESS_COMPUTE, /* permille of each */
    SCHED_FEWER_DEVICES,
    SCHED_SMALLER_GANG,
    SCHED_LESS_CPU,         /* milli-cores */
    SCHED_LESS_HOST_MEMORY, /* bytes, in MiB steps */
    SCHED_OTHER_MODEL,      /* `model` too */
    SCHED_WITHOUT_LABEL,    /* `label` not needed, or not avoided */
    SCHED_LESS_NEAR,        /* its places need not lie within one node, rack or zone */
    SCHED_LESS_TIED,        /* with or apart from `tag` only preferred */
    SCHED_HIGHER_LIMIT,     /* of `tenant`, `model` (or all): milli-devices */
    SCHED_A_LEASE_ENDS,     /* one of `leases`, such as `lease` */
    SCHED_CHANGES,
};

struct sched_change {
    bool admits;
    uint32_t option, group; /* of which */
    uint64_t from, to;      /* what has an amount */
    uint32_t tenant, model, label, tag;
    uint64_t lease;
    uint32_t leases;
    bool more; /* not all leases were tried: at least so many */
};

struct sched_explanation {
    uint64_t id, now_ms;
    enum sched_tier tier;
    struct sched_view view;
    /* waiting or blocked: the group that has no place, and why each node is none */
    struct pool_ask ask;
    uint32_t count; /* of it in the group */
    struct sched_lacking lacking[SCHED_LACKS];
    /* by kind; none admits: nothing of this alone would help */
    struct sched_change change[SCHED_CHANGES];
    /* waiting for room: sched_estimate() */
    uint64_t estimate_ms;
    enum sched_basis basis;
    /* blocked: this limit is too low by so much (priced, if of all models) */
    uint32_t limit_tenant, limit_model;
    uint64_t limit_milli, short_milli;
    /* running */
    uint64_t start_ms;
    /* told to go: for whom, by which rule; the place-th of so many that could be, in the order
     * "no gang, lowest priority, last in its order, furthest above its share, least work
     * lost, youngest" */
    uint64_t by;
    enum sched_rule rule;
    uint32_t place, among;
};

/* -SL_NOT_FOUND; -SL_INTERNAL for no memory. */
int sched_explain(struct sched *s, uint64_t id, struct sched_explanation *out);

/* In plain words, a sentence a line. */
void sched_explanation_text(struct buf *to, const struct sched_explanation *x);

#endif
