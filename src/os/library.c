/* Asks whether a library can be loaded. */
#include "os/library.h"

#include <dlfcn.h>

int library_check(const char *path, const char *symbol, struct sl_err *err)
{
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return sl_fail(err, SL_UNAVAILABLE, "%s", dlerror());
    int rc = dlsym(lib, symbol)
                 ? 0
                 : sl_fail(err, SL_UNAVAILABLE, "%s: it has no %s", path, symbol);
    dlclose(lib);
    return rc;
}
