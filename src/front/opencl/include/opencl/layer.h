/*
 * The OpenCL front as a layer of the ICD loader: what its files share.
 *
 * Generated wrappers (gen/opencl.awk) and hand-written bodies (ocl_cl*) are
 * called by the loader in the place of the driver's functions, from any thread
 * of a tenant's program.  Nothing here exits, aborts or prints.
 */
#ifndef OPENCL_LAYER_H
#define OPENCL_LAYER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "front/gate.h"
#include "front/link.h"
#include "opencl/headers.h"
#include "opencl_gen.h"

/* The layer below, that is the driver.  Written once, by clInitLayer. */
extern cl_icd_dispatch ocl_next;

/* One row for each dispatch slot; ends with a row of NULLs. */
struct ocl_core_row {
    const char *name;
    const char *role;
    void (*wrapper)(void); /* NULL: the driver's own function */
};

/* One row for each extension function that the table knows. */
enum ocl_fn_kind { OCL_FN_WRAP, OCL_FN_PASS, OCL_FN_HIDE };
struct ocl_fn_row {
    const char *name;
    enum ocl_fn_kind kind;
    void (*wrapper)(void);
    void (**next)(void); /* where the driver's address is kept */
};

extern const struct ocl_core_row ocl_core_rows[];
extern const struct ocl_fn_row ocl_fn_rows[];
extern const char *const ocl_shown_extensions[];

/* Generated: put our wrappers over a table that was filled by the driver. */
void ocl_fill_table(cl_icd_dispatch *table);

/* Is this row switched off for a test of the tests?  Never in the library that is shipped.
 */
#ifdef SLUICE_TEST_SWITCH
bool ocl_test_pass(const char *name);
#else
static inline bool ocl_test_pass(const char *name)
{
    return false;
}
#endif

/* ---- session: the lease as this process sees it ------------------------ */

/* A leased device, found among the driver's. */
struct ocl_device {
    cl_device_id id;
    cl_platform_id platform;
    cl_device_type type;
    uint32_t slot; /* of the page; also of session.gates */
    uint64_t driver_max_alloc_bytes;
};

struct ocl_session {
    struct link link;
    struct gates gates;
    struct cost_table costs[PROTO_MAX_SLOTS];
    struct ocl_device device[PROTO_MAX_SLOTS];
    uint32_t device_count; /* 0: no broker, no lease, or nothing matched */
};

/* Started by the first call that needs it, once a process: hello, then match devices.
 * Never NULL; without a lease it has no devices.  Waits at most for the broker. */
struct ocl_session *ocl_session(void);

/* The leased device of this id, NULL if it is none. */
const struct ocl_device *ocl_device_find(const struct ocl_session *s, cl_device_id id);

/* Bytes that the lease may use on this device now. */
uint64_t ocl_limit_bytes(const struct ocl_session *s, const struct ocl_device *d);
uint64_t ocl_free_bytes(const struct ocl_session *s, const struct ocl_device *d);
/* The largest allocation shown: min(driver's, limit). */
uint64_t ocl_max_alloc_bytes(const struct ocl_session *s, const struct ocl_device *d);

/* A call goes past the gate: count it.  False: the lease is fail-closed, refuse it. */
bool ocl_may_pass(void);

/* Answer an info query in the way of the API. */
cl_int ocl_info_put(const void *value, size_t size, size_t room, void *out,
                    size_t *size_ret);

#include "opencl/submit.h"

#endif
