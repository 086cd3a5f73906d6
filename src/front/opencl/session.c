/* Starts the process's link to the broker at first use and matches leased devices with real
 * ones. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/macros.h"
#include "opencl/layer.h"
#include "selfpath.h"

#define MAX_PLATFORMS 32
#define MAX_DEVICES   256

static struct ocl_session session;
static char socket_path[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t fork_lock = PTHREAD_MUTEX_INITIALIZER;

/* The environment may be empty: the layer lies in RUN_DIR/front, the socket in RUN_DIR. */
static bool find_socket(char *out, size_t size)
{
    const char *env = getenv("SLUICE_BROKER");
    if (env && *env)
        return (size_t)snprintf(out, size, "%s", env) < size;
    char file[4096];
    if (!selfpath_file(file, sizeof(file)))
        return false;
    selfpath_folder(file);
    selfpath_folder(file);
    return (size_t)snprintf(out, size, "%s/broker.sock", file) < size;
}

/* What tells one real device from another; cut as in the page. */
struct face {
    char platform[64], name[128], driver[64];
};

static void platform_text(cl_platform_id p, cl_platform_info what, char *out, size_t size)
{
    char text[4096] = "";
    if (ocl_next.clGetPlatformInfo(p, what, sizeof(text), text, NULL) != CL_SUCCESS)
        text[0] = 0;
    snprintf(out, size, "%.*s", (int)size - 1, text);
}

static void device_text(cl_device_id d, cl_device_info what, char *out, size_t size)
{
    char text[4096] = "";
    if (ocl_next.clGetDeviceInfo(d, what, sizeof(text), text, NULL) != CL_SUCCESS)
        text[0] = 0;
    snprintf(out, size, "%.*s", (int)size - 1, text);
}

static bool slot_is(const struct proto_slot *slot, const struct face *f, uint32_t ordinal)
{
    return strncmp(slot->platform, f->platform, sizeof(slot->platform)) == 0 &&
           strncmp(slot->name, f->name, sizeof(slot->name)) == 0 &&
           strncmp(slot->driver, f->driver, sizeof(slot->driver)) == 0 &&
           slot->ordinal == ordinal;
}

static void add_device(struct ocl_session *s, const struct proto_page *page,
                       cl_platform_id p, cl_device_id id, const struct face *f,
                       uint32_t ordinal)
{
    for (uint32_t i = 0; i < page->slot_count && i < PROTO_MAX_SLOTS; i++) {
        if (!slot_is(&page->slot[i], f, ordinal))
            continue;
        struct ocl_device *d = &s->device[s->device_count++];
        cl_ulong max = 0;
        d->id = id;
        d->platform = p;
        d->slot = i;
        ocl_next.clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof(d->type), &d->type, NULL);
        ocl_next.clGetDeviceInfo(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(max), &max, NULL);
        d->driver_max_alloc_bytes = max;
        return;
    }
}

/* Ordinals count devices alike in platform, name and driver, in the driver's order. */
static void match_devices(struct ocl_session *s, const struct proto_page *page)
{
    static struct face seen[MAX_DEVICES];
    uint32_t seen_count = 0;
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_uint platform_count = 0;
    if (ocl_next.clGetPlatformIDs(MAX_PLATFORMS, platforms, &platform_count) != CL_SUCCESS)
        return;
    for (cl_uint p = 0; p < platform_count && p < MAX_PLATFORMS; p++) {
        cl_device_id devices[MAX_DEVICES];
        cl_uint device_count = 0;
        if (ocl_next.clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, MAX_DEVICES, devices,
                                    &device_count) != CL_SUCCESS)
            continue;
        for (cl_uint d = 0; d < device_count && seen_count < MAX_DEVICES; d++) {
            struct face *f = &seen[seen_count];
            platform_text(platforms[p], CL_PLATFORM_NAME, f->platform, sizeof(f->platform));
            device_text(devices[d], CL_DEVICE_NAME, f->name, sizeof(f->name));
            device_text(devices[d], CL_DRIVER_VERSION, f->driver, sizeof(f->driver));
            uint32_t ordinal = 0;
            for (uint32_t i = 0; i < seen_count; i++)
                ordinal += memcmp(&seen[i], f, sizeof(*f)) == 0;
            seen_count++;
            if (s->device_count < PROTO_MAX_SLOTS)
                add_device(s, page, platforms[p], devices[d], f, ordinal);
        }
    }
}

static void start(void)
{
    struct sl_err err;
    if (!find_socket(socket_path, sizeof(socket_path)) ||
        link_open(&session.link, socket_path, &err) != 0)
        return;
    gates_init(&session.gates, &session.link, &submit_gate_ops);
    const struct proto_page *page = link_page(&session.link);
    if (!(page->flags & PROTO_LEASE_EMULATED))
        match_devices(&session, page);
}

struct ocl_session *ocl_session(void)
{
    pthread_once(&once, start);
    /* A child that its parent forked after start: memory gets a link of its own. */
    if (link_forked(&session.link)) {
        pthread_mutex_lock(&fork_lock);
        if (link_forked(&session.link))
            link_open(&session.link, socket_path, NULL);
        pthread_mutex_unlock(&fork_lock);
    }
    return &session;
}

const struct ocl_device *ocl_device_find(const struct ocl_session *s, cl_device_id id)
{
    for (uint32_t i = 0; i < s->device_count; i++)
        if (s->device[i].id == id)
            return &s->device[i];
    return NULL;
}

static const struct proto_slot *slot_of(const struct ocl_session *s,
                                        const struct ocl_device *d)
{
    static const struct proto_slot none; /* a forked child whose own hello was refused */
    const struct proto_page *page = link_page(&s->link);
    return page ? &page->slot[d->slot] : &none;
}

uint64_t ocl_limit_bytes(const struct ocl_session *s, const struct ocl_device *d)
{
    return atomic_load(&slot_of(s, d)->mem_limit_bytes);
}

uint64_t ocl_free_bytes(const struct ocl_session *s, const struct ocl_device *d)
{
    return sub_sat_u64(ocl_limit_bytes(s, d), atomic_load(&slot_of(s, d)->mem_used_bytes));
}

uint64_t ocl_max_alloc_bytes(const struct ocl_session *s, const struct ocl_device *d)
{
    return min_u64(d->driver_max_alloc_bytes, ocl_limit_bytes(s, d));
}

bool ocl_may_pass(void)
{
    struct ocl_session *s = ocl_session();
    if (s->device_count == 0)
        return true;
    struct gate *g = &s->gates.gate[s->device[0].slot];
    struct proto_page *page = link_page(&s->link); /* a forked child's own */
    if (!page)
        return false;
    if (gate_is_forked(g))
        atomic_fetch_add_explicit(&page->slot[s->device[0].slot].ungated, 1,
                                  memory_order_relaxed);
    else
        gate_ungated(g);
    return !(page->flags & PROTO_LEASE_FAIL_CLOSED);
}
