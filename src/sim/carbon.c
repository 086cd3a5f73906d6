/* Hourly carbon intensity. */
#include "sim/carbon.h"

#include <stdlib.h>

#include "core/macros.h"
#include "sim/csv.h"

#define HOUR_S        3600u
#define MAX_G_PER_KWH 100000ull
#define MICRO         1000000ull

enum { TIMESTAMP, AVG_CI };

static const struct csv_column columns[] = {
    [TIMESTAMP] = { "timestamp" },
    [AVG_CI] = { "avg_CI" },
};

static void read_hour(struct csv *c, struct carbon *carbon)
{
    uint64_t time_s = csv_time_us(c, TIMESTAMP) / MICRO, *value;
    if (carbon->hours == 0)
        carbon->begin_s = time_s;
    if (time_s != carbon->begin_s + (uint64_t)carbon->hours * HOUR_S)
        csv_fail_field(c, TIMESTAMP, "is not the hour after that of the row before");
    value = &carbon->micro_g_per_kwh[carbon->hours++];
    if (csv_has(c, AVG_CI)) {
        *value = csv_rounded(c, AVG_CI, 6, 0, MAX_G_PER_KWH * MICRO);
    } else {
        *value = CARBON_UNKNOWN;
        carbon->unknown_hours++;
    }
}

int carbon_read(const struct text *text, struct carbon *out, struct sl_err *err)
{
    struct csv csv;
    struct carbon carbon = { 0 };
    csv_begin(&csv, text, columns, ARRAY_LEN(columns), err);
    carbon.micro_g_per_kwh = csv_array(&csv, sizeof *carbon.micro_g_per_kwh);
    while (csv_next(&csv))
        read_hour(&csv, &carbon);
    if (csv.rc < 0)
        carbon_finish(&carbon);
    else
        *out = carbon;
    return csv.rc;
}

void carbon_finish(struct carbon *c)
{
    free(c->micro_g_per_kwh);
    *c = (struct carbon){ 0 };
}
