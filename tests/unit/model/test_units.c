/* Sizes, shares and durations: what is read, what is refused and how it is said. */
#include "../rows.h"

#include <stdlib.h>
#include <string.h>

#include "model/units.h"

static void sizes(void **state)
{
    static const struct {
        const char *label, *text;
        uint64_t want; /* 0: refused, and the message holds `say` */
        const char *say;
    } rows[] = {
        { "MiB", "512MiB", 512 * MIB, 0 },
        { "a bare letter is binary", "2g", 2 * GIB, 0 },
        { "GB is decimal", "2GB", 2000000000, 0 },
        { "a fraction that is exact", "1.5GiB", 1536 * MIB, 0 },
        { "a fraction that is not is rounded down", "0.1KiB", 102, 0 },
        { "bare bytes", "1048576", MIB, 0 },
        { "bytes with a unit", "7B", 7, 0 },
        { "small letters", "3kb", 3000, 0 },
        { "capital letter alone", "3K", 3072, 0 },
        { "the largest", "9223372036854775807", INT64_MAX, 0 },
        { "one above the largest", "9223372036854775808", 0, "too large, at most 2^63-1" },
        { "2^64", "18446744073709551616", 0, "too large, at most 2^63-1" },
        { "2^64 of something", "16EiB", 0, "too large, at most 2^63-1" },
        { "8 EiB is 2^63", "8EiB", 0, "too large" },
        { "nothing", "", 0, "empty size: a size is written like 512MiB" },
        { "zero", "0", 0, "a size is at least 1 byte" },
        { "zero of something", "0.0GiB", 0, "a size is at least 1 byte" },
        { "less than a byte", "0.0001KiB", 0, "a size is at least 1 byte" },
        { "negative", "-1", 0, "a size cannot be negative" },
        { "exponent", "1e3", 0, "\"e3\" is not a unit: KiB MiB" },
        { "space before", " 1GiB", 0, "a size has no spaces" },
        { "space between", "1 GiB", 0, "a size has no spaces" },
        { "only spaces", "  ", 0, "a size has no spaces" },
        { "something behind the unit", "5Gb?", 0, "\"Gb?\" is not a unit" },
        { "gigabits", "5Gb", 0, "\"Gb\" is not a unit" },
        { "a word", "lots", 0, "\"lots\" is not a size" },
        { "nan", "nan", 0, "is not a size" },
        { "plus", "+1", 0, "is not a size" },
        { "hexadecimal", "0x10", 0, "\"x10\" is not a unit" },
        { "half a byte", "1.5", 0, "bytes are whole" },
        { "half a byte with a unit", "1.5B", 0, "bytes are whole" },
        { "a point and nothing", "1.GiB", 0, "digits behind the point" },
        { "two points", "1.2.3GiB", 0, "is not a unit" },
        { "too many digits", "1.0000000000000000001GiB", 0, "1 to 18 digits" },
        { "only a unit", "GiB", 0, "is not a size" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sl_err err = { 0 };
        uint64_t have = 99;
        int rc = units_parse_size(rows[i].text, &have, &err);
        if (rows[i].want) {
            ROW(rows[i].label, rc == 0 && have == rows[i].want);
        } else {
            ROW(rows[i].label, rc == -SL_INVALID && have == 99);
            if (!strstr(err.msg, rows[i].say))
                fail_msg("row \"%s\": it says: %s", rows[i].label, err.msg);
        }
    }
}

static void sizes_printed(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *exact, *human;
    } rows[] = {
        { 1, "1B", "1 B" },
        { 1023, "1023B", "1023 B" },
        { KIB, "1KiB", "1.00 KiB" },
        { 512 * MIB, "512MiB", "512 MiB" },
        { 2 * GIB, "2GiB", "2.00 GiB" },
        { 1536 * MIB, "1536MiB", "1.50 GiB" },
        { 2000000000, "2000000000B", "1.86 GiB" },
        { 1024 * MIB - 1, "1073741823B", "1023 MiB" },
        { 883 * MIB - 1, "925892607B", "882 MiB" },
        { 99 * GIB + 980 * MIB, "102356MiB", "99.9 GiB" },
        { 10 * GIB + 10 * MIB, "10250MiB", "10.0 GiB" },
        { INT64_MAX, "9223372036854775807B", "7.99 EiB" },
        { 0, "0B", "0 B" },
        { UINT64_MAX, "-", "-" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char out[32];
        ROW_STR(rows[i].exact, units_format_size(rows[i].bytes, out), rows[i].exact);
        ROW_STR(rows[i].exact, units_format_size_human(rows[i].bytes, out), rows[i].human);
    }
}

static void shares(void **state)
{
    static const struct {
        const char *label, *text;
        uint32_t request, limit; /* 0: refused */
        bool is_range;
        const char *say;
    } rows[] = {
        { "percent", "25", 250, 250, false, 0 },
        { "a tenth", "12.5", 125, 125, false, 0 },
        { "with the sign", "25%", 250, 250, false, 0 },
        { "the smallest", "0.1", 1, 1, false, 0 },
        { "all", "100", 1000, 1000, false, 0 },
        { "all, with a point", "100.0%", 1000, 1000, false, 0 },
        { "a range", "20..60", 200, 600, true, 0 },
        { "a range with signs and tenths", "0.1%..99.9%", 1, 999, true, 0 },
        { "a range of one value", "30..30", 300, 300, true, 0 },
        { "nothing", "", 0, 0, false, "empty share: compute is between 0.1 and 100" },
        { "zero", "0", 0, 0, false, "0: compute is between 0.1 and 100 percent" },
        { "zero point zero", "0.0", 0, 0, false, "between 0.1 and 100" },
        { "101 %", "101%", 0, 0, false, "101%: compute is between 0.1 and 100 percent" },
        { "a tenth too much", "100.1", 0, 0, false, "between 0.1 and 100" },
        { "very much", "99999999999999999999", 0, 0, false, "between 0.1 and 100" },
        { "negative", "-5", 0, 0, false, "-5: compute is between 0.1 and 100" },
        { "turned round", "70..30", 0, 0, false, "did you mean 30%..70%?" },
        { "too fine", "12.55", 0, 0, false, "a tenth of a percent is the finest" },
        { "nan", "nan", 0, 0, false, "\"nan\" is not a share" },
        { "inf", "inf", 0, 0, false, "is not a share" },
        { "exponent", "1e1", 0, 0, false, "is not a share" },
        { "space", "25 %", 0, 0, false, "is not a share" },
        { "half a range", "20..", 0, 0, false, "is not a share" },
        { "the other half", "..60", 0, 0, false, "is not a share" },
        { "two ranges", "20..40..60", 0, 0, false, "is not a share" },
        { "three points", "20...60", 0, 0, false, "is not a share" },
        { "a point and nothing", "25.", 0, 0, false, "a digit is missing" },
        { "two signs", "25%%", 0, 0, false, "is not a share" },
        { "only a sign", "%", 0, 0, false, "is not a share" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sl_err err = { 0 };
        struct units_share have = { 7, 7, false };
        int rc = units_parse_share(rows[i].text, &have, &err);
        if (rows[i].request) {
            ROW(rows[i].label, rc == 0);
            ROW(rows[i].label, have.request_permille == rows[i].request);
            ROW(rows[i].label, have.limit_permille == rows[i].limit);
            ROW(rows[i].label, have.is_range == rows[i].is_range);
        } else {
            ROW(rows[i].label, rc == -SL_INVALID && have.request_permille == 7);
            if (!strstr(err.msg, rows[i].say))
                fail_msg("row \"%s\": it says: %s", rows[i].label, err.msg);
        }
    }
}

static void durations(void **state)
{
    static const struct {
        const char *label, *text;
        uint64_t want;      /* UINT64_MAX: refused */
        const char *normal; /* or what the message says */
    } rows[] = {
        { "bare seconds", "90", 90000, "1m30s" },
        { "seconds", "90s", 90000, "1m30s" },
        { "minutes", "5m", 300000, "5m" },
        { "hours", "2h", 7200000, "2h" },
        { "days", "1d", 86400000, "1d" },
        { "milliseconds", "250ms", 250, "250ms" },
        { "compound", "1h30m", 5400000, "1h30m" },
        { "minutes and milliseconds", "1m1ms", 60001, "1m1ms" },
        { "zero", "0", 0, "0s" },
        { "nothing", "", UINT64_MAX, "empty duration" },
        { "turned round", "30m1h", UINT64_MAX, "out of order at \"h\"" },
        { "twice", "1h1h", UINT64_MAX, "out of order" },
        { "a unit is missing at the end", "1h30", UINT64_MAX, "a unit is missing" },
        { "unknown unit", "3w", UINT64_MAX, "at \"w\"" },
        { "negative", "-5s", UINT64_MAX, "cannot be negative" },
        { "space", "5 m", UINT64_MAX, "a unit is missing" },
        { "a fraction", "1.5h", UINT64_MAX, "a unit is missing" },
        { "only a unit", "m", UINT64_MAX, "is not a duration" },
        { "too long", "99999999999999999999s", UINT64_MAX, "too long" },
        { "too long in days", "9223372036854775807d", UINT64_MAX, "too long" },
        { "too long in bare seconds", "9223372036854775807", UINT64_MAX, "too long" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sl_err err = { 0 };
        uint64_t have = 99;
        char out[32];
        int rc = units_parse_duration(rows[i].text, &have, &err);
        if (rows[i].want != UINT64_MAX) {
            ROW(rows[i].label, rc == 0 && have == rows[i].want);
            ROW_STR(rows[i].label, units_format_duration(have, out), rows[i].normal);
        } else {
            ROW(rows[i].label, rc == -SL_INVALID && have == 99);
            if (!strstr(err.msg, rows[i].normal))
                fail_msg("row \"%s\": it says: %s", rows[i].label, err.msg);
        }
    }
}

/* xorshift64*, so that a failure can be seen again. */
static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return *seed * 2685821657736338717ull;
}

static void what_is_printed_is_read_back(void **state)
{
    uint64_t seed = 42;
    for (int i = 0; i < 20000; i++) {
        char text[32];
        uint64_t number = next_random(&seed) >> (1 + next_random(&seed) % 62), again;
        if (number == 0)
            number = 1;
        number <<= number < (1ull << 30) ? next_random(&seed) % 32 : 0;

        units_format_size(number, text);
        if (units_parse_size(text, &again, NULL) || again != number)
            fail_msg("size %llu is printed %s", (unsigned long long)number, text);
        units_format_duration(number, text);
        if (units_parse_duration(text, &again, NULL) || again != number)
            fail_msg("duration %llu is printed %s", (unsigned long long)number, text);

        uint32_t request = 1 + number % 1000,
                 limit = request + next_random(&seed) % (1001 - request);
        struct units_share share;
        units_format_share(request, limit, text);
        if (units_parse_share(text, &share, NULL) || share.request_permille != request ||
            share.limit_permille != limit)
            fail_msg("share %u..%u is printed %s", request, limit, text);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sizes),
    cmocka_unit_test(sizes_printed),
    cmocka_unit_test(shares),
    cmocka_unit_test(durations),
    cmocka_unit_test(what_is_printed_is_read_back),
};
ROWS_MAIN(tests)
