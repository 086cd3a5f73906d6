/*
 * Opens the real loader behind the forwarding libOpenCL.so.1, with our layer on.
 *
 * Fails closed: without the layer in force, no call gets through.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opencl/forward.h"
#include "selfpath.h"

#define LAYER_FILE "libsluice-opencl.so"
#define REAL_FILE  "real/libOpenCL.so.1"

_Atomic int fwd_state;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread bool opening;

static bool front_is_in(const char *folder)
{
    char path[4096];
    return (size_t)snprintf(path, sizeof(path), "%s/" LAYER_FILE, folder) < sizeof(path) &&
           access(path, R_OK) == 0 &&
           (size_t)snprintf(path, sizeof(path), "%s/" REAL_FILE, folder) < sizeof(path) &&
           access(path, R_OK) == 0;
}

/* The variable first, then beside our own file, then beside what was bound over it. */
static bool find_front(char *folder, size_t size)
{
    const char *env = getenv("SLUICE_FRONT");
    if (env && *env == '/' && strlen(env) < size && front_is_in(env)) {
        strcpy(folder, env);
        return true;
    }
    char file[4096];
    if (!selfpath_file(file, sizeof(file)))
        return false;
    if ((size_t)snprintf(folder, size, "%s", file) >= size)
        return false;
    selfpath_folder(folder);
    if (front_is_in(folder))
        return true;
    if (!selfpath_bound_from(file, folder, size))
        return false;
    selfpath_folder(folder);
    return front_is_in(folder);
}

/*
 * Our layer goes first, that is nearest to the driver; layers of the user's stay
 * above it.  The loader cuts the variable at colons in place, so a child sees
 * only the first entry: put nothing there but ours.
 */
static bool switch_layer_on(const char *layer)
{
    const char *old = getenv("OPENCL_LAYERS");
    if (!old || !*old || strstr(old, LAYER_FILE))
        return setenv("OPENCL_LAYERS", layer, 1) == 0;
    char both[8192];
    return (size_t)snprintf(both, sizeof(both), "%s:%s", layer, old) < sizeof(both) &&
           setenv("OPENCL_LAYERS", both, 1) == 0;
}

static bool open_real(const char *folder)
{
    char path[4096 + 32];
    snprintf(path, sizeof(path), "%s/" LAYER_FILE, folder);
    /* The loader drops a layer that does not load without a word: load it first ourselves.
     */
    void *layer = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!layer || !switch_layer_on(path))
        return false;
    int (*layer_in_force)(void) = (int (*)(void))dlsym(layer, "sluice_layer_in_force");

    snprintf(path, sizeof(path), "%s/" REAL_FILE, folder);
    void *real = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!real || !layer_in_force)
        return false;
    for (const struct fwd_row *row = fwd_rows; row->name; row++)
        *row->slot = dlsym(real, row->name);

    /* Any first call makes the loader take its layers. */
    cl_api_clGetPlatformIDs platforms =
        (cl_api_clGetPlatformIDs)dlsym(real, "clGetPlatformIDs");
    cl_uint n = 0;
    if (!platforms)
        return false;
    platforms(0, NULL, &n);
    return layer_in_force();
}

static void open_once(void)
{
    char folder[4096];
    opening = true;
    bool ok = find_front(folder, sizeof(folder)) && open_real(folder);
    opening = false;
    atomic_store_explicit(&fwd_state, ok ? 1 : -1, memory_order_release);
}

bool fwd_open(void)
{
    /* The driver may call the API while the loader starts it. */
    if (opening)
        return true;
    pthread_once(&once, open_once);
    return atomic_load_explicit(&fwd_state, memory_order_acquire) > 0;
}
