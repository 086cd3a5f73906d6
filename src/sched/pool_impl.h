/* The inside of a pool, for the files of sched only. */
#ifndef SCHED_POOL_IMPL_H
#define SCHED_POOL_IMPL_H

#include "class.h"
#include "cut.h"
#include "device.h"
#include "near.h"
#include "sched/pool.h"

struct pool_slot_device {
    struct class_device now;
    uint32_t users;                  /* slices on it */
    uint32_t lower_users;            /* … of the lower class */
    uint8_t cuts[POOL_MAX_PROFILES]; /* … by profile */
};

struct pool_slot {
    struct pool_node is;
    uint64_t host_mem_free, lower_host_mem_free;
    uint32_t cpu_free, lower_cpu_free;
    uint32_t kind;
    uint32_t class; /* while open */
    struct node_near near;
    bool open;
    struct pool_slot_device device[POOL_MAX_DEVICES];
};

struct pool_step {
    struct pool_ask ask;
    struct pool_place at;
    bool took;
};

struct pool {
    struct pool_slot *node;
    uint32_t node_count, node_room;
    struct pool_labels *kind; /* the label sets that nodes have */
    uint32_t kind_count, kind_room;
    uint32_t tenancy; /* ways to share in which owners may meet, a bit each */
    struct pool_profiles profiles[POOL_MAX_MODELS];
    bool cut_models[POOL_MAX_MODELS]; /* some device is cut by these */
    bool mixed;                       /* some node has devices of several models */
    bool mixed_sharing;               /* … that are shared in several ways */
    struct classes classes;
    struct near near;
    struct pool_step *try_step;
    uint32_t try_count, try_room;
    bool trying;
};

/* The node's state as its class has it, devices sorted. */
void pool_state(const struct pool *p, uint32_t node, struct class_state *s);

static inline uint32_t slot_cpu_free(const struct pool_slot *n, const struct pool_ask *a)
{
    return a->lower ? n->lower_cpu_free : n->cpu_free;
}
static inline uint64_t slot_host_mem_free(const struct pool_slot *n,
                                          const struct pool_ask *a)
{
    return a->lower ? n->lower_host_mem_free : n->host_mem_free;
}

/*
 * As pool_give() and pool_take(), but the classes do not learn of it: only to look what
 * would fit if somebody were gone.  All that was lifted is laid back, the last first,
 * before anything else is done with the pool.
 */
void pool_lift(struct pool *p, const struct pool_ask *a, const struct pool_place *at);
void pool_lay(struct pool *p, const struct pool_ask *a, const struct pool_place *at);
/* How many of the ask the node may take at most; 0: none fits, or it is closed. */
uint32_t pool_ask_copies(const struct pool *p, const struct pool_ask *a, uint32_t node);

static inline uint64_t hash_mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0xff51afd7ed558ccdull;
    return h ^ h >> 29;
}

/* Are two nodes in the same node, rack, zone? */
bool near_together(const struct pool *p, uint32_t a, uint32_t b, enum pool_level level);

/* Inside a try: where it is now, and back to there. */
uint32_t pool_mark(const struct pool *p);
void pool_undo_to(struct pool *p, uint32_t mark);

/* Do they ask the same? */
uint64_t ask_hash(const struct pool_ask *a);
bool ask_equal(const struct pool_ask *a, const struct pool_ask *b);
/* … whoever asks? */
uint64_t ask_hash_unowned(const struct pool_ask *a);
bool ask_equal_unowned(const struct pool_ask *a, const struct pool_ask *b);

/* Do nodes with these labels do? */
bool pool_kind_suits(const struct pool *p, const struct pool_ask *a, uint32_t kind);
/* As pool_ask_fits(), be the node open or not. */
bool pool_ask_has_room(const struct pool *p, const struct pool_ask *a, uint32_t node);

#endif
