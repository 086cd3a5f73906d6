/* The error table: wire names, codes and messages. */
#include "../rows.h"

#include <errno.h>
#include <string.h>

#include "core/err.h"

static void every_code_has_its_own_wire_name(void **state)
{
    for (int code = 0; code < SL_CODE_COUNT; code++) {
        const struct sl_code_row *row = sl_code_row(code);
        ROW(row->wire, row->wire && row->who && row->http_status >= 200);
        ROW(row->wire, sl_code_parse(row->wire) == (enum sl_code)code);
        ROW(row->wire, code == SL_OK || row->exit_status > 0);
    }
}

static void unknown_codes_and_names_are_internal(void **state)
{
    assert_ptr_equal(sl_code_row(SL_CODE_COUNT), sl_code_row(SL_INTERNAL));
    assert_ptr_equal(sl_code_row((enum sl_code) - 1), sl_code_row(SL_INTERNAL));
    assert_int_equal(sl_code_parse("no-such"), SL_INTERNAL);
    assert_int_equal(sl_code_parse(NULL), SL_INTERNAL);
}

static void exit_codes_are_those_of_the_product(void **state)
{
    static const struct {
        const char *label;
        enum sl_code code;
        int exit;
    } rows[] = {
        { "ok is 0", SL_OK, 0 },
        { "an error is 1", SL_INTERNAL, 1 },
        { "usage is 2", SL_INVALID, 2 },
        { "not found is 3", SL_NOT_FOUND, 3 },
        { "denied is 4", SL_DENIED, 4 },
        { "quota is 5", SL_QUOTA, 5 },
        { "no capacity is 6", SL_NO_CAPACITY, 6 },
        { "timeout is 7", SL_TIMEOUT, 7 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        ROW(rows[i].label, sl_code_row(rows[i].code)->exit_status == rows[i].exit);
}

static void context_goes_in_front(void **state)
{
    struct sl_err err;
    assert_int_equal(sl_fail_sys(&err, SL_IO, ENOSPC, "write %s", "journal"), -SL_IO);
    assert_int_equal(err.sys, ENOSPC);
    assert_int_equal(sl_prefix(&err, "lease %s", "L7"), -SL_IO);
    assert_string_equal(err.msg, "lease L7: write journal: No space left on device");
}

static void long_messages_are_cut_not_overrun(void **state)
{
    struct sl_err err;
    char text[600];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    sl_fail(&err, SL_INVALID, "%s", text);
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
    sl_prefix(&err, "%s", text);
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
    sl_fail_sys(&err, SL_IO, EIO, "%s", text);
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
}

static void null_is_a_place_for_no_message(void **state)
{
    assert_int_equal(sl_fail(NULL, SL_QUOTA, "x"), -SL_QUOTA);
    assert_int_equal(sl_fail_sys(NULL, SL_IO, EIO, "x"), -SL_IO);
    assert_int_equal(sl_prefix(NULL, "x"), -SL_INTERNAL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_code_has_its_own_wire_name),
    cmocka_unit_test(unknown_codes_and_names_are_internal),
    cmocka_unit_test(exit_codes_are_those_of_the_product),
    cmocka_unit_test(context_goes_in_front),
    cmocka_unit_test(long_messages_are_cut_not_overrun),
    cmocka_unit_test(null_is_a_place_for_no_message),
};
ROWS_MAIN(tests)
