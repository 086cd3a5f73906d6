/*
 * Backends: the kinds of devices that this agent can find.
 *
 * A const table of functions each, listed once in table.c in probing order.  A
 * backend fills everything of a device but `index`, `share_tenants` and what is
 * observed; the inventory does the rest.
 */
#ifndef AGENT_BACKEND_H
#define AGENT_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "model/device.h"

#define BACKEND_MAX_NAMES 16

struct backend_options {
    const char *probe_program;                /* path of sluice-probe */
    const char *probe_env[BACKEND_MAX_NAMES]; /* variables that the probe may see */
    uint32_t probe_env_count;
    uint32_t probe_timeout_ms;              /* 0: 20 s */
    const char *emulate[BACKEND_MAX_NAMES]; /* "a100-80g:8,l4", or a file */
    uint32_t emulate_count;
};

struct backend {
    const char *name;
    /* Append to out[*count], at most `max` in all.  A device that is there but out of
     * order is appended as DEVICE_FAILED; an error means that the backend itself could
     * not be asked. */
    int (*probe)(const struct backend_options *o, struct device *out, uint32_t max,
                 uint32_t *count, struct sl_err *err);
};

extern const struct backend backend_opencl, backend_emulated;

/* NULL-terminated, in probing order. */
extern const struct backend *const backends[];
const struct backend *backend_find(const char *name);

/* The figures that a probe and a recorded machine give by the same names: memory_bytes,
 * max_alloc_bytes, compute_units, clock_mhz, unified, numa_node.  What is absent stays. */
int backend_read_numbers(const json_t *j, struct device *d, struct sl_err *err);

/* ---- parts that are tested by themselves ---- */

/* A model that can be emulated. */
struct emulated_model {
    const char *name, *vendor, *model, *arch;
    uint32_t memory_mib, reserve_mib; /* as its driver reports in total / never lends */
    uint32_t compute_units, clock_mhz;
};
const struct emulated_model *emulated_model_find(const char *name);
const char *emulated_model_names(char *out, size_t size);

/* Devices of "a100-80g:8,l4:2" or of a recorded machine's file (tests/machines/README.md).
 */
int emulated_add(const char *spec, struct device *out, uint32_t max, uint32_t *count,
                 struct sl_err *err);

/* Devices of what sluice-probe printed; mem_total_bytes is this machine's memory. */
int opencl_parse(const char *text, size_t len, uint64_t mem_total_bytes, struct device *out,
                 uint32_t max, uint32_t *count, struct sl_err *err);

#endif
