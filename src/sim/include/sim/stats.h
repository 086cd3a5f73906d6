/* Means over a few runs, and how far to trust them. */
#ifndef SIM_STATS_H
#define SIM_STATS_H

#include <stddef.h>

/* NAN where there is nothing to say: no values, or one for a deviation. */
struct stats {
    double mean;
    double std;       /* of a sample: n - 1 */
    double low, high; /* the 95 % interval of the mean, by Student's t */
};

/* A value that is NAN makes all of it NAN. */
struct stats stats_of(const double *values, size_t count);

#endif
