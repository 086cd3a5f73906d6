/* Rows: what a program inside a slice is shown. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "opencl.h"

static bool no_platform(void)
{
    cl_uint n = 7;
    cl_platform_id p;
    EXPECT(clGetPlatformIDs(1, &p, &n) == CL_PLATFORM_NOT_FOUND_KHR);
    EXPECT(n == 0);
    return true;
}

static bool refused_at_hello(void)
{
    broker.hello_code = -SL_DENIED;
    return no_platform();
}

static bool other_device(void)
{
    strcpy(broker.name, "Another device");
    return no_platform();
}

static bool other_driver(void)
{
    strcpy(broker.driver, "fake-2.0");
    return no_platform();
}

static bool sizes(void)
{
    struct fixture f;
    cl_ulong total = 0, max = 0;
    cl_uint parts = 7;
    EXPECT(fixture_open(&f));
    clGetDeviceInfo(f.device[0], CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(total), &total, NULL);
    clGetDeviceInfo(f.device[0], CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(max), &max, NULL);
    clGetDeviceInfo(f.device[0], CL_DEVICE_PARTITION_MAX_SUB_DEVICES, sizeof(parts), &parts,
                    NULL);
    EXPECT(total == 64 * MIB && max == 64 * MIB && parts == 0);
    return true;
}

static bool smaller_driver_maximum(void)
{
    struct fixture f;
    cl_ulong max = 0;
    EXPECT(fixture_open(&f));
    clGetDeviceInfo(f.device[0], CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(max), &max, NULL);
    EXPECT(max == 1 * MIB);
    return true;
}

static bool two_of_three_devices(void)
{
    struct fixture f;
    EXPECT(fixture_open(&f));
    EXPECT(f.devices == 2);
    return true;
}

static bool extension_strings(void)
{
    struct fixture f;
    char text[512];
    cl_name_version list[8];
    size_t size = 0;
    EXPECT(fixture_open(&f));
    clGetDeviceInfo(f.device[0], CL_DEVICE_EXTENSIONS, sizeof(text), text, NULL);
    EXPECT(strcmp(text,
                  "cl_khr_fp64 cl_khr_command_buffer cl_intel_unified_shared_memory") == 0);
    clGetPlatformInfo(f.platform, CL_PLATFORM_EXTENSIONS, sizeof(text), text, NULL);
    EXPECT(strcmp(text, "cl_khr_icd") == 0);
    clGetDeviceInfo(f.device[0], CL_DEVICE_EXTENSIONS_WITH_VERSION, sizeof(list), list,
                    &size);
    EXPECT(size == sizeof(list[0]) && strcmp(list[0].name, "cl_khr_fp64") == 0);
    clGetPlatformInfo(f.platform, CL_PLATFORM_EXTENSIONS_WITH_VERSION, sizeof(list), list,
                      &size);
    EXPECT(size == sizeof(list[0]) && strcmp(list[0].name, "cl_khr_icd") == 0);
    return true;
}

static bool unknown_functions(void)
{
    struct fixture f;
    EXPECT(fixture_open(&f));
    EXPECT(!fixture_fn(&f, "clStubSecretSubmit"));
    EXPECT(!fixture_fn(&f, "clTerminateContextKHR"));
    EXPECT(fixture_fn(&f, "clEnqueueCommandBufferKHR"));
    EXPECT(atomic_load(&fake_slot(&broker, 0)->ungated) >= 1);
    return true;
}

const struct row view_rows[] = {
    { "without a broker there is no device", "TEST_NO_BROKER=1", no_platform },
    { "a process without a lease sees no device", "", refused_at_hello },
    { "a device of another name is hidden", "", other_device },
    { "a device of another driver version is hidden", "", other_driver },
    { "sizes are the slice's, and parts are not offered", "", sizes },
    { "the driver's smaller maximum allocation stands", "STUB_MAX_ALLOC=1048576",
      smaller_driver_maximum },
    { "of three alike devices the two leased ones are shown", "STUB_DEVICES=3",
      two_of_three_devices },
    { "unknown extensions are taken out of all four strings", "", extension_strings },
    { "unknown extension functions have no address and are counted", "",
      unknown_functions },
    { NULL, NULL, NULL },
};
