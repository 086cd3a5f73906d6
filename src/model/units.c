/* Sizes, shares and durations: text to numbers and back. */
#include "model/units.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/macros.h"

#define SIZE_HINT \
    "a size is written like 512MiB, 1.5GiB, 2g (= GiB), 2GB (= 10^9) or in bytes"
#define SHARE_HINT     "compute is between 0.1 and 100 percent"
#define SHARE_EXAMPLES SHARE_HINT ", such as 25, 12.5%% or 20..60"
#define DURATION_HINT  "a duration is written like 90 (seconds), 250ms, 5m, 2h, 1d or 1h30m"

/* Digits at *p into *out; false where there is none or it exceeds 2^63-1. */
static bool take_number(const char **p, uint64_t *out)
{
    uint64_t value = 0;
    const char *start = *p;
    for (; isdigit((unsigned char)**p); (*p)++) {
        if (value > (INT64_MAX - (uint64_t)(**p - '0')) / 10)
            return false;
        value = value * 10 + (uint64_t)(**p - '0');
    }
    *out = value;
    return *p > start;
}

static bool all_digits(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == '\0';
}

/* ---- sizes ---- */

/* The first of equal factors is the one printed. */
static const struct {
    const char *name;
    uint64_t factor;
} size_units[] = {
    { "EiB", 1ull << 60 },
    { "PiB", 1ull << 50 },
    { "TiB", 1ull << 40 },
    { "GiB", 1ull << 30 },
    { "MiB", 1ull << 20 },
    { "KiB", 1ull << 10 },
    { "B", 1 },
    { "k", 1ull << 10 },
    { "m", 1ull << 20 },
    { "g", 1ull << 30 },
    { "t", 1ull << 40 },
    { "p", 1ull << 50 },
    { "KB", 1000 },
    { "MB", 1000000 },
    { "GB", 1000000000 },
    { "TB", 1000000000000 },
    { "PB", 1000000000000000 },
};

/* 0 for what is no unit.  "Gb" would be gigabits, so a small b needs a small prefix. */
static uint64_t size_factor(const char *unit)
{
    if (strlen(unit) == 2 && unit[1] == 'b' && isupper((unsigned char)unit[0]))
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(size_units); i++)
        if (!strcasecmp(unit, size_units[i].name))
            return size_units[i].factor;
    return 0;
}

/* The digits behind the point, as a fraction of 10^places; at most 18 of them. */
static bool take_fraction(const char **p, uint64_t *numerator, uint64_t *power)
{
    const char *start = *p;
    if (!take_number(p, numerator) || *p - start > 18)
        return false;
    *power = 1;
    for (const char *c = start; c < *p; c++)
        *power *= 10;
    return true;
}

int units_parse_size(const char *text, uint64_t *bytes, struct sl_err *err)
{
    const char *p = text;
    uint64_t whole, part = 0, power = 1;

    if (!*text)
        return sl_fail(err, SL_INVALID, "empty size: " SIZE_HINT);
    if (text[strcspn(text, " \t\n\r\v\f")])
        return sl_fail(err, SL_INVALID, "\"%.40s\": a size has no spaces: " SIZE_HINT,
                       text);
    if (*text == '-')
        return sl_fail(err, SL_INVALID, "%.40s: a size cannot be negative: " SIZE_HINT,
                       text);
    if (!isdigit((unsigned char)*text))
        return sl_fail(err, SL_INVALID, "\"%.40s\" is not a size: " SIZE_HINT, text);
    if (!take_number(&p, &whole))
        return sl_fail(err, SL_INVALID, "%.40s: too large, at most 2^63-1 bytes", text);
    if (*p == '.' && (p++, !take_fraction(&p, &part, &power)))
        return sl_fail(err, SL_INVALID,
                       "%.40s: 1 to 18 digits behind the point: " SIZE_HINT, text);
    uint64_t factor = *p ? size_factor(p) : 1;
    if (!factor)
        return sl_fail(
            err, SL_INVALID,
            "%.40s: \"%.20s\" is not a unit: KiB MiB GiB TiB (or k m g t) count in "
            "1024, KB MB GB TB in 1000",
            text, p);
    if (power > 1 && factor == 1)
        return sl_fail(err, SL_INVALID, "%.40s: bytes are whole: " SIZE_HINT, text);

    /* a fraction that gives no whole bytes is rounded down: never more than asked */
    unsigned __int128 total =
        (unsigned __int128)whole * factor + (unsigned __int128)part * factor / power;
    if (total > INT64_MAX)
        return sl_fail(err, SL_INVALID, "%.40s: too large, at most 2^63-1 bytes", text);
    if (total == 0)
        return sl_fail(err, SL_INVALID, "%.40s: a size is at least 1 byte: " SIZE_HINT,
                       text);
    *bytes = (uint64_t)total;
    return 0;
}

const char *units_format_size(uint64_t bytes, char out[32])
{
    if (bytes == UINT64_MAX)
        return strcpy(out, "-");
    /* exact, and at most six digits: 2 GB is rather so many bytes than so many KiB */
    size_t i = 0;
    while (size_units[i].factor > 1 && (bytes == 0 || bytes % size_units[i].factor ||
                                        bytes / size_units[i].factor > 999999))
        i++;
    snprintf(out, 32, "%" PRIu64 "%s", bytes / size_units[i].factor, size_units[i].name);
    return out;
}

const char *units_format_size_human(uint64_t bytes, char out[32])
{
    if (bytes == UINT64_MAX)
        return strcpy(out, "-");
    size_t i = 0;
    while (size_units[i].factor > bytes && size_units[i].factor > 1)
        i++;
    uint64_t factor = size_units[i].factor, whole = bytes / factor;
    int places = factor == 1 || whole >= 100 ? 0 : whole >= 10 ? 1 : 2;
    unsigned scale = places == 2 ? 100 : 10;
    unsigned part = (unsigned)((unsigned __int128)(bytes % factor) * scale / factor);
    if (places)
        snprintf(out, 32, "%u.%0*u %s", (unsigned)whole, places, part, size_units[i].name);
    else
        snprintf(out, 32, "%u %s", (unsigned)whole, size_units[i].name);
    return out;
}

/* ---- shares ---- */

/* One bound, up to `end`: "25", "12.5", "25%". */
static int parse_percent(const char *text, const char *p, const char *end,
                         uint32_t *permille, struct sl_err *err)
{
    uint64_t whole, tenth = 0;
    if (p == end || (!isdigit((unsigned char)*p) && *p != '-'))
        return sl_fail(err, SL_INVALID, "\"%.40s\" is not a share: " SHARE_EXAMPLES, text);
    if (*p == '-' || !take_number(&p, &whole))
        return sl_fail(err, SL_INVALID, "%.40s: " SHARE_HINT, text);
    if (p < end && *p == '.') {
        p++;
        if (p < end && !isdigit((unsigned char)*p))
            return sl_fail(err, SL_INVALID, "\"%.40s\" is not a share: " SHARE_EXAMPLES,
                           text);
        if (p == end)
            return sl_fail(err, SL_INVALID, "%.40s: a digit is missing behind the point",
                           text);
        tenth = (uint64_t)(*p++ - '0');
        if (p < end && isdigit((unsigned char)*p))
            return sl_fail(err, SL_INVALID,
                           "%.40s: one digit behind the point: a tenth of a percent is the "
                           "finest share",
                           text);
    }
    if (p < end && *p == '%')
        p++;
    if (p != end)
        return sl_fail(err, SL_INVALID, "\"%.40s\" is not a share: " SHARE_EXAMPLES, text);
    if (whole > 100 || whole * 10 + tenth > 1000 || whole * 10 + tenth == 0)
        return sl_fail(err, SL_INVALID, "%.40s: " SHARE_HINT, text);
    *permille = (uint32_t)(whole * 10 + tenth);
    return 0;
}

int units_parse_share(const char *text, struct units_share *out, struct sl_err *err)
{
    struct units_share share = { 0 };
    const char *end = text + strlen(text), *dots = strstr(text, "..");

    if (!*text)
        return sl_fail(err, SL_INVALID, "empty share: " SHARE_HINT);
    int rc = parse_percent(text, text, dots ? dots : end, &share.request_permille, err);
    if (rc < 0)
        return rc;
    share.limit_permille = share.request_permille;
    if (dots) {
        share.is_range = true;
        rc = parse_percent(text, dots + 2, end, &share.limit_permille, err);
        if (rc < 0)
            return rc;
    }
    if (share.request_permille > share.limit_permille) {
        char turned[32];
        return sl_fail(
            err, SL_INVALID,
            "%.40s: the request (first) is above the limit (second); did you mean "
            "%s?",
            text, units_format_share(share.limit_permille, share.request_permille, turned));
    }
    *out = share;
    return 0;
}

static int format_percent(uint32_t permille, char *out, size_t size)
{
    if (permille % 10)
        return snprintf(out, size, "%u.%u%%", permille / 10, permille % 10);
    return snprintf(out, size, "%u%%", permille / 10);
}

const char *units_format_share(uint32_t request_permille, uint32_t limit_permille,
                               char out[32])
{
    int len = format_percent(request_permille, out, 32);
    if (limit_permille != request_permille && len < 30) {
        len += snprintf(out + len, 32 - (size_t)len, "..");
        format_percent(limit_permille, out + len, 32 - (size_t)len);
    }
    return out;
}

/* ---- durations ---- */

static const struct {
    const char *name;
    uint64_t ms;
} duration_units[] = {
    { "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 },
};

/* One "30m"; *next is the first unit that may still follow, so that units descend. */
static int take_duration(const char *text, const char **p, size_t *next, uint64_t *ms,
                         struct sl_err *err)
{
    uint64_t count;
    if (!isdigit((unsigned char)**p))
        return sl_fail(err, SL_INVALID, "\"%.40s\" is not a duration: " DURATION_HINT,
                       text);
    if (!take_number(p, &count))
        return sl_fail(err, SL_INVALID, "%.40s: too long: " DURATION_HINT, text);
    size_t len = strspn(*p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    size_t i = *next;
    while (i < ARRAY_LEN(duration_units) && (strlen(duration_units[i].name) != len ||
                                             strncmp(*p, duration_units[i].name, len)))
        i++;
    if (i == ARRAY_LEN(duration_units))
        return sl_fail(err, SL_INVALID,
                       "\"%.40s\": a unit is missing, unknown or out of order "
                       "at \"%.20s\": " DURATION_HINT,
                       text, *p);
    uint64_t more;
    if (__builtin_mul_overflow(count, duration_units[i].ms, &more) ||
        __builtin_add_overflow(*ms, more, ms) || *ms > INT64_MAX)
        return sl_fail(err, SL_INVALID, "%.40s: too long: " DURATION_HINT, text);
    *p += len;
    *next = i + 1;
    return 0;
}

int units_parse_duration(const char *text, uint64_t *ms, struct sl_err *err)
{
    uint64_t total = 0;
    const char *p = text;

    if (!*text)
        return sl_fail(err, SL_INVALID, "empty duration: " DURATION_HINT);
    if (*text == '-')
        return sl_fail(err, SL_INVALID,
                       "%.40s: a duration cannot be negative: " DURATION_HINT, text);
    if (all_digits(text)) {
        if (!take_number(&p, &total) || total > INT64_MAX / 1000)
            return sl_fail(err, SL_INVALID, "%.40s: too long: " DURATION_HINT, text);
        *ms = total * 1000;
        return 0;
    }
    for (size_t next = 0; *p;) {
        int rc = take_duration(text, &p, &next, &total, err);
        if (rc < 0)
            return rc;
    }
    *ms = total;
    return 0;
}

const char *units_format_duration(uint64_t ms, char out[32])
{
    if (ms == UINT64_MAX)
        return strcpy(out, "-");
    if (ms == 0)
        return strcpy(out, "0s");
    int len = 0;
    for (size_t i = 0; i < ARRAY_LEN(duration_units); i++) {
        uint64_t count = ms / duration_units[i].ms;
        ms %= duration_units[i].ms;
        if (count && len < 32)
            len += snprintf(out + len, 32 - (size_t)len, "%" PRIu64 "%s", count,
                            duration_units[i].name);
    }
    return out;
}
