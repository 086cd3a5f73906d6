/* Strict getters over jansson: which key is wrong, and what would be right. */
#include "base/json.h"

#include <string.h>

#include "base/buf.h"
#include "base/suggest.h"

#define DEPTH_MAX 64

static const char *type_name(const json_t *j)
{
    switch (json_typeof(j)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a number with a fraction";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    default:
        return "null";
    }
}

/* 1: *out is the value; 0: absent or null; else the error. */
static int find(const json_t *obj, const char *key, const json_t **out, struct sl_err *err)
{
    if (!json_is_object(obj))
        return sl_fail(err, SL_INVALID, "an object with \"%s\" is expected here", key);
    *out = json_object_get(obj, key);
    return *out && !json_is_null(*out);
}

static int wrong(struct sl_err *err, const char *key, const json_t *have, const char *want)
{
    return sl_fail(err, SL_INVALID, "\"%s\" is %s; %s is expected", key, type_name(have),
                   want);
}

int json_get_u64(const json_t *obj, const char *key, uint64_t *out, struct sl_err *err)
{
    const json_t *j = NULL;
    int found = find(obj, key, &j, err);
    if (found <= 0)
        return found;
    if (!json_is_integer(j))
        return wrong(err, key, j, "an integer from 0 to 9223372036854775807");
    if (json_integer_value(j) < 0)
        return sl_fail(err, SL_INVALID, "\"%s\" is %lld; it cannot be negative", key,
                       (long long)json_integer_value(j));
    *out = (uint64_t)json_integer_value(j);
    return 0;
}

int json_get_u32(const json_t *obj, const char *key, uint32_t *out, struct sl_err *err)
{
    uint64_t value = *out;
    int rc = json_get_u64(obj, key, &value, err);
    if (rc < 0)
        return rc;
    if (value > UINT32_MAX)
        return sl_fail(err, SL_INVALID, "\"%s\" is %llu; at most %u is possible", key,
                       (unsigned long long)value, UINT32_MAX);
    *out = (uint32_t)value;
    return 0;
}

int json_get_bool(const json_t *obj, const char *key, bool *out, struct sl_err *err)
{
    const json_t *j = NULL;
    int found = find(obj, key, &j, err);
    if (found <= 0)
        return found;
    if (!json_is_boolean(j))
        return wrong(err, key, j, "true or false");
    *out = json_is_true(j);
    return 0;
}

int json_get_str(const json_t *obj, const char *key, const char **out, struct sl_err *err)
{
    const json_t *j = NULL;
    int found = find(obj, key, &j, err);
    if (found <= 0)
        return found;
    if (!json_is_string(j))
        return wrong(err, key, j, "a string");
    *out = json_string_value(j);
    return 0;
}

int json_copy_str(const json_t *obj, const char *key, char *out, size_t size,
                  struct sl_err *err)
{
    const char *text = NULL;
    int rc = json_get_str(obj, key, &text, err);
    if (rc < 0 || !text)
        return rc;
    size_t len = strlen(text);
    if (len >= size)
        return sl_fail(err, SL_INVALID, "\"%s\" has %zu bytes; at most %zu fit", key, len,
                       size - 1);
    memcpy(out, text, len + 1);
    return 0;
}

int json_only_keys(const json_t *obj, const char *const *allowed, struct sl_err *err)
{
    if (!json_is_object(obj))
        return sl_fail(err, SL_INVALID, "a JSON object is expected here");
    size_t count = 0;
    while (allowed[count])
        count++;

    const char *key;
    json_t *value;
    json_object_foreach((json_t *)obj, key, value) {
        size_t i = 0;
        while (i < count && strcmp(key, allowed[i]))
            i++;
        if (i < count)
            continue;
        const char *near = suggest_nearest(key, allowed, count);
        if (near)
            return sl_fail(err, SL_INVALID, "\"%.60s\" is not known; did you mean \"%s\"?",
                           key, near);
        return sl_fail(err, SL_INVALID, "\"%.60s\" is not known here", key);
    }
    return 0;
}

/* jansson itself stops at 2048 levels, which is bounded but deeper than we ever need. */
static bool too_deep(const json_t *j, int left)
{
    const char *key;
    json_t *value;
    size_t i;

    if (!json_is_object(j) && !json_is_array(j))
        return false;
    if (left == 0)
        return true;
    json_object_foreach((json_t *)j, key, value) {
        if (too_deep(value, left - 1))
            return true;
    }
    json_array_foreach(j, i, value) {
        if (too_deep(value, left - 1))
            return true;
    }
    return false;
}

json_t *json_parse(const char *text, size_t len, struct sl_err *err)
{
    json_error_t where;
    json_t *j = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);
    if (!j) {
        enum sl_code code =
            json_error_code(&where) == json_error_out_of_memory ? SL_INTERNAL : SL_INVALID;
        sl_fail(err, code, "line %d, column %d: %s", where.line, where.column, where.text);
        return NULL;
    }
    if (too_deep(j, DEPTH_MAX)) {
        json_decref(j);
        sl_fail(err, SL_INVALID, "nested deeper than %d levels", DEPTH_MAX);
        return NULL;
    }
    return j;
}

json_t *json_u64(uint64_t value)
{
    if (value == UINT64_MAX)
        return json_null();
    /* jansson's integers are signed: what does not fit is the largest that does */
    return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

/* Bytes of the UTF-8 sequence at p, 0 if it is none (RFC 3629: no surrogates, nothing
 * overlong, at most U+10FFFF). */
static size_t utf8_len(const unsigned char *p)
{
    size_t len = p[0] < 0x80   ? 1
                 : p[0] < 0xc2 ? 0
                 : p[0] < 0xe0 ? 2
                 : p[0] < 0xf0 ? 3
                 : p[0] < 0xf5 ? 4
                               : 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return len;
}

json_t *json_text(const char *bytes)
{
    AUTO_BUF struct buf text = { 0 };
    buf_add(&text, "");
    for (const char *p = bytes; *p;) {
        size_t len = utf8_len((const unsigned char *)p);
        if (len)
            buf_add_bytes(&text, p, len);
        else
            buf_add(&text, "\xef\xbf\xbd");
        p += len ? len : 1;
    }
    return buf_failed(&text) ? NULL : json_string(text.text);
}

void json_put(json_t *obj, const char *key, json_t *value, bool *ok)
{
    if (json_object_set_new(obj, key, value) != 0)
        *ok = false;
}
