/*
 * Capacity classes: the nodes of a pool that are in the same state.  Private
 * to sched.
 *
 * A class lives while it has a member.  Its number is used again afterwards,
 * its birth never: (number, birth) names one class for ever.  A log of births
 * lets whoever keeps an order over the classes catch up without a scan.
 */
#ifndef SCHED_CLASS_H
#define SCHED_CLASS_H

#include "sched/pool.h"

#define CLASS_NONE   UINT32_MAX
#define CLASS_UNBORN UINT64_MAX

/* A device as its class sees it; devices of a class are sorted by this. */
struct class_device {
    uint64_t mem_bytes; /* free */
    uint32_t owner;     /* who shares it, 0: nobody in particular */
    uint16_t permille;  /* free */
    uint8_t model;
    uint8_t flags; /* CLASS_*, and how it is shared */
    union {
        uint64_t more;
        struct {
            uint8_t slots; /* of memory, in use */
            uint8_t full;  /* profiles of which it carries all it may */
        } cut;             /* of a device of profiles */
        struct {
            uint64_t mem_bytes : 48, permille : 16;
        } lower; /* of another: free in the lower class */
    };
};

#define CLASS_USED 1u /* somebody has a slice of it */
#define CLASS_SPANNED \
    2u /* … one that spans several devices, which time-sharing bars to others */
#define CLASS_OWNED   4u /* … and it is for its owner only */
#define CLASS_CLOSED  8u /* … and takes nothing beside it */
#define CLASS_SHARING 4  /* from this bit on: enum pool_sharing */

static inline enum pool_sharing class_sharing(const struct class_device *d)
{
    return d->flags >> CLASS_SHARING;
}

/* Nodes with equal states are interchangeable; compared and hashed by bytes,
 * so unused parts are zero. */
struct class_state {
    uint64_t host_mem_bytes; /* free */
    uint32_t cpu_milli;      /* free */
    uint32_t kind;           /* of labels */
    uint32_t device_count;
    uint32_t idle_permille;        /* sum over the devices */
    uint64_t lower_host_mem_bytes; /* free in the lower class */
    uint32_t lower_cpu_milli;
    uint32_t unused; /* 0 */
    struct class_device device[POOL_MAX_DEVICES];
};

struct class
{
    struct class_state state;
    uint64_t hash;  /* of the state: the same in every process */
    uint32_t root;  /* of the tree of its members, by number */
    uint32_t count; /* members; 0: the slot is free */
    uint32_t next;  /* in its hash chain, or among the free slots */
};

/* A node's place in the tree of its class: a treap whose priorities are a hash
 * of the number, so its shape depends on the members only. */
struct class_member {
    uint32_t left, right;
};

struct classes {
    struct class *class;
    uint64_t
        *birth; /* of each: its position in the log, unique; CLASS_UNBORN: a free slot */
    struct class_member *member; /* by node */
    uint32_t room;               /* of these: one slot more than there are nodes */
    uint32_t live;
    uint32_t unused; /* head of the free slots, by `next` */
    uint32_t *bucket;
    uint32_t bucket_mask;
    uint32_t *log;   /* class born at position i: log[i & log_mask] */
    uint64_t births; /* positions given out */
    uint32_t log_mask;
};

uint64_t class_hash(const struct class_state *s);

void classes_init(struct classes *c);
void classes_finish(struct classes *c);

/* Room for `nodes` nodes in all. */
int classes_reserve(struct classes *c, uint32_t nodes);

/* The class of this state, made if there is none; its number. */
uint32_t classes_join(struct classes *c, const struct class_state *s, uint32_t node);
/* A class that loses its last member is gone. */
void classes_leave(struct classes *c, uint32_t number, uint32_t node);

/* The first member, ascending, that `ok` accepts (NULL: any), or CLASS_NONE. */
uint32_t classes_first(const struct classes *c, uint32_t number,
                       bool (*ok)(void *ctx, uint32_t node), void *ctx);

static inline bool class_is(const struct classes *c, uint32_t number, uint64_t birth)
{
    return c->birth[number] == birth;
}

/* Births from `position` on are still in the log. */
static inline bool classes_log_has(const struct classes *c, uint64_t position)
{
    return c->births - position <= (uint64_t)c->log_mask + 1;
}

#endif
