/*
 * The pool as placement sees it: what every node and device still has free.
 *
 * Nodes in the same state – kind, free host CPU and memory, and the same
 * free devices – are interchangeable: they form one *capacity class*, and
 * placement chooses among classes, not nodes (sched/place.h).
 *
 * Pure: no clock, no I/O, no threads, no globals; the owner calls from one
 * thread.  Memory is allocated when nodes are added, never while slices are
 * taken and given.  Compute is permille of one device, memory bytes, host CPU
 * milli-cores.  Models and labels are small numbers that the caller gives out.
 *
 * These always hold between two calls (pool_check):
 *   - 0 <= free <= capacity in every dimension of every node and device;
 *   - a time-shared device carries at most one lease that spans several
 *     devices (each would hold one card's turn and wait for the other's);
 *   - two owners meet on a device only where the tenancy rule lets them;
 *   - an exclusive device carries at most one lease, and has nothing free beside it;
 *   - of a device of profiles no two leases have a slot in common;
 *   - what the lower class takes is within what is lent above capacity; of what the first
 *     class has free it takes nothing, nor does it bar it anything;
 *   - a node that may take work is a member of exactly the class of its state;
 *   - what a rack or zone is said to have free is what its open nodes have (near.h).
 */
#ifndef SCHED_POOL_H
#define SCHED_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

#define POOL_MAX_DEVICES 16 /* of one node */
#define POOL_MAX_MODELS  64 /* so that a set of them is one word */
#define POOL_LABEL_WORDS 4  /* 256 labels ("zone=a", "cuda>=12.3") in the pool */

struct pool;

struct pool_labels {
    uint64_t bits[POOL_LABEL_WORDS];
};

/* How leases share a device. */
enum pool_sharing {
    POOL_TIME,      /* by turns */
    POOL_EXCLUSIVE, /* not at all: one lease has it, whatever its size */
    POOL_SPATIAL,   /* side by side, each on its own units */
    POOL_PROFILE,   /* cut into fixed profiles, isolated from each other (NVIDIA's MIG) */
};
#define POOL_ALL_SHARING 15u                  /* the set of all, a bit each */
#define POOL_ISOLATED    (1u << POOL_PROFILE) /* where owners may always meet */

#define POOL_MAX_PROFILES 8
#define POOL_MAX_SLOTS    8

/* How devices of a model may be cut, if they are shared by profiles.  A profile covers
 * compute_slots of the device's compute and, from its first on, mem_slots of its memory. */
struct pool_profile {
    uint8_t compute_slots, mem_slots;
    uint8_t starts; /* memory slots it may begin at, a bit each */
    uint8_t most;   /* on one device */
};
struct pool_profiles {
    uint8_t compute_slots, mem_slots; /* of a device: at most 7 and 8 with MIG */
    uint8_t count;
    struct pool_profile profile[POOL_MAX_PROFILES];
};

/* A device of a node: what may be lent of it. */
struct pool_device {
    uint32_t model;  /* < POOL_MAX_MODELS */
    uint8_t sharing; /* enum pool_sharing */
    /* What more is lent in the lower class; only where leases take turns or run side by
     * side.  Below 2^16 and 2^48. */
    uint16_t over_permille;
    uint64_t mem_bytes; /* less what is reserved on devices of its model */
    uint64_t over_mem_bytes;
};

/* How near two places are to each other. */
enum pool_level {
    POOL_ANYWHERE,
    POOL_NODE,
    POOL_RACK,
    POOL_ZONE,
    POOL_DEVICE, /* of one node */
};

/* What a node is. */
struct pool_node {
    uint32_t cpu_milli;
    uint32_t over_cpu_milli; /* what more is lent in the lower class */
    uint64_t host_mem_bytes;
    uint64_t over_host_mem_bytes;
    uint32_t device_count;
    struct pool_device device[POOL_MAX_DEVICES];
    struct pool_labels labels;
    uint32_t rack, zone; /* where it is: the caller's numbers; 0: not known.  A rack lies in
                            one zone.  A node without a rack counts as a rack of its own, a
                            rack without a zone as a zone of its own. */
};

/* A slice or several alike, on one node: what a request asks of it. */
struct pool_ask {
    uint32_t devices;         /* different ones; 0: host CPU and memory only */
    uint32_t permille;        /* of each, 0..1000; 1000 is the whole device */
    uint64_t mem_bytes;       /* of each */
    uint32_t cpu_milli;       /* in all */
    uint64_t host_mem_bytes;  /* in all */
    uint64_t models;          /* bit per model that will do; 0: any */
    struct pool_labels need;  /* labels the node must have */
    struct pool_labels avoid; /* … must not have */
    uint32_t owner;           /* whose; 0 is an owner, too (pool_set_tenancy) */
    uint8_t sharing;          /* devices shared in one of these ways, a bit each; 0: any */
    bool lower; /* of what is lent above capacity, of devices and of the node */
};

/* A profile of a device: which of its model's, and its first memory slot. */
struct pool_cut {
    uint8_t profile, start;
};

/* Where an ask was put. */
struct pool_place {
    uint32_t node;
    uint32_t device_count;
    uint8_t device[POOL_MAX_DEVICES]; /* indexes on the node, ascending */
    struct pool_cut
        cut[POOL_MAX_DEVICES]; /* of those that are shared by profiles, else 0 */
};

/* -SL_INTERNAL: no memory. */
int pool_create(struct pool **out, struct sl_err *err);
void pool_destroy(struct pool *p);

/*
 * The tenancy rule: the ways to share a device, a bit each, in which different owners
 * may meet on one; by default POOL_ISOLATED.  Leases that share compute by turns or side by side
 * are not isolated in memory and faults, so owners that do not trust each other must
 * not meet there; whoever lets them has waived that.  To be said before the first node.
 */
void pool_set_tenancy(struct pool *p, uint32_t ways);

/* The profiles of a model, before its first device that is cut.  -SL_INVALID for what
 * cannot be, -SL_CONFLICT: it has such a device. */
int pool_set_profiles(struct pool *p, uint32_t model, const struct pool_profiles *t,
                      struct sl_err *err);

/*
 * Over-commit is a second, lower class of every device and node: an ask of it (`lower`)
 * draws on over_* only.  It cannot make a first-class ask wait, so it goes only where
 * owners may meet, and it does not span time-shared devices.
 */

/* The new node's number is the count of nodes before.  It takes work at once.
 * -SL_INVALID for what cannot be (a rack in two zones, too), -SL_INTERNAL for no memory. */
int pool_add_node(struct pool *p, const struct pool_node *n, uint32_t *node,
                  struct sl_err *err);

/* May new work come here?  What runs stays. */
void pool_set_open(struct pool *p, uint32_t node, bool open);

uint32_t pool_node_count(const struct pool *p);
const struct pool_node *pool_node_at(const struct pool *p, uint32_t node);

/* What is free on a node now, in one of the two classes. */
struct pool_free {
    uint32_t cpu_milli;
    uint64_t host_mem_bytes;
    uint32_t permille[POOL_MAX_DEVICES];
    uint64_t mem_bytes[POOL_MAX_DEVICES];
};
void pool_free_at(const struct pool *p, uint32_t node, struct pool_free *out);
void pool_lower_free_at(const struct pool *p, uint32_t node, struct pool_free *out);

/* Could this ask be met by the node when it is empty?  By what it has free now? */
bool pool_ask_possible(const struct pool *p, const struct pool_ask *a, uint32_t node);
bool pool_ask_fits(const struct pool *p, const struct pool_ask *a, uint32_t node);

/* Does the ask fit on exactly these devices, be the node open or not? */
bool pool_place_fits(const struct pool *p, const struct pool_ask *a,
                     const struct pool_place *at);

/*
 * An ask is met by the smallest profile that covers its compute and its memory: least
 * compute, then least memory, then first in the table; at the first start that is free.
 * This writes at->cut, for a place that was put together by hand and fits.
 */
void pool_place_cut(const struct pool *p, const struct pool_ask *a, struct pool_place *at);

/* Take what the ask wants at a place where it fits; give it back.  Both must
 * match: giving what was not taken is our own bug (assert). */
void pool_take(struct pool *p, const struct pool_ask *a, const struct pool_place *at);
void pool_give(struct pool *p, const struct pool_ask *a, const struct pool_place *at);

/*
 * Trying: everything taken and given after pool_try() is undone by
 * pool_undo() or stays with pool_keep().  Tries do not nest.  After an undo
 * nothing observable differs from before.  -SL_INTERNAL from pool_try():
 * no memory for `steps` takes and gives, which is the most a try may make.
 */
int pool_try(struct pool *p, uint32_t steps);
void pool_undo(struct pool *p);
void pool_keep(struct pool *p);

/* Abort the program (our own bug) if an invariant above does not hold. */
void pool_check(const struct pool *p);

#endif
