/*
 * The scheduler core: (state, event, now) in, decisions out.
 *
 * What is asked waits in queues, one per tenant, ordered over the tenant tree
 * by fair share; what fits is granted, all of a gang or nothing; what is owed
 * to one tenant or matters more is made room for by evicting as little as
 * possible.  What cannot run is parked under its cause and looked at again only
 * when that cause may be gone.
 *
 * Pure: no clock (each event carries `now_ms`, which never goes back), no I/O,
 * no threads, no globals, integers only.  The same events give the same
 * decisions, in every process.  One thread.
 *
 * Compute is permille of one device, memory bytes, host CPU milli-cores; what a
 * tenant uses is counted in *milli-devices* of a model: of each device the larger
 * of its parts of compute and of memory.
 *
 * These always hold between two events (sched_check):
 *   - a device's leases never exceed it, and two tenants share one only where the policy
 *     lets them (sched/pool.h);
 *   - no tenant, nor any above it, is over its limit of a model or of all, but by what was
 *     restored or by what it held before its limit fell;
 *   - who must be apart from a tag is, as long as both run;
 *   - the lower class (pool_ask.lower) makes nobody wait or go, and is in no quota;
 *   - who has a planned start that rests on limits starts no later, whoever comes after;
 *   - nothing is evicted unless all of its pre-emptor is placed by it, and what
 *     need not go stays;
 *   - after a reclaim the reclaimer is at or below what it deserves, of the model or of
 *     all, the victim at or above in both; so no two tenants take from each other for ever;
 *   - who is evicted is by its own tenant's higher priority or, if the policy orders by
 *     service, by one a step before it; or by a tenant that is owed.
 */
#ifndef SCHED_SCHED_H
#define SCHED_SCHED_H

#include "sched/place.h"

#define SCHED_MAX_TENANTS 4096
#define SCHED_MAX_OPTIONS 4
#define SCHED_MAX_GROUPS  8
#define SCHED_MAX_GANG    4096 /* asks of one option in all */
#define SCHED_MAX_TAGS    4
#define SCHED_MAX_TIES    4
#define SCHED_MAX_PROTECT 64
#define SCHED_NO_LIMIT    UINT64_MAX
#define SCHED_ALL_MODELS  POOL_MAX_MODELS /* of a quota */
#define SCHED_ROOT        0u              /* the tenant above all; it always exists */

/*
 * `count` asks alike, each on one node; all of an option in the same class.  Their owner is
 * the request's tenant, whatever is said there.
 *
 * `beside`: each lies on the node of the same ask of the group before it, which has as many,
 * on other devices; so one node gives 700 permille of a device and 300 of another.
 *
 * `split_least`: `count` whole devices in all, not above capacity – an ask is one of them,
 * with its host CPU and memory –, on as few nodes as can be, at least so many on each;
 * 0: each where it fits best.
 */
struct sched_group {
    struct pool_ask ask;
    uint32_t count;
    bool beside;
    uint32_t split_least;
};

/*
 * One way to meet a request: all of these groups, or nothing.
 *
 * `within`: all of it lies in one node, rack or zone.  If that is required, the option waits
 * until one has room for it; else it lies within one if one has room, or anywhere.
 */
struct sched_option {
    uint32_t group_count;
    struct sched_group group[SCHED_MAX_GROUPS];
    enum pool_level within; /* POOL_ANYWHERE: no matter */
    bool within_required;
};

/*
 * To places that carry a tag: each place of the request lies with one of them, or apart from
 * all, at this level.  What it has itself placed counts, so a gang may spread.
 *
 * Required: it waits until that can be.  `apart` then holds as long as it runs: who carries
 * the tag keeps away, too.  `with` holds when the place is chosen; whoever it came for may
 * end before.  The first of those that want to be with each other may lie anywhere.
 * Preferred: held where something fits so; else the last of them is given up first.
 */
struct sched_tie {
    uint32_t tag; /* the caller's */
    enum pool_level level;
    bool apart, required;
};

/* What a request is to others, and others to it. */
struct sched_ties {
    uint32_t tag_count, tie_count;
    uint32_t tag[SCHED_MAX_TAGS]; /* that it carries */
    struct sched_tie tie[SCHED_MAX_TIES];
};

struct sched_request {
    uint64_t id; /* the caller's, unique among what has not ended */
    uint32_t tenant;
    uint32_t priority;    /* 0..100, higher first */
    bool preemptible;     /* may be evicted */
    uint64_t min_run_ms;  /* … but not before it ran this long */
    uint64_t work_ms;     /* how long it will run in all, predicted; 0: unknown */
    uint64_t attained_ms; /* how long it ran before: it was evicted and goes on */
    uint64_t limit_ms; /* once started it runs no longer: the caller ends it; 0: no limit */
    uint32_t option_count;
    const struct sched_option *option; /* in order of preference; copied */
    struct sched_ties ties;            /* in all options */
};

/* A request that runs already, from before a restart: where, and since when. */
struct sched_restore {
    struct sched_request request;
    uint32_t option;   /* of the request's, the one that runs */
    uint64_t start_ms; /* at most now_ms */
    uint32_t place_count;
    const struct pool_place *place; /* group by group; copied */
};

/* Who waits keeps its age; who runs is measured by it from the next tick on. */
struct sched_priority {
    uint64_t id;
    uint32_t priority; /* 0..100 */
};

struct sched_tenant {
    uint32_t tenant, parent; /* given out by the caller, below SCHED_MAX_TENANTS */
    uint32_t weight;         /* against its siblings; 0: only when they want nothing */
};

/* Of one model, or of SCHED_ALL_MODELS together, each device counted at its price (the
 * exchange rate): "40 A100s' worth of whatever it is".  Limits hold in both; a tenant is
 * owed what it deserves in either, and gives back only what it has above both. */
struct sched_quota {
    uint32_t tenant, model;
    uint64_t deserved_milli; /* it gets this much back from those above theirs */
    uint64_t limit_milli;    /* it never has more; SCHED_NO_LIMIT */
};

/* What a device of the model counts for in the fair share; 1000 unless set, and fixed once
 * something of it is held. */
struct sched_price {
    uint32_t model, permille;
};

/* How devices of a model may be cut. */
struct sched_profiles {
    uint32_t model;
    struct pool_profiles profiles;
};

enum sched_event_kind {
    SCHED_ADD_NODE,
    SCHED_OPEN_NODE,
    SCHED_SET_TENANT, /* a new one, or a new weight; a parent is never changed */
    SCHED_SET_QUOTA,
    SCHED_SET_PRICE,
    SCHED_SUBMIT,
    SCHED_END, /* a request is over, whatever its state: cancelled, ended, gone after an evict */
    SCHED_TICK,
    SCHED_RESTORE, /* taken as it is: nothing is decided, and limits may be exceeded */
    SCHED_SET_PRIORITY,
    SCHED_SET_PROFILES, /* before a device of the model that is cut by them */
};

struct sched_event {
    enum sched_event_kind kind;
    uint64_t now_ms;
    union {
        struct pool_node node;
        struct {
            uint32_t node;
            bool open;
        } open;
        struct sched_tenant tenant;
        struct sched_quota quota;
        struct sched_price price;
        struct sched_request submit;
        struct sched_restore restore;
        struct sched_priority priority;
        struct sched_profiles profiles;
        uint64_t end;
    };
};

enum sched_rule {
    SCHED_BY_PRIORITY, /* a lease of the same tenant, of lower priority */
    SCHED_BY_RECLAIM,  /* a lease of a tenant above what it deserves */
    SCHED_BY_SERVICE,  /* a lease of the same tenant and priority, later in its order */
};

enum sched_decision_kind {
    SCHED_GRANT,
    SCHED_EVICT, /* tell it to go; SCHED_END when it is gone */
};

struct sched_decision {
    enum sched_decision_kind kind;
    uint64_t id;
    /* of a grant */
    uint32_t option; /* which */
    uint32_t place_count;
    /* Group by group; in each by the number of zone, rack, node, device, so that
     * neighbours in rank are near. */
    const struct pool_place *place;
    /* of an eviction */
    uint64_t by; /* for whom */
    enum sched_rule rule;
};

/*
 * Who goes first among requests of one tenant and priority, and whom a shorter one may
 * evict.  Service is milli-devices x time.  Where somebody would be evicted it is compared
 * in steps – powers of two of what was attained, eighths of these of what remains –, so
 * that two alike do not take turns.
 */
enum sched_order {
    SCHED_BY_AGE,       /* the oldest; nobody is evicted for less than priority */
    SCHED_BY_ATTAINED,  /* who got least so far (for when nobody knows how long) */
    SCHED_BY_REMAINING, /* who needs least from now on; if it is unknown, or ran longer
                         * than predicted: as much as it had */
};

struct sched_policy {
    struct place_policy place;
    enum sched_order order;
    uint64_t half_life_ms; /* of past use in the fair share; default 7 days */
    uint32_t tenancy;      /* ways to share a device in which two tenants may meet on one, a
                            * bit each; default POOL_ISOLATED (pool_set_tenancy) */
    /* So many that wait for room longer than this, in the fair order, get a planned place that
     * nobody's arrival delays: 8, at most SCHED_MAX_PROTECT; 15 minutes.  0: none.  Only
     * where the order is by age: by service, whoever is short comes before a plan. */
    uint32_t protect;
    uint64_t patience_ms;
};

struct sched;

void sched_policy_init(struct sched_policy *policy);
int sched_create(const struct sched_policy *policy, struct sched **out, struct sl_err *err);
void sched_destroy(struct sched *s);

/*
 * One event.  The decisions that follow from it are lent until the next event, in
 * the order in which they were made.  Whom to evict is sought for a bounded time: what
 * was not reached is sought at the next events.  A refused event changes nothing: -SL_INVALID
 * for what cannot be, -SL_NOT_FOUND, -SL_CONFLICT for an id that is in use, a place that
 * another has, or a price that comes too late.  -SL_INTERNAL: no memory; the event may have been taken, the
 * decisions made so far are given, and what is left is decided at the next event.
 */
int sched_apply(struct sched *s, const struct sched_event *e,
                const struct sched_decision **decisions, uint32_t *count,
                struct sl_err *err);

/* ---- looking ---- */

enum sched_state {
    SCHED_PENDING,
    SCHED_NOMINATED, /* its place is being cleared: it waits for the evicted to go */
    SCHED_RUNNING,
    SCHED_LEAVING, /* told to go */
};

/* Why a request waits, by who can do something about it. */
enum sched_verdict {
    SCHED_NOT_WAITING,
    SCHED_IMPOSSIBLE, /* no node, or no rack, could run it even when empty: misconfigured */
    SCHED_OVER_LIMIT, /* by the tenant's quota */
    SCHED_NO_ROOM,    /* for capacity */
    SCHED_BEING_MADE, /* others were told to make room */
};

/* By what a planned start is known; in doubt the last of these. */
enum sched_basis {
    SCHED_BASIS_NONE, /* there is no plan */
    SCHED_BASIS_NOW,
    SCHED_BASIS_LIMITS,      /* it starts by then at the latest */
    SCHED_BASIS_PREDICTIONS, /* of how long others run */
    SCHED_BASIS_UNKNOWN,     /* as if all ran as long again as they did */
};

struct sched_view {
    enum sched_state state;
    enum sched_verdict verdict;
    uint32_t tenant; /* of OVER_LIMIT: the tenant, in the tree, whose limit it is */
    uint32_t option,
        group;     /* of IMPOSSIBLE and NO_ROOM: the first group that has no place */
    bool unproven; /* the search gave up: a place there may be, it was not found */
    uint32_t place_count;
    const struct pool_place *place; /* lent until the next event */
    uint64_t start_ms;              /* of what waits and has a planned place */
    enum sched_basis basis;
    uint64_t end_ms; /* of what runs: it ends by then, by its limit; 0: not known */
};

int sched_find(const struct sched *s, uint64_t id, struct sched_view *out);
/*
 * When would a request that waits for room start, and by what is that known?  As of the last
 * event; planned as if it were protected from now on, and recorded nowhere: later events decide as if
 * nobody had asked.  Of those that wait in one line (alike in all), the first is meant.
 * SCHED_BASIS_NONE: there is no plan, as it does not wait for room, or nothing that is known makes
 * any.  Searches on the one state: for somebody who asks, not for every request.
 * -SL_NOT_FOUND, -SL_INTERNAL: no memory.
 */
int sched_estimate(struct sched *s, uint64_t id, uint64_t *start_ms,
                   enum sched_basis *basis);
const struct pool *sched_pool(const struct sched *s);
/* Milli-devices of a model (SCHED_ALL_MODELS: of all, at their prices) that a tenant and
 * those below it hold, the evicted not counted, those to come in their place counted. */
uint64_t sched_held_milli(const struct sched *s, uint32_t tenant, uint32_t model);

/* Abort the program (our own bug) if an invariant above does not hold. */
void sched_check(const struct sched *s);

#endif
