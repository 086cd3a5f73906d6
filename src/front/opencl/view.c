/* Shows the slice in the place of the machine: platforms, devices, their sizes and
 * extensions. */
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "opencl/layer.h"

#ifndef CL_DEVICE_GLOBAL_FREE_MEMORY_AMD
#define CL_DEVICE_GLOBAL_FREE_MEMORY_AMD 0x4039
#endif

cl_int ocl_info_put(const void *value, size_t size, size_t room, void *out,
                    size_t *size_ret)
{
    if (out && room < size)
        return CL_INVALID_VALUE;
    if (out)
        memcpy(out, value, size);
    if (size_ret)
        *size_ret = size;
    return CL_SUCCESS;
}

static cl_int put_number(uint64_t value, size_t size, size_t room, void *out,
                         size_t *size_ret)
{
    cl_uint narrow = (cl_uint)value;
    return ocl_info_put(size == sizeof(narrow) ? (void *)&narrow : &value, size, room, out,
                        size_ret);
}

/* ---- platforms and devices -------------------------------------------------------- */

static bool listed(cl_platform_id *list, cl_uint n, cl_platform_id p)
{
    for (cl_uint i = 0; i < n; i++)
        if (list[i] == p)
            return true;
    return false;
}

/* Platforms that carry a leased device, in the order of their devices. */
static cl_uint shown_platforms(const struct ocl_session *s, cl_platform_id *list)
{
    cl_uint n = 0;
    for (uint32_t i = 0; i < s->device_count; i++)
        if (!listed(list, n, s->device[i].platform))
            list[n++] = s->device[i].platform;
    return n;
}

cl_int ocl_clGetPlatformIDs(cl_uint num_entries, cl_platform_id *platforms,
                            cl_uint *num_platforms)
{
    cl_platform_id shown[PROTO_MAX_SLOTS];
    cl_uint n = shown_platforms(ocl_session(), shown);
    if ((platforms && num_entries == 0) || (!platforms && !num_platforms))
        return CL_INVALID_VALUE;
    if (num_platforms)
        *num_platforms = n;
    if (n == 0)
        return CL_PLATFORM_NOT_FOUND_KHR;
    if (platforms)
        memcpy(platforms, shown, min_u64(n, num_entries) * sizeof(*platforms));
    return CL_SUCCESS;
}

/* Leased devices of the platform (NULL: the first shown) and type, in the driver's order.
 */
static cl_uint shown_devices(const struct ocl_session *s, cl_platform_id platform,
                             cl_device_type type, cl_device_id *list)
{
    cl_uint n = 0;
    if (!platform && s->device_count > 0)
        platform = s->device[0].platform;
    for (uint32_t i = 0; i < s->device_count; i++) {
        const struct ocl_device *d = &s->device[i];
        if (d->platform != platform)
            continue;
        if (type == CL_DEVICE_TYPE_ALL || (type & d->type) ||
            ((type & CL_DEVICE_TYPE_DEFAULT) && n == 0))
            list[n++] = d->id;
    }
    return n;
}

cl_int ocl_clGetDeviceIDs(cl_platform_id platform, cl_device_type device_type,
                          cl_uint num_entries, cl_device_id *devices, cl_uint *num_devices)
{
    struct ocl_session *s = ocl_session();
    if ((devices && num_entries == 0) || (!devices && !num_devices))
        return CL_INVALID_VALUE;
    cl_device_id shown[PROTO_MAX_SLOTS];
    cl_uint n = shown_devices(s, platform, device_type, shown);
    if (n == 0) {
        /* Let the driver say what else is wrong with the question. */
        cl_uint ignored;
        cl_int code = ocl_next.clGetDeviceIDs(platform, device_type, 0, NULL, &ignored);
        if (num_devices)
            *num_devices = 0;
        return code == CL_SUCCESS ? CL_DEVICE_NOT_FOUND : code;
    }
    if (num_devices)
        *num_devices = n;
    if (devices)
        memcpy(devices, shown, min_u64(n, num_entries) * sizeof(*devices));
    return CL_SUCCESS;
}

/* ---- extension strings ------------------------------------------------------------ */

static bool extension_shown(const char *name, size_t len)
{
    for (const char *const *e = ocl_shown_extensions; *e; e++)
        if (strlen(*e) == len && memcmp(*e, name, len) == 0)
            return true;
    return false;
}

/* In place: keep the names that we know, one blank between them. */
static void filter_names(char *text)
{
    char *to = text;
    for (char *from = text; *from;) {
        from += strspn(from, " ");
        size_t len = strcspn(from, " ");
        if (len > 0 && extension_shown(from, len)) {
            if (to != text)
                *to++ = ' ';
            memmove(to, from, len);
            to += len;
        }
        from += len;
    }
    *to = 0;
}

static size_t filter_versions(cl_name_version *list, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < size / sizeof(*list); i++)
        if (extension_shown(list[i].name, strnlen(list[i].name, sizeof(list[i].name))))
            list[n++] = list[i];
    return n * sizeof(*list);
}

/* One of the two owners is not NULL. */
static cl_int ask(cl_platform_id platform, cl_device_id device, cl_uint what, size_t room,
                  void *out, size_t *size_ret)
{
    return platform ? ocl_next.clGetPlatformInfo(platform, what, room, out, size_ret)
                    : ocl_next.clGetDeviceInfo(device, what, room, out, size_ret);
}

static cl_int extensions(cl_platform_id platform, cl_device_id device, cl_uint what,
                         bool versions, size_t room, void *out, size_t *size_ret)
{
    size_t size = 0;
    cl_int code = ask(platform, device, what, 0, NULL, &size);
    if (code != CL_SUCCESS)
        return code;
    char *all = calloc(1, size + 1);
    if (!all)
        return CL_OUT_OF_HOST_MEMORY;
    code = ask(platform, device, what, size, all, NULL);
    if (code == CL_SUCCESS && versions) {
        size = filter_versions((cl_name_version *)all, size);
        code = ocl_info_put(all, size, room, out, size_ret);
    } else if (code == CL_SUCCESS) {
        filter_names(all);
        code = ocl_info_put(all, strlen(all) + 1, room, out, size_ret);
    }
    free(all);
    return code;
}

cl_int ocl_clGetPlatformInfo(cl_platform_id platform, cl_platform_info param_name,
                             size_t param_value_size, void *param_value,
                             size_t *param_value_size_ret)
{
    if (platform && (param_name == CL_PLATFORM_EXTENSIONS ||
                     param_name == CL_PLATFORM_EXTENSIONS_WITH_VERSION))
        return extensions(platform, NULL, param_name,
                          param_name == CL_PLATFORM_EXTENSIONS_WITH_VERSION,
                          param_value_size, param_value, param_value_size_ret);
    return ocl_next.clGetPlatformInfo(platform, param_name, param_value_size, param_value,
                                      param_value_size_ret);
}

/* ---- sizes ------------------------------------------------------------------------ */

/* The driver's figure, but at most `bound`. */
static cl_int at_most(cl_device_id device, cl_device_info what, uint64_t bound, size_t room,
                      void *out, size_t *size_ret)
{
    cl_ulong have = 0;
    cl_int code = ocl_next.clGetDeviceInfo(device, what, sizeof(have), &have, NULL);
    if (code != CL_SUCCESS)
        return code;
    return put_number(min_u64(have, bound), sizeof(cl_ulong), room, out, size_ret);
}

cl_int ocl_clGetDeviceInfo(cl_device_id device, cl_device_info param_name,
                           size_t param_value_size, void *param_value,
                           size_t *param_value_size_ret)
{
    struct ocl_session *s = ocl_session();
    const struct ocl_device *d = ocl_device_find(s, device);
    size_t room = param_value_size, *size_ret = param_value_size_ret;
    void *out = param_value;
    if (!d)
        return ocl_next.clGetDeviceInfo(device, param_name, room, out, size_ret);
    switch (param_name) {
    case CL_DEVICE_GLOBAL_MEM_SIZE:
    case CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE:
        return at_most(device, param_name, ocl_limit_bytes(s, d), room, out, size_ret);
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
        return put_number(ocl_max_alloc_bytes(s, d), sizeof(cl_ulong), room, out, size_ret);
    case CL_DEVICE_GLOBAL_FREE_MEMORY_AMD:
        if (ocl_next.clGetDeviceInfo(device, param_name, 0, NULL, NULL) != CL_SUCCESS)
            break;
        return put_number(ocl_free_bytes(s, d) / 1024, sizeof(size_t), room, out, size_ret);
    case CL_DEVICE_EXTENSIONS:
        return extensions(NULL, device, param_name, false, room, out, size_ret);
    case CL_DEVICE_EXTENSIONS_WITH_VERSION:
        return extensions(NULL, device, param_name, true, room, out, size_ret);
    case CL_DEVICE_PARTITION_MAX_SUB_DEVICES:
        return put_number(0, sizeof(cl_uint), room, out, size_ret);
    case CL_DEVICE_PARTITION_PROPERTIES:
        return put_number(0, sizeof(cl_device_partition_property), room, out, size_ret);
    case CL_DEVICE_PARTITION_AFFINITY_DOMAIN:
        return put_number(0, sizeof(cl_device_affinity_domain), room, out, size_ret);
    default:
        break;
    }
    return ocl_next.clGetDeviceInfo(device, param_name, room, out, size_ret);
}

/* ---- contexts and parts of devices ------------------------------------------------ */

static void *refuse(cl_int code, cl_int *errcode_ret)
{
    if (errcode_ret)
        *errcode_ret = code;
    return NULL;
}

cl_context ocl_clCreateContext(const cl_context_properties *properties, cl_uint num_devices,
                               const cl_device_id *devices,
                               void(CL_CALLBACK *pfn_notify)(const char *, const void *,
                                                             size_t, void *),
                               void *user_data, cl_int *errcode_ret)
{
    struct ocl_session *s = ocl_session();
    for (cl_uint i = 0; devices && i < num_devices; i++)
        if (!ocl_device_find(s, devices[i]))
            return refuse(CL_INVALID_DEVICE, errcode_ret);
    return ocl_next.clCreateContext(properties, num_devices, devices, pfn_notify, user_data,
                                    errcode_ret);
}

cl_context ocl_clCreateContextFromType(
    const cl_context_properties *properties, cl_device_type device_type,
    void(CL_CALLBACK *pfn_notify)(const char *, const void *, size_t, void *),
    void *user_data, cl_int *errcode_ret)
{
    struct ocl_session *s = ocl_session();
    cl_platform_id platform = NULL;
    for (const cl_context_properties *p = properties; p && *p; p += 2)
        if (*p == CL_CONTEXT_PLATFORM)
            platform = (cl_platform_id)p[1];
    cl_device_id shown[PROTO_MAX_SLOTS];
    cl_uint n = shown_devices(s, platform, device_type, shown);
    if (n == 0)
        return refuse(CL_DEVICE_NOT_FOUND, errcode_ret);
    return ocl_next.clCreateContext(properties, n, shown, pfn_notify, user_data,
                                    errcode_ret);
}

cl_int ocl_clCreateSubDevices(cl_device_id in_device,
                              const cl_device_partition_property *partition_properties,
                              cl_uint num_entries, cl_device_id *out_devices,
                              cl_uint *num_devices)
{
    return ocl_device_find(ocl_session(), in_device) ? CL_DEVICE_PARTITION_FAILED
                                                     : CL_INVALID_DEVICE;
}

cl_int ocl_clCreateSubDevicesEXT(
    cl_device_id in_device, const cl_device_partition_property_ext *partition_properties,
    cl_uint num_entries, cl_device_id *out_devices, cl_uint *num_devices)
{
    return ocl_device_find(ocl_session(), in_device) ? CL_DEVICE_PARTITION_FAILED_EXT
                                                     : CL_INVALID_DEVICE;
}

cl_int ocl_clGetGLContextInfoKHR(const cl_context_properties *properties,
                                 cl_gl_context_info param_name, size_t param_value_size,
                                 void *param_value, size_t *param_value_size_ret)
{
    cl_device_id all[64];
    size_t size = 0;
    struct ocl_session *s = ocl_session();
    if (!ocl_next.clGetGLContextInfoKHR)
        return CL_INVALID_OPERATION;
    cl_int code =
        ocl_next.clGetGLContextInfoKHR(properties, param_name, sizeof(all), all, &size);
    if (code != CL_SUCCESS)
        return code;
    size_t n = 0;
    for (size_t i = 0; i < size / sizeof(all[0]); i++)
        if (ocl_device_find(s, all[i]))
            all[n++] = all[i];
    return ocl_info_put(all, n * sizeof(all[0]), param_value_size, param_value,
                        param_value_size_ret);
}
