/*
 * Strict reading of JSON objects over jansson: each getter says which key is
 * wrong and what was expected, and unknown keys are an error with a hint.
 *
 * A getter leaves *out alone where the key is absent or null, so that the
 * caller's default stands.  All return 0 or -SL_INVALID with `err` set.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"

static inline void cleanup_json(json_t **j)
{
    json_decref(*j);
}
#define AUTO_JSON __attribute__((cleanup(cleanup_json)))

int json_get_u64(const json_t *obj, const char *key, uint64_t *out, struct sl_err *err);
int json_get_u32(const json_t *obj, const char *key, uint32_t *out, struct sl_err *err);
int json_get_bool(const json_t *obj, const char *key, bool *out, struct sl_err *err);
/* Borrowed from obj. */
int json_get_str(const json_t *obj, const char *key, const char **out, struct sl_err *err);
/* Copied; too long for `size` is an error. */
int json_copy_str(const json_t *obj, const char *key, char *out, size_t size,
                  struct sl_err *err);

/* Every key of obj must be in the NULL-terminated list. */
int json_only_keys(const json_t *obj, const char *const *allowed, struct sl_err *err);

/* Parse text of `len` bytes; at most 64 levels deep, no duplicate keys. */
json_t *json_parse(const char *text, size_t len, struct sl_err *err);

/* uint64 as a JSON integer, or null for UINT64_MAX ("unknown is never 0"). */
json_t *json_u64(uint64_t value);

/* A string of any bytes: what is not UTF-8 becomes U+FFFD (a program's arguments
 * need not be text).  NULL when out of memory. */
json_t *json_text(const char *bytes);

/* obj[key] = value (taken).  Out of memory, also a NULL value or obj, clears *ok
 * and leaves it cleared: build the whole, then look once. */
void json_put(json_t *obj, const char *key, json_t *value, bool *ok);

#endif
