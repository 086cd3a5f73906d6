/*
 * The forwarding libOpenCL.so.1: stands in the place of the system's loader,
 * switches our layer on and hands every call to the real loader.
 *
 * The stubs are generated (gen/opencl.awk); this is what they share.
 */
#ifndef OPENCL_FORWARD_H
#define OPENCL_FORWARD_H

#include <stdatomic.h>
#include <stdbool.h>

#include "opencl/headers.h"

#define FWD_EXPORT __attribute__((visibility("default")))

struct fwd_row {
    const char *name;
    void **slot; /* where the real loader's function is kept */
};

/* Ends with a row of NULLs. */
extern const struct fwd_row fwd_rows[];

/* 0: not opened yet; 1: the real loader is there and our layer is on; -1: not. */
extern _Atomic int fwd_state;

/* Opens it once; any thread.  The calls of the opening thread itself pass. */
bool fwd_open(void);

static inline bool fwd_ready(void)
{
    int state = atomic_load_explicit(&fwd_state, memory_order_acquire);
    return state ? state > 0 : fwd_open();
}

#endif
