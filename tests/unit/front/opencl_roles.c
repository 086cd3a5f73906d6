/* For each row of gen/opencl.tbl with a role: what the role must bring about. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opencl.h"

static struct fixture f;
static const char *name;
static const size_t zero3[3], ones3[3] = { 1, 1, 1 };
static char host[4096];

static bool is(const char *want)
{
    return strcmp(name, want) == 0;
}

static uint32_t in_flight(void)
{
    return SLOT_FLIGHT(atomic_load(&fake_slot(&broker, 0)->state));
}

static void CL_CALLBACK native(void *args) {}

static cl_int launch(cl_command_queue q, cl_uint n, const cl_event *list, cl_event *e)
{
    return clEnqueueNDRangeKernel(q, f.kernel, 1, NULL, ones3, NULL, n, list, e);
}

/* ---- commands --------------------------------------------------------------------- */

#define NONE 0, NULL, NULL
#define CALL(fn, ...)           \
    if (is(#fn)) {              \
        *known = true;          \
        return fn(__VA_ARGS__); \
    }
#define CALL_EXT(fn, ...)                                   \
    if (is(#fn)) {                                          \
        *known = true;                                      \
        return ((fn##_fn)fixture_fn(&f, #fn))(__VA_ARGS__); \
    }

static cl_int command_buffer(void)
{
    cl_int code;
    cl_command_buffer_khr b = ((clCreateCommandBufferKHR_fn)fixture_fn(
        &f, "clCreateCommandBufferKHR"))(1, &f.queue, NULL, &code);
    return ((clEnqueueCommandBufferKHR_fn)fixture_fn(&f, "clEnqueueCommandBufferKHR"))(
        is("clEnqueueCommandBufferKHR"), &f.queue, b, NONE);
}

static cl_int command(bool *known)
{
    cl_int code = CL_SUCCESS;
    size_t pitch;
    const void *svm = f.svm;
    CALL(clEnqueueNDRangeKernel, f.queue, f.kernel, 1, NULL, ones3, NULL, NONE)
    CALL(clEnqueueTask, f.queue, f.kernel, NONE)
    CALL(clEnqueueNativeKernel, f.queue, native, NULL, 0, 0, NULL, NULL, NONE)
    CALL(clEnqueueReadBuffer, f.queue, f.a, CL_FALSE, 0, 64, host, NONE)
    CALL(clEnqueueWriteBuffer, f.queue, f.a, CL_FALSE, 0, 64, host, NONE)
    CALL(clEnqueueCopyBuffer, f.queue, f.a, f.b, 0, 0, 64, NONE)
    CALL(clEnqueueFillBuffer, f.queue, f.a, host, 1, 0, 64, NONE)
    CALL(clEnqueueReadImage, f.queue, f.image, CL_FALSE, zero3, ones3, 0, 0, host, NONE)
    CALL(clEnqueueWriteImage, f.queue, f.image, CL_FALSE, zero3, ones3, 0, 0, host, NONE)
    CALL(clEnqueueFillImage, f.queue, f.image, host, zero3, ones3, NONE)
    CALL(clEnqueueCopyImage, f.queue, f.image, f.image, zero3, zero3, ones3, NONE)
    CALL(clEnqueueCopyImageToBuffer, f.queue, f.image, f.a, zero3, ones3, 0, NONE)
    CALL(clEnqueueCopyBufferToImage, f.queue, f.a, f.image, 0, zero3, ones3, NONE)
    CALL(clEnqueueReadBufferRect, f.queue, f.a, CL_FALSE, zero3, zero3, ones3, 0, 0, 0, 0,
         host, NONE)
    CALL(clEnqueueWriteBufferRect, f.queue, f.a, CL_FALSE, zero3, zero3, ones3, 0, 0, 0, 0,
         host, NONE)
    CALL(clEnqueueCopyBufferRect, f.queue, f.a, f.b, zero3, zero3, ones3, 0, 0, 0, 0, NONE)
    CALL(clEnqueueUnmapMemObject, f.queue, f.a, host, NONE)
    CALL(clEnqueueMigrateMemObjects, f.queue, 1, &f.a, 0, NONE)
    CALL(clEnqueueSVMMemcpy, f.queue, CL_FALSE, f.svm, host, 64, NONE)
    CALL(clEnqueueSVMMemFill, f.queue, f.svm, host, 1, 64, NONE)
    CALL(clEnqueueSVMMap, f.queue, CL_FALSE, CL_MAP_READ, f.svm, 64, NONE)
    CALL(clEnqueueSVMUnmap, f.queue, f.svm, NONE)
    CALL(clEnqueueSVMMigrateMem, f.queue, 1, &svm, NULL, 0, NONE)
    CALL_EXT(clEnqueueMemcpyINTEL, f.queue, CL_FALSE, f.svm, host, 64, NONE)
    CALL_EXT(clEnqueueMemFillINTEL, f.queue, f.svm, host, 1, 64, NONE)
    CALL_EXT(clEnqueueMemsetINTEL, f.queue, f.svm, 0, 64, NONE)
    CALL_EXT(clEnqueueMigrateMemINTEL, f.queue, f.svm, 64, 0, NONE)
    CALL_EXT(clEnqueueMigrateMemObjectEXT, f.queue, 1, &f.a, 0, NONE)
    if (is("clEnqueueMapBuffer")) {
        *known = true;
        clEnqueueMapBuffer(f.queue, f.a, CL_FALSE, CL_MAP_READ, 0, 64, NONE, &code);
    } else if (is("clEnqueueMapImage")) {
        *known = true;
        clEnqueueMapImage(f.queue, f.image, CL_FALSE, CL_MAP_READ, zero3, ones3, &pitch,
                          NULL, NONE, &code);
    } else if (is("clEnqueueCommandBufferKHR") || is("clCreateCommandBufferKHR")) {
        *known = true;
        return command_buffer();
    }
    return code;
}

static bool passes_the_gate(bool *known)
{
    uint64_t before = gated_commands();
    cl_int code = command(known);
    if (!*known)
        return false;
    EXPECT(code == CL_SUCCESS);
    EXPECT(clFinish(f.queue) == CL_SUCCESS);
    EXPECT(gated_commands() == before + 1);
    return true;
}

/* ---- memory ----------------------------------------------------------------------- */

static const cl_image_format rgba8 = { CL_RGBA, CL_UNORM_INT8 };

static cl_mem memory(cl_int *code)
{
    cl_image_desc d = { .image_type = CL_MEM_OBJECT_IMAGE2D,
                        .image_width = 16,
                        .image_height = 16 };
    if (is("clCreateBuffer"))
        return clCreateBuffer(f.context, 0, 1024, NULL, code);
    if (is("clCreateBufferWithProperties"))
        return clCreateBufferWithProperties(f.context, NULL, 0, 1024, NULL, code);
    if (is("clCreatePipe"))
        return clCreatePipe(f.context, 0, 16, 64, NULL, code);
    if (is("clCreateImage"))
        return clCreateImage(f.context, 0, &rgba8, &d, NULL, code);
    if (is("clCreateImageWithProperties"))
        return clCreateImageWithProperties(f.context, NULL, 0, &rgba8, &d, NULL, code);
    if (is("clCreateImage2D"))
        return clCreateImage2D(f.context, 0, &rgba8, 16, 16, 0, NULL, code);
    if (is("clCreateImage3D"))
        return clCreateImage3D(f.context, 0, &rgba8, 16, 4, 4, 0, 0, NULL, code);
    return NULL;
}

static void *shared(cl_int *code)
{
    *code = CL_SUCCESS;
    if (is("clHostMemAllocINTEL"))
        return ((clHostMemAllocINTEL_fn)fixture_fn(&f, name))(f.context, NULL, 1024, 0,
                                                              code);
    if (is("clDeviceMemAllocINTEL"))
        return ((clDeviceMemAllocINTEL_fn)fixture_fn(&f, name))(f.context, f.device[0],
                                                                NULL, 1024, 0, code);
    if (is("clSharedMemAllocINTEL"))
        return ((clSharedMemAllocINTEL_fn)fixture_fn(&f, name))(f.context, f.device[0],
                                                                NULL, 1024, 0, code);
    if (is("clMemFreeINTEL") || is("clMemBlockingFreeINTEL"))
        return ((clHostMemAllocINTEL_fn)fixture_fn(&f, "clHostMemAllocINTEL"))(
            f.context, NULL, 1024, 0, code);
    if (is("clSVMAlloc") || is("clSVMFree") || is("clEnqueueSVMFree"))
        return clSVMAlloc(f.context, 0, 1024, 0);
    return NULL;
}

static void shared_free(void *p)
{
    if (is("clMemBlockingFreeINTEL"))
        ((clMemBlockingFreeINTEL_fn)fixture_fn(&f, name))(f.context, p);
    else if (strstr(name, "INTEL"))
        ((clMemFreeINTEL_fn)fixture_fn(&f, "clMemFreeINTEL"))(f.context, p);
    else if (is("clEnqueueSVMFree"))
        clEnqueueSVMFree(f.queue, 1, &p, NULL, NULL, 0, NULL, NULL);
    else
        clSVMFree(f.context, p);
    clFinish(f.queue);
}

static bool charges_and_refunds(bool *known)
{
    cl_int code = CL_SUCCESS;
    uint64_t before = used_bytes();
    cl_mem m = memory(&code);
    void *p = m ? NULL : shared(&code);
    *known = m || p;
    if (!*known)
        return false;
    EXPECT(code == CL_SUCCESS && used_bytes() == before + 1024);
    if (m)
        clReleaseMemObject(m);
    else
        shared_free(p);
    EXPECT(used_bytes() == before);
    return true;
}

/* ---- order behind user events ----------------------------------------------------- */

/* The last command of a sequence must be held, so nothing is in flight. */
static bool holds(bool *known)
{
    cl_int code;
    cl_event user = clCreateUserEvent(f.context, &code), e = NULL;
    cl_command_queue other = clCreateCommandQueue(f.context, f.device[0], 0, &code);
    *known = true;
    if (is("clCreateUserEvent")) {
        EXPECT(launch(f.queue, 1, &user, NULL) == CL_SUCCESS);
    } else if (is("clEnqueueMarkerWithWaitList")) {
        EXPECT(clEnqueueMarkerWithWaitList(f.queue, 1, &user, NULL) == CL_SUCCESS);
        EXPECT(launch(f.queue, 0, NULL, NULL) == CL_SUCCESS);
    } else if (is("clEnqueueBarrierWithWaitList")) {
        EXPECT(clEnqueueBarrierWithWaitList(f.unordered, 1, &user, NULL) == CL_SUCCESS);
        EXPECT(launch(f.unordered, 0, NULL, NULL) == CL_SUCCESS);
    } else if (is("clEnqueueWaitForEvents")) {
        EXPECT(clEnqueueWaitForEvents(f.unordered, 1, &user) == CL_SUCCESS);
        EXPECT(launch(f.unordered, 0, NULL, NULL) == CL_SUCCESS);
    } else if (is("clEnqueueBarrier")) {
        EXPECT(launch(f.unordered, 1, &user, NULL) == CL_SUCCESS);
        EXPECT(clEnqueueBarrier(f.unordered) == CL_SUCCESS);
        EXPECT(launch(f.unordered, 0, NULL, NULL) == CL_SUCCESS);
    } else if (is("clEnqueueMarker")) {
        EXPECT(launch(f.queue, 1, &user, NULL) == CL_SUCCESS);
        EXPECT(clEnqueueMarker(f.queue, &e) == CL_SUCCESS);
        EXPECT(launch(other, 1, &e, NULL) == CL_SUCCESS);
    } else {
        *known = false;
        return false;
    }
    usleep(100000);
    EXPECT(in_flight() == 0);
    return true;
}

static void CL_CALLBACK launch_in_event(cl_event e, cl_int status, void *data)
{
    launch(f.queue, 0, NULL, NULL);
}

static void CL_CALLBACK launch_in_mem(cl_mem m, void *data)
{
    launch(f.queue, 0, NULL, NULL);
}

static int builds_told;

static void CL_CALLBACK launch_in_build(cl_program p, void *data)
{
    launch(f.queue, 0, NULL, NULL);
    builds_told++;
}

static bool idle(void *unused)
{
    return in_flight() == 0;
}

/* Blocks for ever (and is ended by the alarm) when the callback is not fenced. */
static bool fences_callbacks(bool *known)
{
    cl_int code;
    *known = is("clSetEventCallback") || is("clSetMemObjectDestructorCallback");
    if (!*known)
        return false;
    cl_event user = clCreateUserEvent(f.context, &code);
    clSetEventCallback(user, CL_COMPLETE, launch_in_event, NULL);
    clSetMemObjectDestructorCallback(f.b, launch_in_mem, NULL);
    broker.auto_grant = 0;
    EXPECT(eventually(idle, NULL));
    fake_pass_over(&broker, 0);
    if (is("clSetEventCallback"))
        clSetUserEventStatus(user, CL_COMPLETE);
    else
        clReleaseMemObject(f.b);
    return true;
}

/* The same for what a build calls. */
static bool fences_builds(bool *known)
{
    cl_int code;
    const char *text = "";
    *known = is("clBuildProgram") || is("clCompileProgram") || is("clLinkProgram");
    if (!*known)
        return false;
    cl_program p = clCreateProgramWithSource(f.context, 1, &text, NULL, &code);
    broker.auto_grant = 0;
    EXPECT(eventually(idle, NULL));
    fake_pass_over(&broker, 0);
    if (is("clBuildProgram"))
        clBuildProgram(p, 0, NULL, "", launch_in_build, NULL);
    else if (is("clCompileProgram"))
        clCompileProgram(p, 0, NULL, "", 0, NULL, NULL, launch_in_build, NULL);
    else
        clLinkProgram(f.context, 0, NULL, "", 1, &p, launch_in_build, NULL, &code);
    return builds_told == 1;
}

/* What the front does so that it hears of a completion. */
static int sensed(void)
{
    return driver_calls("clSetEventCallback") + driver_calls("clEnqueueMarkerWithWaitList");
}

/* After it the turn is idle at once, though nothing reported the completion.  Not after
 * every one: a command that the front takes for long, or that closes a batch, is sensed. */
static bool drains(bool *known)
{
    cl_event e = NULL;
    bool drained = false;
    *known = is("clFinish") || is("clWaitForEvents");
    if (!*known)
        return false;
    cl_kernel fast = fixture_kernel(&f, "spin_0us");
    for (int i = 0; i < 300 && !drained; i++) {
        int before = sensed();
        clEnqueueNDRangeKernel(f.queue, fast, 1, NULL, ones3, NULL, 0, NULL, &e);
        if (is("clFinish"))
            clFinish(f.queue);
        else
            clWaitForEvents(1, &e);
        drained = in_flight() == 0 && sensed() == before;
    }
    EXPECT(drained);
    return true;
}

static bool forgets_set_events(bool *known)
{
    cl_int code;
    *known = is("clSetUserEventStatus");
    if (!*known)
        return false;
    cl_event user = clCreateUserEvent(f.context, &code);
    int before = driver_calls("clCreateUserEvent");
    clSetUserEventStatus(user, CL_COMPLETE);
    EXPECT(launch(f.queue, 1, &user, NULL) == CL_SUCCESS);
    EXPECT(driver_calls("clCreateUserEvent") == before); /* no gate event was needed */
    return true;
}

/* ---- view ------------------------------------------------------------------------- */

static bool shows_the_slice(bool *known)
{
    char text[256] = "";
    cl_ulong total = 0;
    cl_uint n = 0;
    cl_int code = 0;
    cl_device_id d[4];
    *known = true;
    if (is("clGetPlatformInfo")) {
        clGetPlatformInfo(f.platform, CL_PLATFORM_EXTENSIONS, sizeof(text), text, NULL);
        EXPECT(!strstr(text, "secret"));
    } else if (is("clGetDeviceInfo")) {
        clGetDeviceInfo(f.device[0], CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(total), &total,
                        NULL);
        EXPECT(total == 64 * MIB);
    } else if (is("clGetDeviceIDs")) {
        EXPECT(clGetDeviceIDs(f.platform, CL_DEVICE_TYPE_ALL, 4, d, &n) == CL_SUCCESS &&
               n == 2);
    } else if (is("clCreateContext")) {
        cl_device_id hidden = driver_device(2);
        EXPECT(hidden && !clCreateContext(NULL, 1, &hidden, NULL, NULL, &code));
        EXPECT(code == CL_INVALID_DEVICE);
    } else if (is("clGetExtensionFunctionAddress")) {
        EXPECT(!clGetExtensionFunctionAddress("clStubSecretSubmit"));
    } else if (is("clCreateContextFromType")) {
        cl_context c = clCreateContextFromType(NULL, CL_DEVICE_TYPE_ALL, NULL, NULL, &code);
        clGetContextInfo(c, CL_CONTEXT_NUM_DEVICES, sizeof(n), &n, NULL);
        EXPECT(n == 2);
    } else if (is("clCreateSubDevices")) {
        cl_device_partition_property p[] = { CL_DEVICE_PARTITION_EQUALLY, 1, 0 };
        EXPECT(clCreateSubDevices(f.device[0], p, 4, d, &n) == CL_DEVICE_PARTITION_FAILED);
    } else if (is("clGetExtensionFunctionAddressForPlatform")) {
        EXPECT(!clGetExtensionFunctionAddressForPlatform(f.platform, "clStubSecretSubmit"));
    } else {
        *known = false;
    }
    return *known;
}

static bool before_any_other_call(bool *known)
{
    *known = false;
    if (is("clGetPlatformIDs")) {
        cl_uint n = 9;
        *known = true;
        strcpy(broker.name, "Another device");
        EXPECT(clGetPlatformIDs(0, NULL, &n) == CL_PLATFORM_NOT_FOUND_KHR && n == 0);
        return true;
    }
    return false;
}

bool role_check(const char *row, bool *known)
{
    static bool (*const kinds[])(bool *) = { shows_the_slice,
                                             passes_the_gate,
                                             drains,
                                             holds,
                                             fences_callbacks,
                                             fences_builds,
                                             forgets_set_events,
                                             charges_and_refunds };
    name = row;
    bool ok = before_any_other_call(known);
    if (*known)
        return ok;
    if (!fixture_open(&f))
        return false;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        ok = kinds[i](known);
        if (*known)
            return ok;
    }
    return false;
}
