/* Owns devices that exist only as numbers: models from the table and recorded machines from
 * files. */
#include "backend.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "model/units.h"
#include "os/file.h"

#define MACHINE_MAX_BYTES (1u << 20)

static void fill_common(struct device *d)
{
    memset(d, 0, sizeof *d);
    snprintf(d->backend, sizeof d->backend, "emulated");
    snprintf(d->platform, sizeof d->platform, "Sluice emulation");
    snprintf(d->driver, sizeof d->driver, "emulated");
    snprintf(d->memory_source, sizeof d->memory_source, "recorded");
    d->emulated = true;
    d->state = DEVICE_OK;
    d->numa_node = -1; /* and every grade is none: no program meets a front here */
}

static void fill_from_model(struct device *d, const struct emulated_model *m)
{
    snprintf(d->vendor, sizeof d->vendor, "%s", m->vendor);
    snprintf(d->model, sizeof d->model, "%s", m->model);
    snprintf(d->arch, sizeof d->arch, "%s", m->arch);
    d->memory_bytes = m->memory_mib * MIB;
    d->reserve_bytes = m->reserve_mib * MIB;
    d->max_alloc_bytes = d->memory_bytes - d->reserve_bytes;
    d->compute_units = m->compute_units;
    d->clock_mhz = m->clock_mhz;
}

/* "NVIDIA A100-SXM4-80GB" -> "nvidia-a100-sxm4-80gb" */
static void make_slug(const char *text, char *out, size_t size)
{
    size_t n = 0;
    for (; *text && n + 1 < size; text++) {
        if (isalnum((unsigned char)*text))
            out[n++] = (char)tolower((unsigned char)*text);
        else if (n > 0 && out[n - 1] != '-')
            out[n++] = '-';
    }
    while (n > 0 && out[n - 1] == '-')
        n--;
    out[n] = '\0';
}

/* Number it among its like and append it. */
static int append(const struct device *d, const char *slug, struct device *out,
                  uint32_t max, uint32_t *count, struct sl_err *err)
{
    if (*count >= max)
        return sl_fail(err, SL_INVALID, "more than %u devices", max);
    uint32_t of_slug = 0, alike = 0;
    char prefix[DEVICE_ID_SIZE];
    int len = snprintf(prefix, sizeof prefix, "emu-%.40s-", slug);
    for (uint32_t i = 0; i < *count; i++) {
        const char *rest =
            strncmp(out[i].id, prefix, (size_t)len) == 0 ? out[i].id + len : "x";
        of_slug += rest[strspn(rest, "0123456789")] == '\0';
        alike += out[i].emulated && strcmp(out[i].model, d->model) == 0;
    }
    struct device *to = &out[(*count)++];
    *to = *d;
    snprintf(to->id, sizeof to->id, "%.50s%u", prefix, of_slug);
    to->ordinal = alike;
    return 0;
}

static int parse_count(const char *text, uint32_t *out, struct sl_err *err)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || n < 1 || n > 64)
        return sl_fail(err, SL_INVALID, "\"%s\" is not a number of devices (1 to 64)",
                       text);
    *out = (uint32_t)n;
    return 0;
}

static int add_models(const char *spec, struct device *out, uint32_t max, uint32_t *count,
                      struct sl_err *err)
{
    AUTO_FREE char *copy = strdup(spec);
    char *rest = copy, *item;
    while (copy && (item = strsep(&rest, ",")) != NULL) {
        uint32_t n = 1;
        char *colon = strchr(item, ':');
        if (colon) {
            *colon = '\0';
            int rc = parse_count(colon + 1, &n, err);
            if (rc < 0)
                return sl_prefix(err, "--emulate %s", spec);
        }
        const struct emulated_model *m = emulated_model_find(item);
        char names[160];
        if (!m)
            return sl_fail(err, SL_INVALID,
                           "--emulate: no model is called \"%s\"; known are %s; a file's "
                           "name has a / or ends in .json",
                           item, emulated_model_names(names, sizeof names));
        struct device d;
        fill_common(&d);
        fill_from_model(&d, m);
        for (uint32_t i = 0; i < n; i++) {
            int rc = append(&d, m->name, out, max, count, err);
            if (rc < 0)
                return rc;
        }
    }
    return 0;
}

static int read_numbers(const json_t *j, struct device *d, struct sl_err *err)
{
    int rc = backend_read_numbers(j, d, err);
    return rc == 0 ? json_get_u64(j, "reserve_bytes", &d->reserve_bytes, err) : rc;
}

static int read_device(const json_t *j, struct device *d, char *slug, size_t slug_size,
                       uint32_t *n, struct sl_err *err)
{
    static const char *const keys[] = { "like",
                                        "vendor",
                                        "model",
                                        "arch",
                                        "memory_bytes",
                                        "reserve_bytes",
                                        "max_alloc_bytes",
                                        "compute_units",
                                        "clock_mhz",
                                        "unified",
                                        "numa_node",
                                        "pci",
                                        "count",
                                        "driver",
                                        NULL };
    const char *like = NULL;
    char names[160];
    *n = 1;
    int rc = json_only_keys(j, keys, err);
    if (rc < 0)
        return sl_prefix(err, "expected are like, model, memory_bytes, count and others");
    rc = json_get_str(j, "like", &like, err);
    if (rc < 0)
        return rc;
    fill_common(d);
    const struct emulated_model *m = like ? emulated_model_find(like) : NULL;
    if (like && !m)
        return sl_fail(err, SL_INVALID, "\"like\": no model is called \"%s\"; known are %s",
                       like, emulated_model_names(names, sizeof names));
    if (m)
        fill_from_model(d, m);
    rc = json_copy_str(j, "vendor", d->vendor, sizeof d->vendor, err);
    if (rc == 0)
        rc = json_copy_str(j, "model", d->model, sizeof d->model, err);
    if (rc == 0)
        rc = json_copy_str(j, "arch", d->arch, sizeof d->arch, err);
    if (rc == 0)
        rc = json_copy_str(j, "pci", d->pci, sizeof d->pci, err);
    if (rc == 0)
        rc = json_copy_str(j, "driver", d->driver, sizeof d->driver, err);
    if (rc == 0)
        rc = read_numbers(j, d, err);
    if (rc == 0)
        rc = json_get_u32(j, "count", n, err);
    if (rc < 0)
        return rc;
    if (!d->model[0] || d->memory_bytes == 0 || d->reserve_bytes >= d->memory_bytes)
        return sl_fail(err, SL_INVALID,
                       "\"like\", or \"model\" and \"memory_bytes\", is needed; the "
                       "reserve is smaller "
                       "than the memory");
    if (d->max_alloc_bytes == 0)
        d->max_alloc_bytes = d->memory_bytes - d->reserve_bytes;
    make_slug(m ? m->name : d->model, slug, slug_size);
    return 0;
}

static int add_machine(const char *path, struct device *out, uint32_t max, uint32_t *count,
                       struct sl_err *err)
{
    static const char *const keys[] = { "machine", "source", "devices", NULL };
    AUTO_FREE char *text = NULL;
    size_t len, i;
    int rc = file_read(path, MACHINE_MAX_BYTES, &text, &len, err);
    if (rc < 0)
        return rc;
    AUTO_JSON json_t *root = json_parse(text, len, err);
    if (!root)
        return sl_prefix(err, "%s", path);
    const json_t *list = json_object_get(root, "devices"), *item;
    if (!json_is_array(list))
        return sl_fail(err, SL_INVALID,
                       "%s: \"devices\" must be a list, such as "
                       "{\"devices\": [{\"like\": \"a100-80g\", \"count\": 2}]}",
                       path);
    rc = json_only_keys(root, keys, err);
    if (rc < 0)
        sl_prefix(err, "expected are machine, source, devices");
    json_array_foreach((json_t *)list, i, item) {
        struct device d;
        char slug[48];
        uint32_t n;
        if (rc == 0)
            rc = read_device(item, &d, slug, sizeof slug, &n, err);
        if (rc < 0)
            return sl_prefix(err, "%s: device %zu", path, i + 1);
        for (uint32_t k = 0; rc == 0 && k < n; k++)
            rc = append(&d, slug, out, max, count, err);
    }
    return rc < 0 ? sl_prefix(err, "%s", path) : 0;
}

int emulated_add(const char *spec, struct device *out, uint32_t max, uint32_t *count,
                 struct sl_err *err)
{
    size_t len = strlen(spec);
    bool file = strchr(spec, '/') || (len > 5 && strcmp(spec + len - 5, ".json") == 0);
    if (!file)
        return add_models(spec, out, max, count, err);
    int rc = add_machine(spec, out, max, count, err);
    return rc < 0 ? sl_prefix(err, "--emulate") : rc;
}

static int probe(const struct backend_options *o, struct device *out, uint32_t max,
                 uint32_t *count, struct sl_err *err)
{
    for (uint32_t i = 0; i < o->emulate_count; i++) {
        int rc = emulated_add(o->emulate[i], out, max, count, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

const struct backend backend_emulated = { .name = "emulated", .probe = probe };
