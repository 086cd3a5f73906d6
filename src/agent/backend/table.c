/* Owns the list of backends, in probing order. */
#include "backend.h"

#include <string.h>

const struct backend *const backends[] = { &backend_opencl, &backend_emulated, NULL };

const struct backend *backend_find(const char *name)
{
    for (size_t i = 0; backends[i]; i++)
        if (strcmp(backends[i]->name, name) == 0)
            return backends[i];
    return NULL;
}
