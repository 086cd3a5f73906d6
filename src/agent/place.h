/*
 * Placement on one machine: which devices a request gets, or what is in its way.
 *
 * Pure: devices and leases in, a verdict out.  Best fit in two dimensions
 * (memory and permille).  These always hold for what it admits, per device:
 *   - the sum of memory requests, and of what is held above them,
 *     <= memory - reserve; of permille <= 1000;
 *   - the sum of memory limits <= that, or <= overcommit * memory where the
 *     operator declared an over-commit;
 *   - at grade `front` one tenant only, unless the device's share_tenants;
 *   - at most one lease that spans several devices.
 * A lease counts from its grant until it is released, draining included.
 */
#ifndef AGENT_PLACE_H
#define AGENT_PLACE_H

#include <jansson.h>

#include "model/device.h"
#include "model/lease.h"

struct place_policy {
    uint32_t mem_overcommit_permille; /* 1000: none */
};

/* What is taken of one device.  What programs hold above their requests is as gone as
 * what is promised: bytes cannot be taken back, and the broker counts them too. */
struct place_use {
    uint64_t mem_request_bytes, mem_limit_bytes;
    uint64_t mem_above_bytes;     /* held above the requests */
    const struct lease *borrower; /* who holds most of it; NULL: none */
    uint64_t borrower_bytes;
    uint32_t permille, lease_count;
    uint32_t uid; /* of its leases, with lease_count > 0 */
    bool mixed;   /* several uids already */
    bool spanned; /* carries a lease on several devices */
};

struct place_verdict {
    enum sl_code code; /* SL_OK, or why not */
    bool never;        /* not even on this machine emptied: waiting is vain */
    uint32_t device[LEASE_MAX_SLICES]; /* positions in `devices`, with SL_OK */
    const char *cause; /* "memory", "compute", "tenancy", "spanning", "devices",
                          "state", "filter"; lease_ask(): "queue" */
    char why[240];     /* a sentence */
    /* lendable now, of the devices that the request names: for a request that is its own
     * limit */
    uint64_t largest_free_bytes, total_free_bytes;
    uint32_t largest_free_permille;  /* on the device with the most time left */
    int32_t largest_free_device;     /* position, -1: none */
    uint64_t largest_slice_bytes;    /* a slice that would fit now with this compute */
    uint64_t largest_limit_bytes;    /* and the limit that it could have at most */
    uint32_t fitting;                /* devices that have room for a slice */
    uint64_t largest_lendable_bytes; /* on one device when it is empty */
};

/* Which devices `name` means: an id, else an index, else a model, else a part of an id or
 * model, in any case; empty means all.  SL_NOT_FOUND for none, SL_INVALID where a part
 * fits several models. */
enum sl_code place_named(const struct device *devices, uint32_t count, const char *name,
                         bool *named);

/* Sum up the leases; `except` (may be NULL) is left out. */
void place_sum(const struct device *devices, uint32_t count,
               const struct lease *const *leases, uint32_t lease_count,
               const struct lease *except, struct place_use *use);

void place_find(const struct device *devices, const struct place_use *use, uint32_t count,
                const struct lease_request *q, uint32_t uid,
                const struct place_policy *policy, struct place_verdict *out);

/* May this slice stand on its device beside `use` (the others)?  For a resize. */
bool place_slice_fits(const struct device *d, const struct place_use *use,
                      const struct lease_slice *s, const struct place_policy *policy,
                      const char **cause);

/* Bytes and permille of a slice that this request asks, of no device yet. */
void place_slice_ask(const struct lease_request *q, struct lease_slice *out);
/* The same of `d`. */
void place_slice_fill(const struct device *d, const struct lease_request *q,
                      struct lease_slice *out);

/* The members that a problem gets: "cause", "never", "free", and "alternatives", a list of
 * sentences that each start with what to change. */
json_t *place_explain(const struct place_verdict *v, const struct device *devices,
                      uint32_t count, const struct lease_request *q);

#endif
