/*
 * What the JSON forms of this part share.  Unknown is never 0: an empty text, a
 * bound that is not set and a number that nobody knows are all null.
 */
#ifndef MODEL_FORMS_H
#define MODEL_FORMS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/err.h"
#include "model/device.h"

json_t *form_text(const char *text);  /* "" is null */
json_t *form_nonzero(uint64_t value); /* 0 is null */
json_t *form_grades(const struct grades *g);
json_t *form_time(uint64_t ms); /* RFC 3339 with milliseconds; 0 is null */

/* The object if it is whole, else NULL and it is freed. */
static inline json_t *form_done(json_t *obj, bool ok)
{
    if (ok)
        return obj;
    json_decref(obj);
    return NULL;
}

/* Readers as in base/json.h: absent and null leave *out alone. */
int form_find_name(const json_t *obj, const char *key, const char *const *names,
                   size_t count, int *out, struct sl_err *err);
/* A text for people: cut where it does not fit, since U+FFFD may have made it longer. */
int form_cut_str(const json_t *obj, const char *key, char *out, size_t size,
                 struct sl_err *err);
int form_get_i32(const json_t *obj, const char *key, int32_t *out, struct sl_err *err);
int form_get_obj(const json_t *obj, const char *key, const json_t **out,
                 struct sl_err *err);
int form_get_grades(const json_t *obj, const char *key, struct grades *out,
                    struct sl_err *err);
int form_get_time(const json_t *obj, const char *key, uint64_t *ms, struct sl_err *err);

/* "mem" and "compute": {"request","limit"}; *has says which of the two were there. */
struct form_pair {
    uint64_t request, limit;
    bool has_request, has_limit;
};
int form_get_pair(const json_t *obj, const char *key, struct form_pair *out,
                  struct sl_err *err);

#endif
