/*
 * A device: one physical accelerator of a node, as the inventory found it.
 *
 * Sizes come from the driver, never from a product name.
 * What is unknown is UNKNOWN_U64 or an empty string, printed as null or "-".
 */
#ifndef MODEL_DEVICE_H
#define MODEL_DEVICE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"

#define UNKNOWN_U64    UINT64_MAX
#define DEVICE_ID_SIZE 64

enum device_state {
    DEVICE_OK,
    DEVICE_HELD,   /* another broker of this machine holds it */
    DEVICE_FAILED, /* the driver or the probe failed; `why` says how */
};

/* How well a slice is held, per dimension. */
enum grade { GRADE_NONE, GRADE_FRONT, GRADE_PROXY, GRADE_KERNEL, GRADE_HARDWARE };

struct grades {
    enum grade memory, time, fault, visibility, network;
};

struct device {
    char id[DEVICE_ID_SIZE]; /* stable: "pocl-5f0c21aa-0", "emu-a100-80g-3" */
    uint32_t index;          /* on this node, in probing order */
    char backend[16];        /* "opencl", "emulated" */
    bool emulated;
    enum device_state state;
    bool gone;     /* no longer found; with FAILED, not in JSON */
    char why[128]; /* for HELD and FAILED */
    char vendor[64], model[128], arch[32];
    char platform[64], driver[64]; /* as the API names them: what a front matches */
    uint32_t ordinal;              /* among devices alike in platform, model, driver */
    bool unified;                  /* host memory is device memory */
    uint64_t memory_bytes;         /* what the driver reports in a clean environment */
    char memory_source[48];        /* "clGetDeviceInfo", "recorded", "MemTotal" */
    char wipe[16];                 /* who clears freed memory: "driver", "unknown" */
    uint64_t reserve_bytes;        /* never lent */
    uint64_t max_alloc_bytes;      /* largest single allocation the driver takes */
    uint32_t compute_units, clock_mhz;
    int32_t numa_node;    /* -1: unknown */
    char pci[16];         /* "0000:3b:00.0"; empty: none or unknown */
    bool concurrent;      /* turns need not be exclusive */
    bool share_tenants;   /* the operator waived the one-tenant rule */
    struct grades grades; /* the best this device offers here */

    /* observed */
    uint64_t lent_bytes, used_bytes;
    uint32_t lent_permille;        /* sum of requests */
    int32_t achieved_permille_10s; /* device time held over the last 10 s; -1: unknown */
    uint32_t lease_count;
    int32_t holder_pid; /* DEVICE_HELD */
    uint32_t holder_uid;
};

const char *grade_name(enum grade g);
const char *device_state_name(enum device_state s);

/* Bytes that may be lent in all: memory less reserve. */
uint64_t device_lendable_bytes(const struct device *d);

json_t *device_to_json(const struct device *d);
int device_from_json(const json_t *j, struct device *out, struct sl_err *err);

#endif
