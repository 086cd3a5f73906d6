/*
 * bench-load inside a lease: the arguments, the calibration, the rate it reports.
 * Used by the benches that run it on a stage.
 */
#ifndef BENCH_LEASE_LOAD_H
#define BENCH_LEASE_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "stage.h"

struct load {
    const char *mode; /* of bench-load */
    double kernel_us;
    unsigned gap_us;
    double seconds;
    uint64_t start_ns; /* 0: at once */
    bool host_on_cpu1; /* the device's thread is on CPU 0 */
    bool latencies;
};

/* Start it under `sluice run OPTIONS`; options NULL: without Sluice. */
pid_t load_start(struct stage *s, const struct load *l, const char *const *options,
                 const char *out);

/* Kernels a second by its lines between two moments (0, UINT64_MAX: all); NaN if they are too few. */
double load_rate(const char *out, uint64_t from_ns, uint64_t to_ns);

/* Its "lat" lines in microseconds; returns how many. */
size_t load_latencies(const char *out, double *us, size_t room);

/* Environment of the children: fixed affinity, and one PoCL thread if asked. */
void load_environment(bool one_thread);

#endif
