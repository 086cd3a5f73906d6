/* Mean, deviation, and Student's interval. */
#include "sim/stats.h"

#include <math.h>

#include "core/macros.h"

/* The 0.975 quantile of Student's t. */
static double t_quantile(size_t freedom)
{
    static const double table[] = { NAN,   12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                                    2.306, 2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
                                    2.120, 2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069,
                                    2.064, 2.060,  2.056, 2.052, 2.048, 2.045, 2.042 };
    /* beyond: the first term of its expansion in 1 / freedom */
    return freedom < ARRAY_LEN(table) ? table[freedom] : 1.960 + 2.372 / (double)freedom;
}

struct stats stats_of(const double *values, size_t count)
{
    double sum = 0, squares = 0, n = (double)count;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    double mean = count ? sum / n : NAN;
    for (size_t i = 0; i < count; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    double std = count > 1 ? sqrt(squares / (n - 1)) : NAN;
    double half = count > 1 ? t_quantile(count - 1) * std / sqrt(n) : NAN;
    return (struct stats){ mean, std, mean - half, mean + half };
}
