/* Decimal numbers to integers of a fixed place, and back. */
#include "sim/number.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The digits of one number: whole, then behind the point. */
struct digits {
    const char *whole, *part;
    size_t whole_len, part_len;
    bool negative;
};

static bool split(const char *text, size_t len, struct digits *d)
{
    const char *end = text + len, *p = text;
    d->negative = p < end && *p == '-';
    if (d->negative)
        p++;
    for (d->whole = p; p < end && isdigit((unsigned char)*p); p++)
        ;
    d->whole_len = (size_t)(p - d->whole);
    d->part = p;
    d->part_len = 0;
    if (p == end)
        return d->whole_len > 0;
    if (*p != '.' || d->whole_len == 0)
        return false;
    for (d->part = ++p; p < end && isdigit((unsigned char)*p); p++)
        ;
    d->part_len = (size_t)(p - d->part);
    return p == end && d->part_len > 0;
}

static bool append(uint64_t *value, int digit)
{
    return !__builtin_mul_overflow(*value, 10, value) &&
           !__builtin_add_overflow(*value, (uint64_t)digit, value);
}

static enum number_fault parse(const char *text, size_t len, unsigned places, bool exact,
                               uint64_t *out)
{
    struct digits d;
    uint64_t value = 0;
    if (!split(text, len, &d))
        return NUMBER_NONE;
    if (d.negative)
        return NUMBER_NEGATIVE;
    for (size_t i = 0; i < d.whole_len; i++)
        if (!append(&value, d.whole[i] - '0'))
            return NUMBER_LARGE;
    for (size_t i = 0; i < places; i++)
        if (!append(&value, i < d.part_len ? d.part[i] - '0' : 0))
            return NUMBER_LARGE;
    for (size_t i = places; exact && i < d.part_len; i++)
        if (d.part[i] != '0')
            return NUMBER_FINE;
    if (d.part_len > places && d.part[places] >= '5' && value++ == UINT64_MAX)
        return NUMBER_LARGE;
    *out = value;
    return NUMBER_OK;
}

enum number_fault number_parse(const char *text, size_t len, unsigned places, uint64_t *out)
{
    return parse(text, len, places, true, out);
}

enum number_fault number_parse_rounded(const char *text, size_t len, unsigned places,
                                       uint64_t *out)
{
    return parse(text, len, places, false, out);
}

const char *number_format(uint64_t value, unsigned places, char out[32])
{
    uint64_t power = 1;
    for (unsigned i = 0; i < places; i++)
        power *= 10;
    if (value % power == 0) {
        snprintf(out, 32, "%" PRIu64, value / power);
        return out;
    }
    snprintf(out, 32, "%" PRIu64 ".%0*" PRIu64, value / power, (int)places, value % power);
    for (size_t len = strlen(out); out[len - 1] == '0'; len--)
        out[len - 1] = '\0';
    return out;
}
