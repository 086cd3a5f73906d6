/*
 * One function more for the OpenCL front, in the bench build only: the next layer's own functions,
 * so that a program can call the driver past the front and both sides are measured in
 * one process.  It must not be in the product: it is a way past the gate.
 */
#include "opencl/layer.h"

#define BENCH_EXPORT __attribute__((visibility("default")))

BENCH_EXPORT const cl_icd_dispatch *sluice_bench_next(void);

const cl_icd_dispatch *sluice_bench_next(void)
{
    return &ocl_next;
}
