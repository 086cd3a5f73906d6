/*
 * Exact decimal numbers: "12.50" with three places is 12500.  No floating point,
 * no exponent, no plus sign.
 */
#ifndef SIM_NUMBER_H
#define SIM_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum number_fault {
    NUMBER_OK,
    NUMBER_NONE,     /* no number at all */
    NUMBER_NEGATIVE, /* a number with a minus sign */
    NUMBER_LARGE,    /* above UINT64_MAX */
    NUMBER_FINE,     /* a digit other than 0 behind the last place */
};

/* The value in units of 10^-places (at most 9). */
enum number_fault number_parse(const char *text, size_t len, unsigned places,
                               uint64_t *out);

/* The same rounded to the nearest (half up) where the file has more digits. */
enum number_fault number_parse_rounded(const char *text, size_t len, unsigned places,
                                       uint64_t *out);

/* Back to decimal, without trailing zeros: 12500 with three places is "12.5". */
const char *number_format(uint64_t value, unsigned places, char out[32]);

#endif
