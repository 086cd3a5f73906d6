/* Rows: what is charged, what is refused, what comes back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "opencl.h"

#define LIMIT (64 * MIB)

static const cl_image_format rgba8 = { CL_RGBA, CL_UNORM_INT8 };

static bool buffers_to_the_byte(void)
{
    struct fixture f;
    cl_int code;
    EXPECT(fixture_open(&f));
    uint64_t before = used_bytes(), room = LIMIT - before;
    cl_mem all = clCreateBuffer(f.context, 0, room, NULL, &code);
    EXPECT(all && code == CL_SUCCESS && used_bytes() == LIMIT);
    EXPECT(!clCreateBuffer(f.context, 0, 1, NULL, &code));
    EXPECT(code == CL_MEM_OBJECT_ALLOCATION_FAILURE);
    EXPECT(driver_calls("clCreateBuffer") == 3);
    clReleaseMemObject(all);
    EXPECT(used_bytes() == before);
    return true;
}

static bool one_byte_over(void)
{
    struct fixture f;
    cl_int code;
    EXPECT(fixture_open(&f));
    uint64_t before = used_bytes();
    EXPECT(!clCreateBuffer(f.context, 0, LIMIT - before + 1, NULL, &code));
    EXPECT(code == CL_MEM_OBJECT_ALLOCATION_FAILURE);
    EXPECT(!clCreateBuffer(f.context, 0, LIMIT + 1, NULL, &code));
    EXPECT(code == CL_INVALID_BUFFER_SIZE);
    EXPECT(!clCreateBuffer(f.context, 0, SIZE_MAX, NULL, &code));
    EXPECT(code == CL_INVALID_BUFFER_SIZE);
    EXPECT(!clCreateBuffer(f.context, 0, 0, NULL, &code));
    EXPECT(code == CL_INVALID_BUFFER_SIZE);
    EXPECT(!clSVMAlloc(f.context, 0, LIMIT - before + 1, 0));
    EXPECT(used_bytes() == before);
    return true;
}

static bool driver_failure_costs_nothing(void)
{
    struct fixture f;
    cl_int code = 0;
    EXPECT(fixture_open(&f)); /* four allocations */
    uint64_t before = used_bytes();
    EXPECT(!clCreateBuffer(f.context, 0, 1000, NULL, &code));
    EXPECT(code == CL_MEM_OBJECT_ALLOCATION_FAILURE && used_bytes() == before);
    EXPECT(atomic_load(&broker.aborts) >= 1);
    return true;
}

static bool retained_until_the_last_release(void)
{
    struct fixture f;
    cl_int code;
    EXPECT(fixture_open(&f));
    uint64_t before = used_bytes();
    cl_mem m = clCreateBuffer(f.context, 0, 1 * MIB, NULL, &code);
    clRetainMemObject(m);
    clReleaseMemObject(m);
    EXPECT(used_bytes() == before + 1 * MIB);
    clReleaseMemObject(m);
    EXPECT(used_bytes() == before);
    return true;
}

static bool sub_buffers_are_free(void)
{
    struct fixture f;
    cl_int code;
    EXPECT(fixture_open(&f));
    uint64_t before = used_bytes();
    cl_buffer_region r = { 0, 1024 };
    cl_mem part = clCreateSubBuffer(f.a, 0, CL_BUFFER_CREATE_TYPE_REGION, &r, &code);
    EXPECT(part && used_bytes() == before);
    clReleaseMemObject(f.a);
    EXPECT(used_bytes() == before); /* the part keeps its parent */
    clReleaseMemObject(part);
    EXPECT(used_bytes() == before - 4096);
    return true;
}

static bool host_pointers_count(void)
{
    struct fixture f;
    static char host[8192];
    cl_int code;
    EXPECT(fixture_open(&f));
    uint64_t before = used_bytes();
    cl_mem m = clCreateBuffer(f.context, CL_MEM_USE_HOST_PTR, sizeof(host), host, &code);
    EXPECT(m && used_bytes() == before + sizeof(host));
    return true;
}

static bool images_by_real_size(void)
{
    struct fixture f;
    cl_int code;
    EXPECT(fixture_open(&f));
    uint64_t before = used_bytes();
    cl_image_desc d = { .image_type = CL_MEM_OBJECT_IMAGE3D,
                        .image_width = 10,
                        .image_height = 5,
                        .image_depth = 3 };
    cl_mem m = clCreateImage(f.context, 0, &rgba8, &d, NULL, &code);
    EXPECT(m && used_bytes() == before + 256 * 5 * 3); /* STUB_PITCH=256 */
    clReleaseMemObject(m);
    EXPECT(used_bytes() == before);
    return true;
}

static bool padding_can_be_too_much(void)
{
    struct fixture f;
    cl_int code;
    EXPECT(fixture_open(&f));
    uint64_t before = used_bytes();
    /* 40 bytes a row fit; 1 MiB a row, as the driver makes it, do not. */
    cl_image_desc d = { .image_type = CL_MEM_OBJECT_IMAGE2D,
                        .image_width = 10,
                        .image_height = 65 };
    EXPECT(!clCreateImage(f.context, 0, &rgba8, &d, NULL, &code));
    EXPECT(code == CL_MEM_OBJECT_ALLOCATION_FAILURE && used_bytes() == before);
    return true;
}

static bool image_over_a_buffer_is_free(void)
{
    struct fixture f;
    cl_int code;
    EXPECT(fixture_open(&f));
    uint64_t before = used_bytes();
    cl_image_desc d = { .image_type = CL_MEM_OBJECT_IMAGE2D,
                        .image_width = 8,
                        .image_height = 8,
                        .mem_object = f.a };
    cl_mem m = clCreateImage(f.context, 0, &rgba8, &d, NULL, &code);
    EXPECT(m && used_bytes() == before);
    clReleaseMemObject(m);
    EXPECT(used_bytes() == before);
    return true;
}

static bool on_each_device_of_the_context(void)
{
    struct fixture f;
    cl_int code;
    EXPECT(fixture_open(&f));
    EXPECT(f.devices == 2);
    uint64_t before = used_bytes();
    cl_mem m = clCreateBuffer(f.context, 0, 1000, NULL, &code);
    EXPECT(m && used_bytes() == before + 2000);
    clReleaseMemObject(m);
    EXPECT(used_bytes() == before);
    return true;
}

static bool svm_and_its_queue(void)
{
    struct fixture f;
    EXPECT(fixture_open(&f));
    uint64_t before = used_bytes();
    void *p = clSVMAlloc(f.context, 0, 1 * MIB, 0),
         *q = clSVMAlloc(f.context, 0, 2 * MIB, 0);
    EXPECT(p && q && used_bytes() == before + 3 * MIB);
    clSVMFree(f.context, p);
    EXPECT(used_bytes() == before + 2 * MIB);
    EXPECT(clEnqueueSVMFree(f.queue, 1, &q, NULL, NULL, 0, NULL, NULL) == CL_SUCCESS);
    clFinish(f.queue);
    EXPECT(used_bytes() == before);
    clSVMFree(f.context, NULL);
    EXPECT(used_bytes() == before);
    return true;
}

static bool unified_shared_memory(void)
{
    struct fixture f;
    cl_int code;
    EXPECT(fixture_open(&f));
    uint64_t before = used_bytes();
    clDeviceMemAllocINTEL_fn alloc =
        (clDeviceMemAllocINTEL_fn)fixture_fn(&f, "clDeviceMemAllocINTEL");
    clMemFreeINTEL_fn release = (clMemFreeINTEL_fn)fixture_fn(&f, "clMemFreeINTEL");
    EXPECT(alloc && release);
    void *p = alloc(f.context, f.device[0], NULL, 1 * MIB, 0, &code);
    EXPECT(p && used_bytes() == before + 1 * MIB);
    EXPECT(!alloc(f.context, f.device[0], NULL, LIMIT, 0, &code) &&
           code == CL_OUT_OF_RESOURCES);
    EXPECT(release(f.context, p) == CL_SUCCESS && used_bytes() == before);
    return true;
}

static bool broker_gone(void)
{
    struct fixture f;
    cl_int code;
    EXPECT(fixture_open(&f));
    fake_kill(&broker);
    EXPECT(!clCreateBuffer(f.context, 0, 1000, NULL, &code));
    EXPECT(code == CL_MEM_OBJECT_ALLOCATION_FAILURE);
    return true;
}

/* Exit status of a child that does `what`. */
static int in_child(bool (*what)(void *), void *arg)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        alarm(20); /* the parent's is not inherited: a child that hangs must be red, too */
        _exit(what(arg) ? 0 : 1);
    }
    waitpid(child, &status, 0);
    return status;
}

static bool child_opens(void *f)
{
    return fixture_open(f);
}

static bool fork_before_first_use(void)
{
    struct fixture f;
    EXPECT(in_child(child_opens, &f) == 0);
    EXPECT(fixture_open(&f));
    EXPECT(atomic_load(&broker.hellos) == 2);
    return true;
}

static bool child_allocates(void *arg)
{
    struct fixture *f = arg;
    cl_int code;
    return clCreateBuffer(f->context, 0, 1 * MIB, NULL, &code) != NULL &&
           !clCreateBuffer(f->context, 0, LIMIT - 1 * MIB, NULL, &code);
}

static bool fork_after_first_use(void)
{
    struct fixture f;
    EXPECT(fixture_open(&f));
    uint64_t before = used_bytes();
    EXPECT(in_child(child_allocates, &f) == 0);
    EXPECT(used_bytes() == before + 1 * MIB); /* the fake broker sees no deaths */
    EXPECT(atomic_load(&broker.hellos) == 2);
    return true;
}

const struct row mem_rows[] = {
    { "a fork before the first use leaves two processes that work", "",
      fork_before_first_use },
    { "a child forked later is charged through a link of its own", "",
      fork_after_first_use },
    { "buffers are charged to the last byte and come back", "", buffers_to_the_byte },
    { "one byte over is refused with the API's own codes", "", one_byte_over },
    { "an allocation that the driver fails costs nothing", "STUB_FAIL_ALLOC=5",
      driver_failure_costs_nothing },
    { "a retained buffer stays charged until its last release", "",
      retained_until_the_last_release },
    { "a sub-buffer costs nothing and keeps its parent charged", "", sub_buffers_are_free },
    { "a buffer over a host pointer counts", "", host_pointers_count },
    { "an image is charged by the driver's pitches", "STUB_PITCH=256",
      images_by_real_size },
    { "an image whose padding does not fit is refused and gone", "STUB_PITCH=1048576",
      padding_can_be_too_much },
    { "an image over a buffer costs nothing", "", image_over_a_buffer_is_free },
    { "a buffer is charged on each device of its context", "STUB_DEVICES=2",
      on_each_device_of_the_context },
    { "shared memory is charged and comes back by call and by queue", "",
      svm_and_its_queue },
    { "unified shared memory is charged", "", unified_shared_memory },
    { "without the broker memory does not grow", "", broker_gone },
    { NULL, NULL, NULL },
};
