/*
 * Average carbon intensity of a grid, hour by hour: `timestamp` and `avg_CI` of a file
 * with as many columns as it likes.  A measured number: g CO2 per kWh in millionths,
 * rounded.
 */
#ifndef SIM_CARBON_H
#define SIM_CARBON_H

#include <stdint.h>

#include "core/err.h"
#include "sim/text.h"

#define CARBON_UNKNOWN UINT64_MAX

/* micro_g_per_kwh[i] holds from begin_s + 3600 i on, without a gap: an hour that was
 * not measured is CARBON_UNKNOWN.  At least one hour; the caller frees by _finish. */
struct carbon {
    uint64_t begin_s; /* since 1970, UTC */
    uint32_t hours, unknown_hours;
    uint64_t *micro_g_per_kwh;
};

int carbon_read(const struct text *text, struct carbon *out, struct sl_err *err);
void carbon_finish(struct carbon *c);

#endif
