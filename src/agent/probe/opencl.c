/* Owns the questions to OpenCL: every platform and device, and where hwloc says each one
 * sits. */
#include "probe.h"

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <dlfcn.h>
#include <hwloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"

#define MAX_PLATFORMS 16
#define MAX_DEVICES   64

#define CL_SYMBOLS(X) \
    X(clGetPlatformIDs) X(clGetPlatformInfo) X(clGetDeviceIDs) X(clGetDeviceInfo)

static struct {
#define X(name) __typeof__(&name) name;
    CL_SYMBOLS(X)
#undef X
} cl;

static const char *load(void)
{
    void *lib = dlopen("libOpenCL.so.1", RTLD_NOW);
    if (!lib)
        return "no OpenCL loader on this machine (libOpenCL.so.1)";
#define X(name)                                            \
    if (!(cl.name = (__typeof__(&name))dlsym(lib, #name))) \
        return "libOpenCL.so.1 has no " #name;
    CL_SYMBOLS(X)
#undef X
    return NULL;
}

static void add_string(json_t *to, const char *key, cl_device_id d, cl_device_info what)
{
    char text[256] = "";
    if (cl.clGetDeviceInfo(d, what, sizeof text - 1, text, NULL) == CL_SUCCESS && text[0])
        json_object_set_new(to, key, json_stringn_nocheck(text, strlen(text)));
}

static void add_u64(json_t *to, const char *key, cl_device_id d, cl_device_info what)
{
    cl_ulong value = 0; /* cl_uint answers fill the low half: little-endian machines only */
    size_t size = 0;
    if (cl.clGetDeviceInfo(d, what, sizeof value, &value, &size) != CL_SUCCESS)
        return;
    if (size == sizeof(cl_uint)) {
        cl_uint narrow;
        memcpy(&narrow, &value, sizeof narrow);
        value = narrow;
    }
    json_object_set_new(to, key, json_integer((json_int_t)value));
}

/* The NUMA node next to an object, if it is exactly one. */
static void add_numa(json_t *to, hwloc_topology_t topology, hwloc_obj_t o)
{
    while (o && !o->nodeset)
        o = o->parent;
    if (o && hwloc_bitmap_weight(o->nodeset) == 1)
        json_object_set_new(to, "numa_node", json_integer(hwloc_bitmap_first(o->nodeset)));
}

static void add_place(json_t *to, cl_device_id d, bool cpu, hwloc_topology_t topology)
{
    if (!topology)
        return;
    if (cpu) {
        add_numa(to, topology, hwloc_get_root_obj(topology));
        return;
    }
#ifdef CL_DEVICE_PCI_BUS_INFO_KHR
    cl_device_pci_bus_info_khr bus;
    if (cl.clGetDeviceInfo(d, CL_DEVICE_PCI_BUS_INFO_KHR, sizeof bus, &bus, NULL) !=
        CL_SUCCESS)
        return;
    char text[32];
    snprintf(text, sizeof text, "%04x:%02x:%02x.%x", bus.pci_domain, bus.pci_bus,
             bus.pci_device, bus.pci_function);
    json_object_set_new(to, "pci", json_string(text));
    hwloc_obj_t o = hwloc_get_pcidev_by_busid(topology, bus.pci_domain, bus.pci_bus,
                                              bus.pci_device, bus.pci_function);
    if (o)
        add_numa(to, topology, hwloc_get_non_io_ancestor_obj(topology, o));
#endif
}

static json_t *describe(cl_device_id d, const char *platform, hwloc_topology_t topology)
{
    json_t *j = json_object();
    cl_device_type type = 0;
    cl_bool unified = CL_FALSE, available = CL_TRUE;
    cl.clGetDeviceInfo(d, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    cl.clGetDeviceInfo(d, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof unified, &unified, NULL);
    cl.clGetDeviceInfo(d, CL_DEVICE_AVAILABLE, sizeof available, &available, NULL);
    bool cpu = type & CL_DEVICE_TYPE_CPU;
    json_object_set_new(j, "platform", json_string(platform));
    add_string(j, "name", d, CL_DEVICE_NAME);
    add_string(j, "vendor", d, CL_DEVICE_VENDOR);
    add_string(j, "driver", d, CL_DRIVER_VERSION);
    json_object_set_new(j, "type",
                        json_string(cpu                                 ? "cpu"
                                    : type & CL_DEVICE_TYPE_GPU         ? "gpu"
                                    : type & CL_DEVICE_TYPE_ACCELERATOR ? "accelerator"
                                                                        : "other"));
    add_u64(j, "memory_bytes", d, CL_DEVICE_GLOBAL_MEM_SIZE);
    add_u64(j, "max_alloc_bytes", d, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    add_u64(j, "compute_units", d, CL_DEVICE_MAX_COMPUTE_UNITS);
    add_u64(j, "clock_mhz", d, CL_DEVICE_MAX_CLOCK_FREQUENCY);
    json_object_set_new(j, "unified", json_boolean(cpu || unified));
    if (!available)
        json_object_set_new(j, "failed",
                            json_string("the driver says it is not available"));
    add_place(j, d, cpu, topology);
    return j;
}

static hwloc_topology_t load_topology(void)
{
    hwloc_topology_t t;
    if (hwloc_topology_init(&t) != 0)
        return NULL;
    hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (hwloc_topology_load(t) == 0)
        return t;
    hwloc_topology_destroy(t);
    return NULL;
}

static void list_platform(cl_platform_id p, hwloc_topology_t topology, json_t *list)
{
    char name[256] = "";
    cl_device_id devices[MAX_DEVICES];
    cl_uint count = 0;
    cl.clGetPlatformInfo(p, CL_PLATFORM_NAME, sizeof name - 1, name, NULL);
    if (cl.clGetDeviceIDs(p, CL_DEVICE_TYPE_ALL, MAX_DEVICES, devices, &count) !=
        CL_SUCCESS)
        return; /* a platform without devices is ordinary */
    for (cl_uint i = 0; i < count && i < MAX_DEVICES; i++)
        json_array_append_new(list, describe(devices[i], name, topology));
}

json_t *probe_opencl(void)
{
    json_t *list = json_array();
    const char *note = load();
    if (!note) {
        cl_platform_id platforms[MAX_PLATFORMS];
        cl_uint count = 0;
        if (cl.clGetPlatformIDs(MAX_PLATFORMS, platforms, &count) != CL_SUCCESS)
            note = "the OpenCL loader knows no platform";
        hwloc_topology_t topology = count ? load_topology() : NULL;
        for (cl_uint i = 0; i < count && i < MAX_PLATFORMS; i++)
            list_platform(platforms[i], topology, list);
        if (topology)
            hwloc_topology_destroy(topology);
    }
    json_t *root = json_pack("{s:o}", "devices", list);
    if (note)
        json_object_set_new(root, "note", json_string(note));
    return root;
}
