/*
 * A lease: the right to one or more slices for a tenant, from grant to release.
 *
 * Numbers are given out by whoever owns the journal, ascending, never reused;
 * text form "L7".  The epoch grows with every change of what the lease may use.
 * Bytes, permille; wall-clock times are milliseconds since 1970 (RFC 3339 in
 * JSON).
 */
#ifndef MODEL_LEASE_H
#define MODEL_LEASE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "model/device.h"

#define LEASE_NAME_SIZE  64
#define LEASE_MAX_SLICES 8

#define LEASE_STATES(X)                                                     \
    X(PENDING, "pending")   /* waits for room */                            \
    X(ACTIVE, "active")     /* granted */                                   \
    X(DRAINING, "draining") /* asked to end; something of it still lives */ \
    X(RELEASED, "released") /* gone; kept for -a */

enum lease_state {
#define X(name, text) LEASE_##name,
    LEASE_STATES(X)
#undef X
        LEASE_STATE_COUNT
};

enum lease_mode { LEASE_HARD, LEASE_BURST, LEASE_BESTEFFORT }; /* = enum proto_mode */

/* What a caller asks. */
struct lease_request {
    char name[LEASE_NAME_SIZE];        /* empty: the id is the name */
    uint64_t mem_request_bytes;        /* 0: the whole device */
    uint64_t mem_limit_bytes;          /* 0: = request */
    uint32_t compute_request_permille; /* default 1000 */
    uint32_t compute_limit_permille;
    enum lease_mode mode;
    uint32_t priority;           /* 0..100, default 50 */
    uint32_t slice_count;        /* devices wanted, default 1 */
    char device[DEVICE_ID_SIZE]; /* id, index, model or a part; empty: any */
    bool fail_closed;
    uint64_t time_ms;        /* longest life; 0: no bound */
    uint64_t wait_ms;        /* for room; 0: not, UNKNOWN_U64: for ever */
    uint64_t max_kernel_ms;  /* 0: 10 s */
    uint32_t cpu_milli;      /* host CPU; 0: no bound */
    uint64_t host_mem_bytes; /* host memory; 0: no bound */
};

struct lease_slice {
    char device[DEVICE_ID_SIZE]; /* empty: it waits for one */
    uint32_t device_index;
    uint64_t mem_request_bytes, mem_limit_bytes; /* 0 while it waits for a whole device */
    uint32_t compute_request_permille, compute_limit_permille;

    /* observed; UNKNOWN_U64 / -1 while nobody knows */
    uint64_t mem_used_bytes;       /* committed + reserved */
    uint64_t mem_over_bytes;       /* above the limit after a shrink */
    int32_t achieved_permille_10s; /* device time held over the last 10 s */
    uint64_t held_ns, turns, wait_ns, overrun_ns, kernels, copies, ungated, refused;
    bool holds, waits, late, stuck;
};

struct lease {
    uint64_t number, epoch;
    char name[LEASE_NAME_SIZE];
    char tenant[32]; /* "uid:1000" */
    uint32_t uid;
    enum lease_state state;
    enum lease_mode mode;
    uint32_t priority;
    bool fail_closed, emulated;
    uint32_t slice_count;
    struct lease_slice slice[LEASE_MAX_SLICES];
    struct grades grades;
    char placement[24]; /* how the front got in: "mount", "environment" */
    uint64_t time_ms, max_kernel_ms;
    uint32_t cpu_milli;
    uint64_t host_mem_bytes;
    char host_limits[64];    /* who holds cpu and host memory, or why nobody */
    uint64_t granularity_ns; /* turn period that the share implies */
    uint64_t created_ms, granted_ms, released_ms; /* 0: not yet */
    char why[200];                                /* pending or released: the cause */
    int32_t shim_pid;                             /* 0: none yet */
    uint64_t shim_start_ticks;
    uint64_t cgroup_id;
    bool exited;
    int32_t exit_status;        /* as a shell says it: 0..255; with exited */
    char command[160];          /* for people: program and arguments, cut */
    uint32_t clients, suspects; /* processes that said hello */
};

const char *lease_state_name(enum lease_state s);
const char *lease_mode_name(enum lease_mode m);
int lease_mode_parse(const char *text, enum lease_mode *out, struct sl_err *err);

/* "L7" <-> 7. */
const char *lease_format_id(uint64_t number, char out[24]);
int lease_parse_id(const char *text, uint64_t *number, struct sl_err *err);

/* Defaults: compute 100 %, mode hard, memory the whole device. */
void lease_request_init(struct lease_request *r);
/* Fill what follows from the rest and refuse what cannot be: request above
 * limit, a limit above the request without burst, names that look like ids. */
int lease_request_check(struct lease_request *r, struct sl_err *err);

json_t *lease_request_to_json(const struct lease_request *r);
int lease_request_from_json(const json_t *j, struct lease_request *out, struct sl_err *err);
/* The public form (`ps -o json`); also what the journal keeps. */
json_t *lease_to_json(const struct lease *l);
int lease_from_json(const json_t *j, struct lease *out, struct sl_err *err);

#endif
