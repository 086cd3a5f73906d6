/*
 * The openb data set (Alibaba cluster-trace-gpu-v2023, as in the FGD simulator,
 * USENIX ATC 2023): a node list, pod lists, and the orders in which the published runs
 * let the pods arrive.  Plain arrays; the caller frees them.
 */
#ifndef SIM_OPENB_H
#define SIM_OPENB_H

#include <stdint.h>

#include "core/err.h"
#include "sim/names.h"
#include "sim/text.h"

#define OPENB_NONE       UINT32_MAX
#define OPENB_UNKNOWN    UINT64_MAX
#define OPENB_MAX_MODELS 64 /* so that a set of them is one word */

/* ---- nodes: sn,cpu_milli,memory_mib,gpu,model ---- */

struct openb_node {
    uint64_t memory_mib;
    uint32_t cpu_milli;
    uint32_t gpus;  /* whole devices, 0 of a CPU node */
    uint32_t name;  /* in names */
    uint32_t model; /* in models; OPENB_NONE without a GPU */
    uint32_t line;
};

/* In the order of the file; at least one. */
struct openb_nodes {
    struct openb_node *nodes;
    uint32_t count;
    struct names names, models;
};

int openb_nodes_read(const struct text *text, struct openb_nodes *out, struct sl_err *err);
void openb_nodes_finish(struct openb_nodes *n);

/* ---- pods: name,cpu_milli,memory_mib,num_gpu,gpu_milli and, in the longer form,
 * gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time ---- */

enum openb_qos { OPENB_QOS_UNKNOWN, OPENB_LS, OPENB_BE, OPENB_BURSTABLE, OPENB_GUARANTEED };
enum openb_phase {
    OPENB_PHASE_UNKNOWN,
    OPENB_PENDING,
    OPENB_RUNNING,
    OPENB_SUCCEEDED,
    OPENB_FAILED,
};

struct openb_pod {
    uint64_t memory_mib;
    uint64_t models; /* bit m: models.name[m] will do; 0: any */
    uint64_t creation_s, deletion_s, scheduled_s; /* of the trace, or OPENB_UNKNOWN */
    uint32_t cpu_milli;
    uint32_t gpus;      /* 0: CPU only */
    uint32_t gpu_milli; /* of each GPU; below 1000 only where gpus is 1; 0 with none */
    uint32_t name;      /* in names */
    uint32_t spec;      /* gpu_spec as written, in specs; OPENB_NONE if empty */
    uint32_t line;
    enum openb_qos qos;
    enum openb_phase phase;
    uint32_t gpu_mem_milli; /* of each GPU's memory; no file has it: fill_draw_memory() */
};

/* Sorted by name, byte by byte: the order that the order lines count in.  At least one. */
struct openb_pods {
    struct openb_pod *pods;
    uint32_t count;
    struct names names, specs;
    struct names models; /* of the specs: find a node's model here by its name */
};

int openb_pods_read(const struct text *text, struct openb_pods *out, struct sl_err *err);
void openb_pods_finish(struct openb_pods *p);

/* ---- orders: a line per seed, "seed i0 i1 …" ---- */

struct openb_order {
    uint64_t seed;
    uint32_t first, count; /* in index */
    uint32_t line;
};

/* Each index is below the pod_count that was given; an order has at least one. */
struct openb_orders {
    struct openb_order *orders;
    uint32_t count;
    uint32_t *index;
};

int openb_orders_read(const struct text *text, uint32_t pod_count, struct openb_orders *out,
                      struct sl_err *err);
void openb_orders_finish(struct openb_orders *o);

#endif
