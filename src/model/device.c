/* A device's names and JSON form. */
#include "model/device.h"

#include <string.h>

#include "base/json.h"
#include "core/macros.h"
#include "forms.h"

static const char *const grade_names[] = {
    [GRADE_NONE] = "none",     [GRADE_FRONT] = "front",       [GRADE_PROXY] = "proxy",
    [GRADE_KERNEL] = "kernel", [GRADE_HARDWARE] = "hardware",
};

static const char *const state_names[] = {
    [DEVICE_OK] = "ok",
    [DEVICE_HELD] = "held",
    [DEVICE_FAILED] = "failed",
};

const char *grade_name(enum grade g)
{
    return (unsigned)g < ARRAY_LEN(grade_names) ? grade_names[g] : "none";
}

const char *device_state_name(enum device_state s)
{
    return (unsigned)s < ARRAY_LEN(state_names) ? state_names[s] : "failed";
}

uint64_t device_lendable_bytes(const struct device *d)
{
    if (d->memory_bytes == UNKNOWN_U64)
        return 0;
    return sub_sat_u64(d->memory_bytes, d->reserve_bytes);
}

json_t *form_text(const char *text)
{
    return *text ? json_text(text) : json_null();
}

json_t *form_nonzero(uint64_t value)
{
    return value ? json_u64(value) : json_null();
}

int form_find_name(const json_t *obj, const char *key, const char *const *names,
                   size_t count, int *out, struct sl_err *err)
{
    const char *text = NULL;
    int rc = json_get_str(obj, key, &text, err);
    if (rc < 0 || !text)
        return rc;
    for (size_t i = 0; i < count; i++)
        if (!strcmp(text, names[i])) {
            *out = (int)i;
            return 0;
        }
    char known[120] = "";
    for (size_t i = 0; i < count; i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "",
                 names[i]);
    return sl_fail(err, SL_INVALID, "\"%s\" is \"%.40s\"; it is one of %s", key, text,
                   known);
}

int form_cut_str(const json_t *obj, const char *key, char *out, size_t size,
                 struct sl_err *err)
{
    const char *text = NULL;
    int rc = json_get_str(obj, key, &text, err);
    if (rc < 0 || !text)
        return rc;
    size_t len = strnlen(text, size);
    if (len == size) {
        len = size - 1;
        while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
            len--;
    }
    memcpy(out, text, len);
    out[len] = '\0';
    return 0;
}

int form_get_i32(const json_t *obj, const char *key, int32_t *out, struct sl_err *err)
{
    const json_t *j = json_object_get(obj, key);
    if (!j || json_is_null(j))
        return 0;
    if (!json_is_integer(j) || json_integer_value(j) < INT32_MIN ||
        json_integer_value(j) > INT32_MAX)
        return sl_fail(err, SL_INVALID, "\"%s\" is not a 32-bit integer", key);
    *out = (int32_t)json_integer_value(j);
    return 0;
}

int form_get_obj(const json_t *obj, const char *key, const json_t **out, struct sl_err *err)
{
    const json_t *j = json_object_get(obj, key);
    *out = NULL;
    if (!j || json_is_null(j))
        return 0;
    if (!json_is_object(j))
        return sl_fail(err, SL_INVALID, "\"%s\" is not an object", key);
    *out = j;
    return 0;
}

json_t *form_grades(const struct grades *g)
{
    return json_pack("{s:s,s:s,s:s,s:s,s:s}", "memory", grade_name(g->memory), "time",
                     grade_name(g->time), "fault", grade_name(g->fault), "visibility",
                     grade_name(g->visibility), "network", grade_name(g->network));
}

int form_get_grades(const json_t *obj, const char *key, struct grades *out,
                    struct sl_err *err)
{
    struct {
        const char *key;
        enum grade *grade;
    } rows[] = {
        { "memory", &out->memory },   { "time", &out->time },
        { "fault", &out->fault },     { "visibility", &out->visibility },
        { "network", &out->network },
    };
    const json_t *grades;
    int rc = form_get_obj(obj, key, &grades, err);
    for (size_t i = 0; rc == 0 && grades && i < ARRAY_LEN(rows); i++) {
        int value = (int)*rows[i].grade;
        rc = form_find_name(grades, rows[i].key, grade_names, ARRAY_LEN(grade_names),
                            &value, err);
        *rows[i].grade = (enum grade)value;
    }
    return rc;
}

static json_t *memory_to_json(const struct device *d)
{
    bool ok = true;
    json_t *j = json_object();
    json_put(j, "bytes", json_u64(d->memory_bytes), &ok);
    json_put(j, "source", form_text(d->memory_source), &ok);
    json_put(j, "reserve_bytes", json_u64(d->reserve_bytes), &ok);
    json_put(j, "lendable_bytes",
             d->memory_bytes == UNKNOWN_U64 ? json_null()
                                            : json_u64(device_lendable_bytes(d)),
             &ok);
    json_put(j, "wipe", form_text(d->wipe[0] ? d->wipe : "unknown"), &ok);
    json_put(j, "lent_bytes", json_u64(d->lent_bytes), &ok);
    json_put(j, "used_bytes", json_u64(d->used_bytes), &ok);
    json_put(j, "max_alloc_bytes", json_u64(d->max_alloc_bytes), &ok);
    return form_done(j, ok);
}

static json_t *compute_to_json(const struct device *d)
{
    bool ok = true;
    json_t *j = json_object();
    json_put(j, "units", form_nonzero(d->compute_units), &ok);
    json_put(j, "clock_mhz", form_nonzero(d->clock_mhz), &ok);
    json_put(j, "lent_permille", json_u64(d->lent_permille), &ok);
    json_put(j, "achieved_10s",
             d->achieved_permille_10s < 0 ? json_null()
                                          : json_integer(d->achieved_permille_10s),
             &ok);
    json_put(j, "concurrent", json_boolean(d->concurrent), &ok);
    return form_done(j, ok);
}

static json_t *holder_to_json(const struct device *d)
{
    if (!d->holder_pid)
        return json_null();
    return json_pack("{s:i,s:I}", "pid", (int)d->holder_pid, "uid",
                     (json_int_t)d->holder_uid);
}

json_t *device_to_json(const struct device *d)
{
    bool ok = true;
    json_t *j = json_object();
    json_put(j, "id", json_text(d->id), &ok);
    json_put(j, "index", json_u64(d->index), &ok);
    json_put(j, "backend", json_text(d->backend), &ok);
    json_put(j, "emulated", json_boolean(d->emulated), &ok);
    json_put(j, "state", json_string(device_state_name(d->state)), &ok);
    json_put(j, "why", form_text(d->why), &ok);
    json_put(j, "vendor", form_text(d->vendor), &ok);
    json_put(j, "model", form_text(d->model), &ok);
    json_put(j, "arch", form_text(d->arch), &ok);
    json_put(j, "platform", form_text(d->platform), &ok);
    json_put(j, "driver", form_text(d->driver), &ok);
    json_put(j, "ordinal", json_u64(d->ordinal), &ok);
    json_put(j, "unified", json_boolean(d->unified), &ok);
    json_put(j, "memory", memory_to_json(d), &ok);
    json_put(j, "compute", compute_to_json(d), &ok);
    json_put(j, "numa_node", d->numa_node < 0 ? json_null() : json_integer(d->numa_node),
             &ok);
    json_put(j, "pci", form_text(d->pci), &ok);
    json_put(j, "grade", form_grades(&d->grades), &ok);
    json_put(j, "share_tenants", json_boolean(d->share_tenants), &ok);
    json_put(j, "lease_count", json_u64(d->lease_count), &ok);
    json_put(j, "holder", holder_to_json(d), &ok);
    return form_done(j, ok);
}

static int names_from_json(const json_t *j, struct device *d, struct sl_err *err)
{
    struct {
        const char *key;
        char *out;
        size_t size;
    } rows[] = {
        { "backend", d->backend, sizeof d->backend },
        { "why", d->why, sizeof d->why },
        { "vendor", d->vendor, sizeof d->vendor },
        { "model", d->model, sizeof d->model },
        { "arch", d->arch, sizeof d->arch },
        { "platform", d->platform, sizeof d->platform },
        { "driver", d->driver, sizeof d->driver },
        { "pci", d->pci, sizeof d->pci },
    };
    int rc = json_copy_str(j, "id", d->id, sizeof d->id, err);
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(rows); i++)
        rc = form_cut_str(j, rows[i].key, rows[i].out, rows[i].size, err);
    return rc;
}

static int memory_from_json(const json_t *j, struct device *d, struct sl_err *err)
{
    const json_t *memory;
    int rc = form_get_obj(j, "memory", &memory, err);
    if (rc < 0 || !memory)
        return rc;
    if ((rc = json_get_u64(memory, "bytes", &d->memory_bytes, err)) < 0 ||
        (rc = json_copy_str(memory, "source", d->memory_source, sizeof d->memory_source,
                            err)) < 0 ||
        (rc = json_copy_str(memory, "wipe", d->wipe, sizeof d->wipe, err)) < 0 ||
        (rc = json_get_u64(memory, "reserve_bytes", &d->reserve_bytes, err)) < 0 ||
        (rc = json_get_u64(memory, "lent_bytes", &d->lent_bytes, err)) < 0 ||
        (rc = json_get_u64(memory, "used_bytes", &d->used_bytes, err)) < 0)
        return rc;
    return json_get_u64(memory, "max_alloc_bytes", &d->max_alloc_bytes, err);
}

static int compute_from_json(const json_t *j, struct device *d, struct sl_err *err)
{
    const json_t *compute;
    int rc = form_get_obj(j, "compute", &compute, err);
    if (rc < 0 || !compute)
        return rc;
    if ((rc = json_get_u32(compute, "units", &d->compute_units, err)) < 0 ||
        (rc = json_get_u32(compute, "clock_mhz", &d->clock_mhz, err)) < 0 ||
        (rc = json_get_u32(compute, "lent_permille", &d->lent_permille, err)) < 0 ||
        (rc = form_get_i32(compute, "achieved_10s", &d->achieved_permille_10s, err)) < 0)
        return rc;
    return json_get_bool(compute, "concurrent", &d->concurrent, err);
}

static int holder_from_json(const json_t *j, struct device *d, struct sl_err *err)
{
    const json_t *holder;
    int rc = form_get_obj(j, "holder", &holder, err);
    if (rc < 0 || !holder)
        return rc;
    if ((rc = form_get_i32(holder, "pid", &d->holder_pid, err)) < 0 || d->holder_pid == 0)
        return rc;
    return json_get_u32(holder, "uid", &d->holder_uid, err);
}

int device_from_json(const json_t *j, struct device *out, struct sl_err *err)
{
    struct device d = {
        .numa_node = -1,
        .memory_bytes = UNKNOWN_U64,
        .max_alloc_bytes = UNKNOWN_U64,
        .lent_bytes = UNKNOWN_U64,
        .used_bytes = UNKNOWN_U64,
        .achieved_permille_10s = -1,
    };
    int state = DEVICE_OK, rc;

    if (!json_is_object(j))
        return sl_fail(err, SL_INVALID, "a device is a JSON object");
    if ((rc = names_from_json(j, &d, err)) < 0 ||
        (rc = json_get_u32(j, "index", &d.index, err)) < 0 ||
        (rc = json_get_bool(j, "emulated", &d.emulated, err)) < 0 ||
        (rc = form_find_name(j, "state", state_names, ARRAY_LEN(state_names), &state,
                             err)) < 0 ||
        (rc = json_get_u32(j, "ordinal", &d.ordinal, err)) < 0 ||
        (rc = json_get_bool(j, "unified", &d.unified, err)) < 0 ||
        (rc = memory_from_json(j, &d, err)) < 0 ||
        (rc = compute_from_json(j, &d, err)) < 0 ||
        (rc = form_get_i32(j, "numa_node", &d.numa_node, err)) < 0 ||
        (rc = form_get_grades(j, "grade", &d.grades, err)) < 0 ||
        (rc = json_get_bool(j, "share_tenants", &d.share_tenants, err)) < 0 ||
        (rc = json_get_u32(j, "lease_count", &d.lease_count, err)) < 0 ||
        (rc = holder_from_json(j, &d, err)) < 0)
        return rc;
    if (!d.id[0])
        return sl_fail(err, SL_INVALID, "a device needs an \"id\"");
    d.state = (enum device_state)state;
    *out = d;
    return 0;
}
