/* A FAKE OpenCL driver, for tests only: platform, devices and memory.  No hardware is
 * involved. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stub-icd.h"

pthread_mutex_t stub_lock = PTHREAD_MUTEX_INITIALIZER;
cl_icd_dispatch stub_dispatch;

static struct _cl_platform_id platform;
static struct _cl_device_id devices[16];
static int device_count;
static uint64_t mem_bytes, max_alloc, pitch, fail_at;

static struct {
    const char *name;
    int calls;
} counts[256];

STUB_EXPORT int stub_calls(const char *function);
STUB_EXPORT cl_device_id stub_device(int i);
STUB_EXPORT void *clGetExtensionFunctionAddress(const char *name);
STUB_EXPORT cl_int clIcdGetPlatformIDsKHR(cl_uint n, cl_platform_id *out, cl_uint *count);

void stub_count(const char *function)
{
    pthread_mutex_lock(&stub_lock);
    for (int i = 0; i < 256; i++) {
        if (!counts[i].name)
            counts[i].name = function;
        if (strcmp(counts[i].name, function) == 0) {
            counts[i].calls++;
            break;
        }
    }
    pthread_mutex_unlock(&stub_lock);
}

/* How often the driver itself was called: found by tests with dlsym(). */
int stub_calls(const char *function)
{
    int n = 0;
    pthread_mutex_lock(&stub_lock);
    for (int i = 0; i < 256 && counts[i].name; i++)
        if (strcmp(counts[i].name, function) == 0)
            n = counts[i].calls;
    pthread_mutex_unlock(&stub_lock);
    return n;
}

cl_device_id stub_device(int i)
{
    return i < device_count ? &devices[i] : NULL;
}

#define COUNT() stub_count(__func__ + 5) /* functions here are called stub_clX */

void *stub_new(size_t size)
{
    struct object *o = calloc(1, size);
    o->dispatch = &stub_dispatch;
    o->references = 1;
    return o;
}

void stub_retain(void *object)
{
    __atomic_add_fetch(&((struct object *)object)->references, 1, __ATOMIC_SEQ_CST);
}

bool stub_release(void *object)
{
    return __atomic_sub_fetch(&((struct object *)object)->references, 1,
                              __ATOMIC_SEQ_CST) == 0;
}

static cl_int put(const void *value, size_t size, size_t room, void *out, size_t *size_ret)
{
    if (out && room < size)
        return CL_INVALID_VALUE;
    if (out)
        memcpy(out, value, size);
    if (size_ret)
        *size_ret = size;
    return CL_SUCCESS;
}

#define PUT(value)  put(&(value), sizeof(value), room, out, size_ret)
#define PUT_TEXT(t) put(t, strlen(t) + 1, room, out, size_ret)

/* ---- platform and devices --------------------------------------------------------- */

static uint64_t env_number(const char *name, uint64_t otherwise)
{
    const char *v = getenv(name);
    return v ? strtoull(v, NULL, 0) : otherwise;
}

static cl_int stub_clGetPlatformInfo(cl_platform_id p, cl_platform_info what, size_t room,
                                     void *out, size_t *size_ret)
{
    static const cl_name_version versions[] = { { CL_MAKE_VERSION(1, 0, 0), "cl_khr_icd" },
                                                { CL_MAKE_VERSION(1, 0, 0),
                                                  "cl_stub_secret" } };
    switch (what) {
    case CL_PLATFORM_NAME:
        return PUT_TEXT("Fake platform of the Sluice tests");
    case CL_PLATFORM_VENDOR:
        return PUT_TEXT("Fake");
    case CL_PLATFORM_VERSION:
        return PUT_TEXT("OpenCL 3.0 Fake");
    case CL_PLATFORM_PROFILE:
        return PUT_TEXT("FULL_PROFILE");
    case CL_PLATFORM_EXTENSIONS:
        return PUT_TEXT("cl_khr_icd cl_stub_secret");
    case CL_PLATFORM_EXTENSIONS_WITH_VERSION:
        return PUT(versions);
    case CL_PLATFORM_ICD_SUFFIX_KHR:
        return PUT_TEXT("FAKE");
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int stub_clGetDeviceIDs(cl_platform_id p, cl_device_type type, cl_uint n,
                                  cl_device_id *out, cl_uint *count)
{
    if (!(type & (CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_DEFAULT)))
        return CL_DEVICE_NOT_FOUND;
    for (int i = 0; out && i < device_count && i < (int)n; i++)
        out[i] = &devices[i];
    if (count)
        *count = (cl_uint)device_count;
    return CL_SUCCESS;
}

static cl_int stub_clGetDeviceInfo(cl_device_id d, cl_device_info what, size_t room,
                                   void *out, size_t *size_ret)
{
    static const char exts[] =
        "cl_khr_fp64 cl_khr_command_buffer cl_stub_secret cl_intel_unified_shared_memory";
    static const cl_name_version versions[] = { { CL_MAKE_VERSION(1, 0, 0), "cl_khr_fp64" },
                                                { CL_MAKE_VERSION(1, 0, 0),
                                                  "cl_stub_secret" } };
    cl_device_type type = CL_DEVICE_TYPE_GPU;
    cl_ulong total = mem_bytes, max = max_alloc;
    cl_uint two = 2;
    size_t big = 1024;
    cl_bool yes = CL_TRUE;
    cl_platform_id owner = &platform;
    switch (what) {
    case CL_DEVICE_TYPE:
        return PUT(type);
    case CL_DEVICE_NAME:
        return PUT_TEXT("Fake device");
    case CL_DEVICE_VENDOR:
        return PUT_TEXT("Fake");
    case CL_DRIVER_VERSION:
        return PUT_TEXT("fake-1.0");
    case CL_DEVICE_VERSION:
        return PUT_TEXT("OpenCL 3.0 Fake");
    case CL_DEVICE_EXTENSIONS:
        return PUT_TEXT(exts);
    case CL_DEVICE_EXTENSIONS_WITH_VERSION:
        return PUT(versions);
    case CL_DEVICE_GLOBAL_MEM_SIZE:
    case CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE:
        return PUT(total);
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
        return PUT(max);
    case CL_DEVICE_MAX_COMPUTE_UNITS:
    case CL_DEVICE_PARTITION_MAX_SUB_DEVICES:
        return PUT(two);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
        return PUT(big);
    case CL_DEVICE_AVAILABLE:
    case CL_DEVICE_IMAGE_SUPPORT:
        return PUT(yes);
    case CL_DEVICE_PLATFORM:
        return PUT(owner);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int stub_clCreateSubDevices(cl_device_id d, const cl_device_partition_property *p,
                                      cl_uint n, cl_device_id *out, cl_uint *count)
{
    COUNT();
    for (cl_uint i = 0; out && i < n; i++)
        out[i] = d;
    if (count)
        *count = 2;
    return CL_SUCCESS;
}

/* ---- contexts, programs, kernels -------------------------------------------------- */

static cl_context stub_clCreateContext(const cl_context_properties *properties, cl_uint n,
                                       const cl_device_id *list,
                                       void(CL_CALLBACK *notify)(const char *, const void *,
                                                                 size_t, void *),
                                       void *data, cl_int *code)
{
    COUNT();
    cl_context c = stub_new(sizeof(*c));
    c->count = n;
    memcpy(c->device, list, n * sizeof(*list));
    if (code)
        *code = CL_SUCCESS;
    return c;
}

static cl_context stub_clCreateContextFromType(
    const cl_context_properties *properties, cl_device_type type,
    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *data,
    cl_int *code)
{
    cl_device_id list[16];
    for (int i = 0; i < device_count; i++)
        list[i] = &devices[i];
    return stub_clCreateContext(properties, (cl_uint)device_count, list, notify, data,
                                code);
}

static cl_int retain_any(void *o)
{
    stub_retain(o);
    return CL_SUCCESS;
}

static cl_int release_any(void *o)
{
    if (stub_release(o))
        free(o);
    return CL_SUCCESS;
}

#define RETAIN_RELEASE(type, Name)             \
    static cl_int stub_clRetain##Name(type o)  \
    {                                          \
        return retain_any(o);                  \
    }                                          \
    static cl_int stub_clRelease##Name(type o) \
    {                                          \
        return release_any(o);                 \
    }
RETAIN_RELEASE(cl_context, Context)
RETAIN_RELEASE(cl_program, Program)
RETAIN_RELEASE(cl_kernel, Kernel)

static cl_int stub_clGetContextInfo(cl_context c, cl_context_info what, size_t room,
                                    void *out, size_t *size_ret)
{
    cl_uint n = c->count;
    switch (what) {
    case CL_CONTEXT_DEVICES:
        return put(c->device, n * sizeof(c->device[0]), room, out, size_ret);
    case CL_CONTEXT_NUM_DEVICES:
        return PUT(n);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_program stub_clCreateProgramWithSource(cl_context c, cl_uint n, const char **text,
                                                 const size_t *sizes, cl_int *code)
{
    cl_program p = stub_new(sizeof(*p));
    p->context = c;
    if (code)
        *code = CL_SUCCESS;
    return p;
}

static cl_int stub_clBuildProgram(cl_program p, cl_uint n, const cl_device_id *list,
                                  const char *options,
                                  void(CL_CALLBACK *notify)(cl_program, void *), void *data)
{
    if (notify)
        notify(p, data);
    return CL_SUCCESS;
}

/* Calls back and fails, as some drivers do. */
static cl_int stub_clCompileProgram(cl_program p, cl_uint n, const cl_device_id *list,
                                    const char *options, cl_uint headers,
                                    const cl_program *header, const char **names,
                                    void(CL_CALLBACK *notify)(cl_program, void *),
                                    void *data)
{
    if (notify)
        notify(p, data);
    return CL_COMPILE_PROGRAM_FAILURE;
}

static cl_program stub_clLinkProgram(cl_context c, cl_uint n, const cl_device_id *list,
                                     const char *options, cl_uint programs,
                                     const cl_program *program,
                                     void(CL_CALLBACK *notify)(cl_program, void *),
                                     void *data, cl_int *code)
{
    cl_program p = stub_clCreateProgramWithSource(c, 0, NULL, NULL, code);
    if (notify)
        notify(p, data);
    return p;
}

static cl_kernel stub_clCreateKernel(cl_program p, const char *name, cl_int *code)
{
    cl_kernel k = stub_new(sizeof(*k));
    const char *digits = strpbrk(name, "0123456789");
    char *unit = NULL;
    if (digits) {
        k->ns = strtoull(digits, &unit, 10);
        k->ns *= strcmp(unit, "ms") == 0 ? 1000000 : strcmp(unit, "us") == 0 ? 1000 : 1;
    }
    k->never = strstr(name, "never") != NULL;
    if (code)
        *code = CL_SUCCESS;
    return k;
}

static cl_int stub_clSetKernelArg(cl_kernel k, cl_uint i, size_t size, const void *value)
{
    return CL_SUCCESS;
}

/* ---- memory ----------------------------------------------------------------------- */

static void *kept; /* STUB_NO_ZERO: the block freed last */
static size_t kept_size;

void *stub_memory(size_t size)
{
    static uint64_t allocations;
    if (__atomic_add_fetch(&allocations, 1, __ATOMIC_SEQ_CST) == fail_at)
        return NULL;
    pthread_mutex_lock(&stub_lock);
    size_t *head = NULL;
    if (kept && kept_size == size) {
        head = kept;
        kept = NULL;
    }
    pthread_mutex_unlock(&stub_lock);
    if (!head)
        head = calloc(1, size + 64);
    if (!head)
        return NULL;
    *head = size;
    return (char *)head + 64;
}

void stub_memory_free(void *p)
{
    if (!p)
        return;
    void *head = (char *)p - 64, *old = head;
    pthread_mutex_lock(&stub_lock);
    if (getenv("STUB_NO_ZERO")) {
        old = kept;
        kept = head;
        kept_size = *(size_t *)head;
    }
    pthread_mutex_unlock(&stub_lock);
    free(old);
}

static cl_mem mem_make(cl_context c, cl_mem_flags flags, size_t size, void *host,
                       cl_int *code)
{
    cl_int ignored;
    if (!code)
        code = &ignored;
    *code = size == 0 ? CL_INVALID_BUFFER_SIZE : CL_MEM_OBJECT_ALLOCATION_FAILURE;
    bool use = flags & CL_MEM_USE_HOST_PTR;
    char *bytes = size == 0 ? NULL : use ? host : stub_memory(size);
    if (!bytes)
        return NULL;
    *code = CL_SUCCESS;
    cl_mem m = stub_new(sizeof(*m));
    m->context = c;
    m->size = size;
    m->bytes = bytes;
    m->host = use;
    if (flags & CL_MEM_COPY_HOST_PTR)
        memcpy(bytes, host, size);
    return m;
}

static cl_mem stub_clCreateBuffer(cl_context c, cl_mem_flags flags, size_t size, void *host,
                                  cl_int *code)
{
    COUNT();
    return mem_make(c, flags, size, host, code);
}

static cl_mem stub_clCreateBufferWithProperties(cl_context c, const cl_mem_properties *p,
                                                cl_mem_flags flags, size_t size, void *host,
                                                cl_int *code)
{
    COUNT();
    return mem_make(c, flags, size, host, code);
}

static cl_mem stub_clCreatePipe(cl_context c, cl_mem_flags flags, cl_uint size,
                                cl_uint packets, const cl_pipe_properties *p, cl_int *code)
{
    COUNT();
    return mem_make(c, flags, (size_t)size * packets, NULL, code);
}

static cl_mem stub_clCreateSubBuffer(cl_mem parent, cl_mem_flags flags,
                                     cl_buffer_create_type type, const void *info,
                                     cl_int *code)
{
    const cl_buffer_region *r = info;
    COUNT();
    cl_mem m = stub_new(sizeof(*m));
    m->context = parent->context;
    m->parent = parent;
    m->size = r->size;
    m->bytes = parent->bytes + r->origin;
    stub_retain(parent);
    if (code)
        *code = CL_SUCCESS;
    return m;
}

/* Four bytes an element, rows padded to STUB_PITCH. */
static cl_mem image_make(cl_context c, cl_mem_flags flags, size_t w, size_t h, size_t n,
                         struct _cl_mem *over, void *host, cl_int *code)
{
    size_t row = (w * 4 + pitch - 1) / pitch * pitch;
    h = h ? h : 1;
    n = n ? n : 1;
    cl_mem m =
        over ? stub_clCreateSubBuffer(over, 0, 0, &(cl_buffer_region){ 0, row * h }, code)
             : mem_make(c, flags & ~(cl_mem_flags)CL_MEM_COPY_HOST_PTR, row * h * n, host,
                        code);
    if (m) {
        m->row = row;
        m->slice = n > 1 ? row * h : 0;
    }
    return m;
}

static cl_mem stub_clCreateImage(cl_context c, cl_mem_flags flags, const cl_image_format *f,
                                 const cl_image_desc *d, void *host, cl_int *code)
{
    COUNT();
    size_t n =
        d->image_type == CL_MEM_OBJECT_IMAGE3D ? d->image_depth : d->image_array_size;
    return image_make(c, flags, d->image_width, d->image_height, n, d->mem_object, host,
                      code);
}

static cl_mem stub_clCreateImageWithProperties(cl_context c, const cl_mem_properties *p,
                                               cl_mem_flags flags, const cl_image_format *f,
                                               const cl_image_desc *d, void *host,
                                               cl_int *code)
{
    COUNT();
    return image_make(c, flags, d->image_width, d->image_height, d->image_array_size,
                      d->mem_object, host, code);
}

static cl_mem stub_clCreateImage2D(cl_context c, cl_mem_flags flags,
                                   const cl_image_format *f, size_t w, size_t h, size_t p,
                                   void *host, cl_int *code)
{
    COUNT();
    return image_make(c, flags, w, h, 1, NULL, host, code);
}

static cl_mem stub_clCreateImage3D(cl_context c, cl_mem_flags flags,
                                   const cl_image_format *f, size_t w, size_t h, size_t d,
                                   size_t p, size_t s, void *host, cl_int *code)
{
    COUNT();
    return image_make(c, flags, w, h, d, NULL, host, code);
}

static cl_int stub_clGetImageInfo(cl_mem m, cl_image_info what, size_t room, void *out,
                                  size_t *size_ret)
{
    switch (what) {
    case CL_IMAGE_ROW_PITCH:
        return PUT(m->row);
    case CL_IMAGE_SLICE_PITCH:
        return PUT(m->slice);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int stub_clGetMemObjectInfo(cl_mem m, cl_mem_info what, size_t room, void *out,
                                      size_t *size_ret)
{
    cl_uint n = (cl_uint)m->o.references;
    switch (what) {
    case CL_MEM_SIZE:
        return PUT(m->size);
    case CL_MEM_REFERENCE_COUNT:
        return PUT(n);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int stub_clRetainMemObject(cl_mem m)
{
    return retain_any(m);
}

static cl_int stub_clReleaseMemObject(cl_mem m)
{
    COUNT();
    if (!m)
        return CL_INVALID_MEM_OBJECT;
    if (!stub_release(m))
        return CL_SUCCESS;
    while (m->hooks) {
        struct hook *h = m->hooks;
        m->hooks = h->next;
        h->fn(m, h->data);
        free(h);
    }
    if (m->parent)
        stub_clReleaseMemObject(m->parent);
    else if (!m->host)
        stub_memory_free(m->bytes);
    free(m);
    return CL_SUCCESS;
}

static cl_int stub_clSetMemObjectDestructorCallback(cl_mem m,
                                                    void(CL_CALLBACK *fn)(cl_mem, void *),
                                                    void *data)
{
    struct hook *h = malloc(sizeof(*h));
    *h = (struct hook){ fn, data, m->hooks };
    m->hooks = h;
    return CL_SUCCESS;
}

static void *stub_clSVMAlloc(cl_context c, cl_svm_mem_flags flags, size_t size,
                             unsigned alignment)
{
    COUNT();
    return size ? stub_memory(size) : NULL;
}

static void stub_clSVMFree(cl_context c, void *p)
{
    COUNT();
    stub_memory_free(p);
}

/* ---- the way in ------------------------------------------------------------------- */

static void *stub_clGetExtensionFunctionAddressForPlatform(cl_platform_id p,
                                                           const char *name)
{
    return stub_extension(name);
}

static void fill_dispatch(cl_icd_dispatch *d)
{
    stub_fill_queue_calls(d);
#define SET(x) d->x = stub_##x
    SET(clGetPlatformInfo);
    SET(clGetDeviceIDs);
    SET(clGetDeviceInfo);
    SET(clCreateSubDevices);
    SET(clCreateContext);
    SET(clCreateContextFromType);
    SET(clRetainContext);
    SET(clReleaseContext);
    SET(clGetContextInfo);
    SET(clCreateProgramWithSource);
    SET(clBuildProgram);
    SET(clCompileProgram);
    SET(clLinkProgram);
    SET(clRetainProgram);
    SET(clReleaseProgram);
    SET(clCreateKernel);
    SET(clRetainKernel);
    SET(clReleaseKernel);
    SET(clSetKernelArg);
    SET(clCreateBuffer);
    SET(clCreateBufferWithProperties);
    SET(clCreatePipe);
    SET(clCreateSubBuffer);
    SET(clCreateImage);
    SET(clCreateImageWithProperties);
    SET(clCreateImage2D);
    SET(clCreateImage3D);
    SET(clGetImageInfo);
    SET(clGetMemObjectInfo);
    SET(clRetainMemObject);
    SET(clReleaseMemObject);
    SET(clSetMemObjectDestructorCallback);
    SET(clSVMAlloc);
    SET(clSVMFree);
    SET(clGetExtensionFunctionAddressForPlatform);
    d->clGetExtensionFunctionAddress = clGetExtensionFunctionAddress;
}

cl_int clIcdGetPlatformIDsKHR(cl_uint n, cl_platform_id *out, cl_uint *count)
{
    if (!platform.o.dispatch) {
        fill_dispatch(&stub_dispatch);
        platform.o.dispatch = &stub_dispatch;
        device_count = (int)env_number("STUB_DEVICES", 1);
        mem_bytes = env_number("STUB_MEM_BYTES", 1ull << 30);
        max_alloc = env_number("STUB_MAX_ALLOC", mem_bytes);
        pitch = env_number("STUB_PITCH", 1);
        fail_at = env_number("STUB_FAIL_ALLOC", 0);
        for (int i = 0; i < device_count; i++) {
            devices[i].o.dispatch = &stub_dispatch;
            devices[i].index = i;
        }
    }
    if (out && n)
        out[0] = &platform;
    if (count)
        *count = 1;
    return CL_SUCCESS;
}

void *clGetExtensionFunctionAddress(const char *name)
{
    if (strcmp(name, "clIcdGetPlatformIDsKHR") == 0)
        return (void *)clIcdGetPlatformIDsKHR;
    if (strcmp(name, "clGetPlatformInfo") == 0)
        return (void *)stub_clGetPlatformInfo;
    return stub_extension(name);
}
