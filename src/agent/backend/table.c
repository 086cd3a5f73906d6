/* Owns the list of backends, in probing order, and what they read alike. */
#include "backend.h"

#include <string.h>

#include "base/json.h"

const struct backend *const backends[] = { &backend_opencl, &backend_emulated, NULL };

const struct backend *backend_find(const char *name)
{
    for (size_t i = 0; backends[i]; i++)
        if (strcmp(backends[i]->name, name) == 0)
            return backends[i];
    return NULL;
}

int backend_read_numbers(const json_t *j, struct device *d, struct sl_err *err)
{
    uint64_t numa = UNKNOWN_U64;
    int rc = json_get_u64(j, "memory_bytes", &d->memory_bytes, err);
    if (rc == 0)
        rc = json_get_u64(j, "max_alloc_bytes", &d->max_alloc_bytes, err);
    if (rc == 0)
        rc = json_get_u32(j, "compute_units", &d->compute_units, err);
    if (rc == 0)
        rc = json_get_u32(j, "clock_mhz", &d->clock_mhz, err);
    if (rc == 0)
        rc = json_get_bool(j, "unified", &d->unified, err);
    if (rc == 0)
        rc = json_get_u64(j, "numa_node", &numa, err);
    if (rc == 0 && numa < 4096)
        d->numa_node = (int32_t)numa;
    return rc;
}
