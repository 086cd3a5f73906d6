/*
 * Sizes, shares and durations as people write them and as we print them.
 *
 * Parsers take the whole string or fail with -SL_INVALID and a message that
 * says what would be right.  Printers give the normal form, which the parsers
 * read back to the same value.
 */
#ifndef MODEL_UNITS_H
#define MODEL_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

#define KIB (1ull << 10)
#define MIB (1ull << 20)
#define GIB (1ull << 30)

/* "512MiB", "2g" (= GiB), "2GB" (= 2 * 10^9), "1.5GiB", "1048576" (bytes).  0,
 * negative, and more than 2^63-1 are refused. */
int units_parse_size(const char *text, uint64_t *bytes, struct sl_err *err);

/* The shortest exact form: "512MiB", "2GiB", "2000000000B".  Returns out. */
const char *units_format_size(uint64_t bytes, char out[32]);

/* For tables: three significant digits or what there is, "1.50 GiB".  Cut, not rounded: what is
 * said to be free can be asked for. */
const char *units_format_size_human(uint64_t bytes, char out[32]);

/* A share of compute.  "25", "12.5", "25%": request == limit.  "20..60":
 * request..limit, which implies mode burst.  Permille, 1..1000. */
struct units_share {
    uint32_t request_permille, limit_permille;
    bool is_range;
};
int units_parse_share(const char *text, struct units_share *out, struct sl_err *err);
/* "25%", "12.5%", "20%..60%". */
const char *units_format_share(uint32_t request_permille, uint32_t limit_permille,
                               char out[32]);

/* "90" (seconds), "90s", "5m", "2h", "1d", "250ms", "1h30m" -> milliseconds. */
int units_parse_duration(const char *text, uint64_t *ms, struct sl_err *err);
const char *units_format_duration(uint64_t ms, char out[32]);

#endif
