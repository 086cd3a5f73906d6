/*
 * Placement: on which node and devices a slice goes, so that most of what will
 * be asked next still fits.
 *
 * Our own rule (PLACE_FILL), in two steps over the capacity classes where the
 * ask fits.  Both are compared in buckets, so that near-equals go to the
 * fuller node:
 *  1. fragmentation, in two dimensions: F(node) = sum over the target's shapes
 *     of popularity x the idle compute of the devices that the shape cannot
 *     use (all of the node's, if it cannot be hosted at all, host CPU and memory
 *     included).  The PLACE_SHORTLIST classes with the least growth of F
 *     stay.  (Gradient of F: Weng et al., "Beware of Fragmentation", USENIX
 *     ATC 2023, there in one dimension.)
 *  2. expected waste: the idle compute that is left, in the mean, after
 *     WASTE_DRAWS random shapes of the target tried to fill the node, in
 *     WASTE_LANES fixed sequences.  Least growth wins.
 * Both add a price for models that the target wants in particular.
 * docs/internals/placement.md has the reasons and docs/benchmarks.md the effect.
 *
 * Ties: the class with least idle compute, then with least idle CPU, then by
 * a hash of its state; of its nodes the lowest number.  The same state and
 * the same calls give the same places, in every process.
 *
 * Pure, one thread.  A new shape allocates; a known one does not.
 */
#ifndef SCHED_PLACE_H
#define SCHED_PLACE_H

#include "sched/pool.h"

enum place_rule {
    PLACE_FILL,     /* ours */
    PLACE_BEST_FIT, /* least left of device, memory, and node */
    PLACE_SPREAD,   /* the emptiest node and device */
};

struct placer;

/* One kind of request that is expected, and how often. */
struct place_shape {
    struct pool_ask ask;
    uint64_t popularity; /* relative; 0 is ignored */
};

struct place_policy {
    enum place_rule rule;
    uint32_t bucket_permille;   /* differences below are ties; 0: the default, 10 */
    uint32_t scarcity_permille; /* weight of the price of a wanted model; default 200 */
};

void place_policy_init(struct place_policy *policy);

/* The pool is borrowed and must outlive the placer. */
int placer_create(const struct pool *p, const struct place_policy *policy,
                  struct placer **out, struct sl_err *err);
void placer_destroy(struct placer *pl);

/* What is expected to be asked from now on; asks of the lower class are passed over.  Without (count 0), placement is
 * by best fit.  On failure the target stays as it was. */
int placer_set_target(struct placer *pl, const struct place_shape *shapes, uint32_t count,
                      struct sl_err *err);

/* A further condition on nodes: affinity, a rack, a gang's other members. */
struct place_filter {
    bool (*node_ok)(void *ctx, uint32_t node); /* NULL: any */
    void *ctx;
    const uint32_t *node; /* only these, ascending; NULL: all */
    uint32_t node_count;
};

/* Where the ask goes; nothing is taken.  -SL_NO_CAPACITY where it fits nowhere
 * (no message), -SL_INTERNAL for no memory.  `filter` may be NULL. */
int placer_find(struct placer *pl, const struct pool_ask *a,
                const struct place_filter *filter, struct pool_place *out);

/* The same answer by looking at every node: what tests and benches compare with. */
int placer_scan(struct placer *pl, const struct pool_ask *a,
                const struct place_filter *filter, struct pool_place *out);

/* From now on placer_find() is placer_scan(), or itself again: the baseline of a bench. */
void placer_scan_always(struct placer *pl, bool on);

#endif
