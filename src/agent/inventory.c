/* Owns the list of devices: asks the backends, gives out indexes, applies the operator's
 * options. */
#include "agent.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "model/units.h"
#include "os/log.h"

static bool wanted(const struct agent_options *o, const struct backend *b)
{
    for (uint32_t i = 0; i < o->backend_count; i++)
        if (strcmp(o->backend[i], b->name) == 0)
            return true;
    /* by default either what is real or what is emulated, never both unasked */
    return o->backend_count == 0 &&
           (b == &backend_emulated) == (o->probe.emulate_count > 0);
}

int inventory_reserve(const char *text, uint64_t memory_bytes, uint64_t *out,
                      struct sl_err *err)
{
    char *end;
    double percent = strtod(text, &end);
    if (end != text && strcmp(end, "%") == 0) {
        if (!(percent >= 0 && percent < 100))
            return sl_fail(err, SL_INVALID, "--reserve %s: from 0%% to less than 100%%",
                           text);
        *out = (uint64_t)((double)memory_bytes * percent / 100);
    } else if (strcmp(text, "0") == 0) {
        *out = 0;
    } else if (units_parse_size(text, out, err) < 0) {
        return sl_prefix(err, "--reserve");
    }
    return 0;
}

static int apply_reserve(const char *text, struct device *d, struct sl_err *err)
{
    if (!*text || d->emulated || d->state == DEVICE_FAILED)
        return 0;
    uint64_t bytes;
    int rc = inventory_reserve(text, d->memory_bytes, &bytes, err);
    if (rc < 0)
        return rc;
    if (bytes >= d->memory_bytes) {
        char size[32];
        return sl_fail(err, SL_INVALID, "--reserve %s leaves nothing of %s, which has %s",
                       text, d->id, units_format_size_human(d->memory_bytes, size));
    }
    d->reserve_bytes = bytes;
    return 0;
}

static int probe_all(struct agent *a, struct device *found, uint32_t *count,
                     struct sl_err *err)
{
    for (size_t i = 0; backends[i]; i++) {
        if (!wanted(&a->o, backends[i]))
            continue;
        int rc = backends[i]->probe(&a->o.probe, found, AGENT_MAX_DEVICES, count, err);
        if (rc < 0)
            return rc;
    }
    for (uint32_t i = 0; i < *count; i++) {
        int rc = apply_reserve(a->o.reserve, &found[i], err);
        if (rc < 0)
            return rc;
        found[i].share_tenants = a->o.share_tenants;
    }
    return 0;
}

static struct device *find_id(struct device *list, uint32_t count, const char *id)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(list[i].id, id) == 0)
            return &list[i];
    return NULL;
}

static bool is_leased(const struct agent *a, const char *id)
{
    for (uint32_t i = 0; i < a->lease_count; i++) {
        const struct lease *l = &a->lease[i]->l;
        for (uint32_t k = 0; agent_lease_is_live(a->lease[i]) && k < l->slice_count; k++)
            if (strcmp(l->slice[k].device, id) == 0)
                return true;
    }
    return false;
}

static uint32_t free_index(const struct agent *a)
{
    uint64_t used = 0;
    uint32_t index = 0;
    for (uint32_t i = 0; i < a->device_count; i++)
        used |= 1ull << a->device[i].index;
    while (used >> index & 1)
        index++;
    return index;
}
_Static_assert(AGENT_MAX_DEVICES <= 64, "a bit each");

static int by_index(const void *x, const void *y)
{
    const struct device *a = x, *b = y;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* With leases alive the broker knows devices by the indexes that it was told: known ids
 * keep theirs, new ones take what is free, and one that is gone stays as long as it is
 * leased, and says so. */
static int merge(struct agent *a, struct device *found, uint32_t count, struct sl_err *err)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < a->device_count; i++) {
        struct device *d = &a->device[i], *now = find_id(found, count, d->id);
        if (now) {
            now->index = d->index;
            *d = *now;
        } else if (is_leased(a, d->id)) {
            d->state = DEVICE_FAILED;
            d->gone = true;
            snprintf(d->why, sizeof d->why, "it is no longer found");
        } else {
            continue;
        }
        a->device[kept++] = *d;
    }
    a->device_count = kept;
    for (uint32_t i = 0; i < count; i++) {
        if (find_id(a->device, a->device_count, found[i].id))
            continue;
        if (a->device_count == AGENT_MAX_DEVICES)
            return sl_fail(err, SL_TOO_LARGE, "more than %d devices", AGENT_MAX_DEVICES);
        found[i].index = free_index(a);
        a->device[a->device_count++] = found[i];
    }
    qsort(a->device, a->device_count, sizeof *a->device, by_index);
    return 0;
}

struct device *inventory_find_index(struct agent *a, uint32_t index)
{
    for (uint32_t i = 0; i < a->device_count; i++)
        if (a->device[i].index == index)
            return &a->device[i];
    return NULL;
}

void inventory_replay(struct agent *a, const struct device *d)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < a->device_count; i++)
        if (a->device[i].index != d->index && strcmp(a->device[i].id, d->id) != 0)
            a->device[kept++] = a->device[i];
    a->device_count = kept;
    a->device[a->device_count++] = *d;
}

void inventory_forget_gone(struct agent *a)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < a->device_count; i++)
        if (!a->device[i].gone || is_leased(a, a->device[i].id))
            a->device[kept++] = a->device[i];
    a->device_count = kept;
}

int inventory_build(struct agent *a, struct sl_err *err)
{
    struct device *found = calloc(AGENT_MAX_DEVICES, sizeof *found);
    uint32_t count = 0;
    if (!found)
        return sl_fail(err, SL_INTERNAL, "out of memory");
    int rc = probe_all(a, found, &count, err);
    if (rc == 0 && agent_held_count(a) == 0)
        a->device_count = 0;
    if (rc == 0)
        rc = merge(a, found, count, err);
    free(found);
    for (uint32_t i = 0; rc == 0 && i < a->device_count; i++) {
        struct device *d = &a->device[i];
        d->achieved_permille_10s = -1;
        log_info("device",
                 "device=%s index=%u state=%s memory=%" PRIu64 " model=\"%s\" why=\"%s\"",
                 d->id, d->index, device_state_name(d->state), d->memory_bytes, d->model,
                 d->why);
        rc = agent_save_device(a, d, err);
    }
    if (rc == 0 && a->device_count == 0)
        log_warn("no-device", "what=\"no OpenCL device was found; see sluice doctor\"");
    return rc;
}
