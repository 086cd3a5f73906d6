/*
 * Sizes, shares and durations from any bytes: what is read is printed and read
 * back to the same, what is refused says why and leaves the output alone.  The
 * first byte says which: s, c or d; any other means all three.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "model/units.h"

const char *const fuzz_seeds[] = {
    "s512MiB",      "s2g", "s1.5GiB", "s9223372036854775807",
    "s2GB",         "c25", "c12.5%",  "c20..60",
    "c0.1%..99.9%", "d90", "d1h30m",  "d250ms",
    "d1d2h3m4s5ms", NULL,
};

static void check_size(const char *text)
{
    char out[32];
    struct sl_err err = { 0 };
    uint64_t have = 99, again;
    if (units_parse_size(text, &have, &err) < 0) {
        FUZZ_CHECK(have == 99 && err.msg[0]);
        return;
    }
    FUZZ_CHECK(have > 0 && have <= INT64_MAX);
    FUZZ_CHECK(units_parse_size(units_format_size(have, out), &again, NULL) == 0);
    FUZZ_CHECK(again == have);
    FUZZ_CHECK(strlen(units_format_size_human(have, out)) < 16);
}

static void check_share(const char *text)
{
    char out[32];
    struct sl_err err = { 0 };
    struct units_share have = { 7777, 0, false }, again;
    if (units_parse_share(text, &have, &err) < 0) {
        FUZZ_CHECK(have.request_permille == 7777 && err.msg[0]);
        return;
    }
    FUZZ_CHECK(have.request_permille >= 1 && have.limit_permille <= 1000);
    FUZZ_CHECK(have.request_permille <= have.limit_permille);
    units_format_share(have.request_permille, have.limit_permille, out);
    FUZZ_CHECK(units_parse_share(out, &again, NULL) == 0);
    FUZZ_CHECK(again.request_permille == have.request_permille);
    FUZZ_CHECK(again.limit_permille == have.limit_permille);
}

static void check_duration(const char *text)
{
    char out[32];
    struct sl_err err = { 0 };
    uint64_t have = 99, again;
    if (units_parse_duration(text, &have, &err) < 0) {
        FUZZ_CHECK(have == 99 && err.msg[0]);
        return;
    }
    FUZZ_CHECK(units_parse_duration(units_format_duration(have, out), &again, NULL) == 0);
    FUZZ_CHECK(again == have);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *text = malloc(size);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (data[0] != 'c' && data[0] != 'd')
        check_size(text);
    if (data[0] != 's' && data[0] != 'd')
        check_share(text);
    if (data[0] != 's' && data[0] != 'c')
        check_duration(text);
    free(text);
    return 0;
}
