/*
 * Filling a cluster: pods arrive one after the other and never leave, and a policy
 * says where each goes.  This is the experiment of the FGD paper (Weng et al., "Beware
 * of fragmentation: scheduling GPU-sharing workloads with fragmentation gradient
 * descent", USENIX ATC 2023), on the openb data.
 *
 * The experiment keeps its own books and holds every answer of a policy against them.
 * Amounts are exact: milli of a GPU, of its memory and of a CPU, MiB.
 */
#ifndef SIM_FILL_H
#define SIM_FILL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "sim/openb.h"

#define FILL_MAX_DEVICES 16   /* of a node */
#define FILL_MAX_PODS    1001 /* on a node, as in the paper's simulator */
#define FILL_WHOLE       1000 /* milli of a device */
#define FILL_COLUMNS     131  /* 0 … 130 % arrived */

/* What pods that are alike ask for. */
struct fill_class {
    uint64_t memory_mib;
    uint64_t models; /* the ones that will do, as bits; 0: any */
    uint32_t cpu_milli;
    uint32_t gpus;
    uint32_t gpu_milli;     /* of each */
    uint32_t gpu_mem_milli; /* of each one's memory; 0: it does not count */
};

/* A node as it is: what is free. */
struct fill_node {
    uint64_t model; /* one bit, or 0 if no pod names its model */
    uint64_t memory_mib;
    uint32_t cpu_milli;
    uint32_t gpu_milli; /* the sum over devices */
    uint16_t gpus, pods;
    uint16_t free[FILL_MAX_DEVICES];     /* milli of each device, 0 where there is none */
    uint16_t used_mem[FILL_MAX_DEVICES]; /* milli of each one's memory */
    uint32_t all_cpu_milli;              /* of the empty node */
    uint16_t idle_w, full_w;             /* of each device */
};

/*
 * The target workload: the most frequent sorts of pod, the fewest that are 95 % of the
 * list.  Weights are counts; `total` is their sum.
 */
struct fill_shape {
    uint64_t models;
    uint32_t cpu_milli, gpus, gpu_milli;
    uint32_t weight;
    uint32_t spec; /* in the list's specs */
    uint32_t gpu_mem_milli;
};
struct fill_target {
    struct fill_shape *shapes;
    uint32_t count;
    uint64_t total;
};

int fill_target_of(const struct openb_pods *pods, struct fill_target *out,
                   struct sl_err *err);
void fill_target_finish(struct fill_target *t);

/* The idle milli of a node that a pod of the target cannot use, on average, times
 * target.total: F of the paper, exact. */
uint64_t fill_waste(const struct fill_target *t, const struct fill_node *n);

/*
 * Device memory, which openb does not have: each pod with GPUs asks, of the memory of each,
 * 0.5 to 2 times (in hundredths, drawn by seed and place in the list) its share of
 * compute, up to the next tenth of a device and never more than one.
 */
void fill_draw_memory(struct openb_pods *pods, uint64_t seed);

/* The inputs in one numbering. */
struct fill_input {
    struct fill_node *nodes; /* all free */
    struct fill_class *classes;
    uint32_t *class_of; /* of each pod */
    uint32_t node_count, class_count, pod_count;
    uint64_t gpu_milli; /* of all nodes */
    struct fill_target target;
};

/* -SL_INVALID: a node with too many devices, no devices at all. */
int fill_input_make(const struct openb_nodes *nodes, const struct openb_pods *pods,
                    struct fill_input *out, struct sl_err *err);
void fill_input_finish(struct fill_input *in);

/* Where a pod goes: so many devices of this node, their indices ascending. */
struct fill_place {
    uint32_t node;
    uint32_t count;
    uint8_t device[FILL_MAX_DEVICES];
};

/* Has a device so much free? */
static inline bool fill_device_has(const struct fill_node *n, unsigned d,
                                   uint32_t gpu_milli, uint32_t gpu_mem_milli)
{
    return n->free[d] >= gpu_milli && n->used_mem[d] + gpu_mem_milli <= FILL_WHOLE;
}

/*
 * What a node draws, in watts, by the model of the PWR paper (Lettich et al., "Power- and
 * fragmentation-aware online scheduling for GPU datacenters", CCGrid 2025): a device with
 * any pod on it draws all of its power, one without its idle power; a socket (32 virtual
 * CPUs of 16 cores) likewise, and pods' CPUs are on as few sockets as can be.
 */
uint32_t fill_watts(const struct fill_node *n);
/* Of a device: idle and full.  False for a model that the paper has not; then both are 0. */
bool fill_device_watts(const char *model, uint16_t *idle_w, uint16_t *full_w);

/* Is there room on this node? */
bool fill_fits(const struct fill_node *n, const struct fill_class *c);
/* Take it. */
void fill_take(struct fill_node *n, const struct fill_class *c, const struct fill_place *p);

/*
 * A policy: a row of functions.  It keeps its own state of the nodes; nothing but
 * place() changes it.  It may know the target workload and what it placed, never what
 * is still to come.
 */
struct fill_policy {
    const char *name;
    /* tie_order: all nodes, the first is preferred among equals (borrowed, as `in`, until
     * destroy); seed: of a policy that draws.  NULL when out of memory. */
    void *(*create)(const struct fill_input *in, const uint32_t *tie_order, uint64_t seed);
    /* A pod of class number `c`; false: there is no room for it anywhere. */
    bool (*place)(void *self, uint32_t c, struct fill_place *out);
    void (*destroy)(void *self); /* NULL is fine */
};

extern const struct fill_policy fill_policies[];
extern const unsigned fill_policy_count;

/* One run, by percent of the cluster's GPU that the arrived pods asked for. */
struct fill_result {
    double alloc_pct[FILL_COLUMNS];      /* of all GPU; NAN: nothing arrived there */
    double frag_ratio_pct[FILL_COLUMNS]; /* waste of idle GPU */
    double power_kw[FILL_COLUMNS];       /* what all nodes draw */
    uint32_t refused;
    uint32_t refused_though_fits; /* of these; a fault of the policy */
};

/* Pods `order[0 … count)` arrive.  -SL_INTERNAL: out of memory, or the policy gave
 * what is not there; the message says what. */
int fill_run(const struct fill_input *in, const struct fill_policy *policy,
             const uint32_t *order, uint32_t count, const uint32_t *tie_order,
             uint64_t seed, struct fill_result *out, struct sl_err *err);

/* part / whole in percent, rounded to a whole number, halves to the even one. */
uint64_t fill_column(uint64_t part, uint64_t whole);

#endif
