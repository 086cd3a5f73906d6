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

#endif
