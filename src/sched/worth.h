/*
 * What the idle part of a node is worth to the target.  Private to sched.
 *
 * Pure functions of a state and a target, in integers; made twice from one
 * source, for any CPU and for AVX2, with the same results.
 */
#ifndef SCHED_WORTH_H
#define SCHED_WORTH_H

#include "target.h"

/* Fragmentation of a state, and what it takes to know it after a change of one
 * device: per lane the devices that fit and the idle compute of the others. */
struct worth_frag {
    int16_t fit[TARGET_LANES], unfit_permille[TARGET_LANES];
    int32_t frag; /* F x LANE_WEIGHT_SUM, permille */
};

struct worth_table {
    /* F of a state. */
    void (*frag)(const struct target *t, const struct class_state *s,
                 struct worth_frag *out);
    /* F after device `index` of the state, or none (UINT32_MAX), has `permille` and
     * `mem_bytes` free, and the node `cpu_milli` and `host_mem_bytes`. */
    int32_t (*frag_after)(const struct target *t, const struct class_state *s,
                          const struct worth_frag *w, uint32_t index,
                          const struct class_device *after, uint32_t cpu_milli,
                          uint64_t host_mem_bytes);
    /* Expected waste x WASTE_LANES, permille. */
    int32_t (*waste)(const struct target *t, const struct class_state *s);
};

/* The fastest that this CPU has. */
const struct worth_table *worth_table(void);

extern const struct worth_table worth_any;
#ifdef SCHED_HAVE_AVX2
extern const struct worth_table worth_avx2;
#endif

#endif
