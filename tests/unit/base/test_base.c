/* Growing strings, strict JSON getters, did-you-mean. */
#include "../rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/suggest.h"

static void array_grows_and_keeps_its_items(void **state)
{
    uint64_t *items = NULL;
    uint32_t room = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(array_reserve(&items, &room, i + 1, sizeof *items), 0);
        assert_true(room > i);
        items[i] = i;
    }
    for (uint32_t i = 0; i < 1000; i++)
        assert_true(items[i] == i);
    free(items);
}

static void buf_grows_and_stays_terminated(void **state)
{
    AUTO_BUF struct buf b = { 0 };
    for (int i = 0; i < 1000; i++)
        buf_addf(&b, "%d,", i);
    buf_add(&b, "");
    assert_int_equal(b.len, strlen(b.text));
    assert_true(b.len == 3890);
    assert_memory_equal(b.text, "0,1,2,", 6);
    assert_false(buf_failed(&b));
}

static void buf_keeps_any_byte(void **state)
{
    AUTO_BUF struct buf b = { 0 };
    buf_add_bytes(&b, "a\0b", 3);
    buf_add_bytes(&b, NULL, 0);
    assert_int_equal(b.len, 3);
    assert_memory_equal(b.text, "a\0b", 4);
}

static void buf_take_empties_it(void **state)
{
    struct buf b = { 0 };
    char *none = buf_take(&b);
    assert_string_equal(none, "");
    free(none);
    buf_add(&b, "x");
    char *one = buf_take(&b);
    assert_string_equal(one, "x");
    free(one);
    assert_null(b.text);
}

static void buf_remembers_failure(void **state)
{
    struct buf b = { 0 };
    buf_add(&b, "x");
    buf_add_bytes(&b, "y", SIZE_MAX - 2);
    assert_true(buf_failed(&b));
    buf_add(&b, "z");
    assert_null(buf_take(&b));
    assert_null(b.text);
}

static void getters_say_what_is_wrong(void **state)
{
    static const struct {
        const char *label, *json, *want;
    } rows[] = {
        { "an integer is read", "{\"n\":7}", "7" },
        { "absent leaves the default", "{}", "99" },
        { "null leaves the default", "{\"n\":null}", "99" },
        { "the largest is read", "{\"n\":9223372036854775807}", "9223372036854775807" },
        { "a negative one is refused", "{\"n\":-1}", "\"n\" is -1; it cannot be negative" },
        { "a text is not a number", "{\"n\":\"7\"}",
          "\"n\" is a string; an integer from 0 to 9223372036854775807 is expected" },
        { "a fraction is not an integer", "{\"n\":7.5}",
          "\"n\" is a number with a fraction; an integer from 0 to 9223372036854775807 is "
          "expected" },
        { "a list is not an object", "[]", "an object with \"n\" is expected here" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sl_err err = { 0 };
        AUTO_JSON json_t *j = json_parse(rows[i].json, strlen(rows[i].json), &err);
        uint64_t n = 99;
        char have[240];
        if (json_get_u64(j, "n", &n, &err) == 0)
            snprintf(have, sizeof have, "%llu", (unsigned long long)n);
        else
            snprintf(have, sizeof have, "%s", err.msg);
        ROW_STR(rows[i].label, have, rows[i].want);
    }
}

static void other_getters_check_their_type(void **state)
{
    AUTO_JSON json_t *j =
        json_pack("{s:b,s:s,s:I}", "b", 1, "s", "four", "big", 4294967296LL);
    bool b = false;
    const char *s = NULL;
    char small[4], fits[5] = "";
    uint32_t n = 3;
    struct sl_err err;

    assert_int_equal(json_get_bool(j, "b", &b, &err), 0);
    assert_true(b);
    assert_int_equal(json_get_bool(j, "s", &b, &err), -SL_INVALID);
    assert_int_equal(json_get_str(j, "s", &s, &err), 0);
    assert_string_equal(s, "four");
    assert_int_equal(json_get_str(j, "b", &s, &err), -SL_INVALID);
    assert_int_equal(json_copy_str(j, "s", small, sizeof small, &err), -SL_INVALID);
    assert_string_equal(err.msg, "\"s\" has 4 bytes; at most 3 fit");
    assert_int_equal(json_copy_str(j, "s", fits, sizeof fits, &err), 0);
    assert_string_equal(fits, "four");
    assert_int_equal(json_get_u32(j, "big", &n, &err), -SL_INVALID);
    assert_int_equal(n, 3);
    assert_int_equal(json_get_u32(j, "big", &n, NULL), -SL_INVALID);
}

static void unknown_keys_get_a_hint(void **state)
{
    static const char *const allowed[] = { "mem", "compute", "priority", NULL };
    static const struct {
        const char *label, *json, *want;
    } rows[] = {
        { "known keys pass", "{\"mem\":1,\"compute\":2}", "" },
        { "a slip is corrected", "{\"prority\":1}",
          "\"prority\" is not known; did you mean \"priority\"?" },
        { "another word gets no guess", "{\"zebra\":1}", "\"zebra\" is not known here" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sl_err err = { 0 };
        AUTO_JSON json_t *j = json_parse(rows[i].json, strlen(rows[i].json), &err);
        json_only_keys(j, allowed, &err);
        ROW_STR(rows[i].label, err.msg, rows[i].want);
    }
}

static void parsing_is_bounded(void **state)
{
    struct sl_err err;
    char deep[200];
    memset(deep, '[', 70);
    memset(deep + 70, ']', 70);
    assert_null(json_parse(deep, 140, &err));
    assert_string_equal(err.msg, "nested deeper than 64 levels");
    json_t *ok = json_parse(deep + 6, 128, &err);
    assert_non_null(ok);
    json_decref(ok);
    assert_null(json_parse("{\"a\":1,\"a\":2}", 13, &err));
    assert_null(json_parse("{\"a\":1", 6, &err));
    assert_int_equal(err.code, SL_INVALID);
    assert_null(json_parse("", 0, &err));
    assert_null(json_parse("{} x", 4, &err));
}

static void unknown_is_null_and_text_is_utf8(void **state)
{
    AUTO_JSON json_t *unknown = json_u64(UINT64_MAX), *seven = json_u64(7);
    assert_true(json_is_null(unknown));
    assert_int_equal(json_integer_value(seven), 7);

    static const struct {
        const char *label, *have, *want;
    } rows[] = {
        { "ascii stays", "ls -l", "ls -l" },
        { "utf-8 stays", "m\xc3\xa4h \xe6\xb0\xb4 \xf0\x9f\x92\xa7",
          "m\xc3\xa4h \xe6\xb0\xb4 \xf0\x9f\x92\xa7" },
        { "a stray byte is replaced",
          "a\xff"
          "b",
          "a\xef\xbf\xbd"
          "b" },
        { "a cut character is replaced", "a\xe6\xb0", "a\xef\xbf\xbd\xef\xbf\xbd" },
        { "an overlong slash is replaced", "\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd" },
        { "a surrogate is replaced", "\xed\xa0\x80",
          "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_JSON json_t *j = json_text(rows[i].have);
        ROW(rows[i].label, j);
        ROW_STR(rows[i].label, json_string_value(j), rows[i].want);
    }
}

static void put_remembers_failure(void **state)
{
    bool ok = true;
    AUTO_JSON json_t *j = json_object();
    json_put(j, "a", json_true(), &ok);
    assert_true(ok);
    json_put(j, "b", NULL, &ok);
    assert_false(ok);
    json_put(j, "c", json_true(), &ok);
    assert_false(ok);
    json_put(NULL, "c", json_integer(1), &ok);
}

static void did_you_mean(void **state)
{
    static const char *const words[] = { "run",     "ps",     "top", "resize", "release",
                                         "devices", "doctor", "up",  "down" };
    static const struct {
        const char *label, *word, *want;
    } rows[] = {
        { "a missing letter", "relase", "release" },
        { "swapped neighbours", "dveices", "devices" },
        { "the exact word", "top", "top" },
        { "other case", "PS", "ps" },
        { "a plural that is none", "device", "devices" },
        { "nothing near", "frobnicate", "-" },
        { "a short word is not any short word", "xy", "-" },
        { "empty", "", "-" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *have = suggest_nearest(rows[i].word, words, ARRAY_LEN(words));
        ROW_STR(rows[i].label, have ? have : "-", rows[i].want);
    }
    char longest[300];
    memset(longest, 'r', sizeof longest);
    longest[299] = '\0';
    assert_null(suggest_nearest(longest, words, ARRAY_LEN(words)));
    assert_null(suggest_nearest("x", words, 0));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(array_grows_and_keeps_its_items),
    cmocka_unit_test(buf_grows_and_stays_terminated),
    cmocka_unit_test(buf_keeps_any_byte),
    cmocka_unit_test(buf_take_empties_it),
    cmocka_unit_test(buf_remembers_failure),
    cmocka_unit_test(getters_say_what_is_wrong),
    cmocka_unit_test(other_getters_check_their_type),
    cmocka_unit_test(unknown_keys_get_a_hint),
    cmocka_unit_test(parsing_is_bounded),
    cmocka_unit_test(unknown_is_null_and_text_is_utf8),
    cmocka_unit_test(put_remembers_failure),
    cmocka_unit_test(did_you_mean),
};
ROWS_MAIN(tests)
