/*
 * The program `sluice-selftest`: a small honest OpenCL load.
 *
 * It knows nothing of Sluice: it opens the loader as any program does, says what
 * device it sees, runs kernels of about a millisecond, takes memory to the last
 * byte of what it was shown, and asks for one byte more.  One JSON line on stdout.
 */
#include <dlfcn.h>
#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include <CL/cl.h>

#include "base/cleanup.h"
#include "model/units.h"

#define ITEMS       4096
#define GROUP       64
#define IN_FLIGHT   4
#define MAX_BUFFERS 1024

/* Every entry point used, typed by its own declaration. */
/* clang-format off */
#define CL_FUNCTIONS(X)                                                                \
    X(clGetPlatformIDs) X(clGetPlatformInfo) X(clGetDeviceIDs)                         \
    X(clGetDeviceInfo) X(clCreateContext) X(clCreateCommandQueue)                      \
    X(clCreateProgramWithSource) X(clBuildProgram) X(clCreateKernel)                   \
    X(clSetKernelArg) X(clCreateBuffer) X(clEnqueueNDRangeKernel)                      \
    X(clEnqueueReadBuffer) X(clFinish) X(clFlush)                                      \
    X(clWaitForEvents) X(clReleaseEvent) X(clReleaseMemObject)                         \
    X(clReleaseKernel) X(clReleaseProgram) X(clReleaseCommandQueue)                    \
    X(clReleaseContext) X(clGetExtensionFunctionAddress)
/* clang-format on */

static struct {
#define X(name) __typeof__(&name) name;
    CL_FUNCTIONS(X)
#undef X
} cl;

struct options {
    bool check, info, hold, json;
    double seconds;
    uint64_t mem_bytes; /* 0: nothing */
    uint32_t rounds;    /* 0: calibrate */
    unsigned device;
};

struct load {
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernel;
    cl_mem out;
    cl_mem taken[MAX_BUFFERS];
    unsigned taken_count;
    uint64_t taken_bytes, global_bytes, max_alloc_bytes;
    uint32_t rounds;
};

static const char source[] =
    "__kernel void spin(__global uint *out, uint rounds) {\n"
    "    uint x = (uint)get_global_id(0);\n"
    "    for (uint i = 0; i < rounds; i++) x = x * 1664525u + 1013904223u;\n"
    "    out[get_global_id(0)] = x;\n"
    "}\n";

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* What a slice that is too small, or gone, is answered with. */
static const char *meaning_of(cl_int code)
{
    switch (code) {
    case CL_DEVICE_NOT_FOUND:
        return " (no device found)";
    case CL_DEVICE_NOT_AVAILABLE:
        return " (the device is not available)";
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
        return " (the memory is used up)";
    case CL_OUT_OF_RESOURCES:
        return " (out of resources)";
    case CL_OUT_OF_HOST_MEMORY:
        return " (out of host memory)";
    case CL_INVALID_BUFFER_SIZE:
        return " (a buffer larger than the device allows)";
    default:
        return "";
    }
}

/* Note the first failure in the answer; returns false. */
static bool failed(json_t *answer, const char *what, cl_int code)
{
    char text[128];
    snprintf(text, sizeof text, "%s: OpenCL error %d%s", what, (int)code, meaning_of(code));
    json_object_set_new(answer, "error", json_string(text));
    json_object_set_new(answer, "error_code", json_integer(code));
    return false;
}

static bool open_loader(json_t *answer)
{
    void *lib = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        json_object_set_new(answer, "error", json_string(dlerror()));
        return false;
    }
    const char *missing = NULL;
#define X(name)                                            \
    if (!(cl.name = (__typeof__(&name))dlsym(lib, #name))) \
        missing = #name;
    CL_FUNCTIONS(X)
#undef X
    Dl_info where;
    if (cl.clGetPlatformIDs && dladdr((void *)cl.clGetPlatformIDs, &where))
        json_object_set_new(answer, "loader", json_string(where.dli_fname));
    if (missing)
        json_object_set_new(answer, "error", json_sprintf("the loader has no %s", missing));
    return !missing;
}

/* What ocl-icd says of itself; other loaders say nothing. */
static void describe_loader(json_t *answer)
{
    typedef cl_int loader_info(cl_uint what, size_t size, void *value, size_t *size_out);
    enum { LOADER_VERSION = 2, LOADER_NAME = 3 };
    char text[128];
    loader_info *info =
        (loader_info *)cl.clGetExtensionFunctionAddress("clGetICDLoaderInfoOCLICD");
    if (info && info(LOADER_NAME, sizeof text, text, NULL) == CL_SUCCESS)
        json_object_set_new(answer, "loader_name", json_string(text));
    if (info && info(LOADER_VERSION, sizeof text, text, NULL) == CL_SUCCESS)
        json_object_set_new(answer, "loader_version", json_string(text));
}

/* Device number `which` over all platforms; the platforms and devices go to the answer. */
static bool find_device(unsigned which, struct load *l, json_t *answer)
{
    cl_platform_id platforms[16];
    cl_uint platform_count = 0, seen = 0;
    cl_int rc = cl.clGetPlatformIDs(16, platforms, &platform_count);
    json_t *list = json_array();

    json_object_set_new(answer, "devices", list);
    for (cl_uint p = 0; rc == CL_SUCCESS && p < platform_count && p < 16; p++) {
        cl_device_id devices[32];
        cl_uint count = 0;
        char platform[128] = "", name[128] = "", driver[64] = "";
        cl.clGetPlatformInfo(platforms[p], CL_PLATFORM_NAME, sizeof platform, platform,
                             NULL);
        if (cl.clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 32, devices, &count))
            continue;
        for (cl_uint d = 0; d < count && d < 32; d++, seen++) {
            cl.clGetDeviceInfo(devices[d], CL_DEVICE_NAME, sizeof name, name, NULL);
            cl.clGetDeviceInfo(devices[d], CL_DRIVER_VERSION, sizeof driver, driver, NULL);
            json_array_append_new(list, json_pack("{s:s,s:s,s:s}", "platform", platform,
                                                  "name", name, "driver", driver));
            if (seen == which)
                l->device = devices[d];
        }
    }
    json_object_set_new(answer, "platforms", json_integer(platform_count));
    if (!l->device)
        return failed(answer, "no device", rc ? rc : CL_DEVICE_NOT_FOUND);
    cl_ulong global = 0, largest = 0;
    cl.clGetDeviceInfo(l->device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof global, &global, NULL);
    cl.clGetDeviceInfo(l->device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof largest, &largest,
                       NULL);
    l->global_bytes = global;
    l->max_alloc_bytes = largest;
    json_object_set_new(answer, "global_mem", json_integer((json_int_t)global));
    json_object_set_new(answer, "max_alloc", json_integer((json_int_t)largest));
    return true;
}

static bool build(struct load *l, json_t *answer)
{
    const char *text = source;
    cl_int rc;
    l->context = cl.clCreateContext(NULL, 1, &l->device, NULL, NULL, &rc);
    if (rc)
        return failed(answer, "clCreateContext", rc);
    l->queue = cl.clCreateCommandQueue(l->context, l->device, 0, &rc);
    if (rc)
        return failed(answer, "clCreateCommandQueue", rc);
    l->program = cl.clCreateProgramWithSource(l->context, 1, &text, NULL, &rc);
    if (rc)
        return failed(answer, "clCreateProgramWithSource", rc);
    if ((rc = cl.clBuildProgram(l->program, 1, &l->device, "", NULL, NULL)))
        return failed(answer, "clBuildProgram", rc);
    l->kernel = cl.clCreateKernel(l->program, "spin", &rc);
    if (rc)
        return failed(answer, "clCreateKernel", rc);
    l->out = cl.clCreateBuffer(l->context, CL_MEM_WRITE_ONLY, ITEMS * sizeof(cl_uint), NULL,
                               &rc);
    _Static_assert(ITEMS * sizeof(cl_uint) == 16384, "as said below");
    if (rc)
        return failed(answer, "clCreateBuffer of 16 KiB", rc);
    l->taken_bytes = ITEMS * sizeof(cl_uint);
    return true;
}

static cl_int launch(struct load *l, cl_uint rounds, cl_event *event)
{
    const size_t items = ITEMS, group = GROUP;
    cl.clSetKernelArg(l->kernel, 0, sizeof l->out, &l->out);
    cl.clSetKernelArg(l->kernel, 1, sizeof rounds, &rounds);
    return cl.clEnqueueNDRangeKernel(l->queue, l->kernel, 1, NULL, &items, &group, 0, NULL,
                                     event);
}

/* One kernel, and is what it computed what we compute? */
static bool run_checked(struct load *l, json_t *answer)
{
    cl_uint got[ITEMS], want = ITEMS - 1;
    const cl_uint rounds = 1000;
    cl_int rc = launch(l, rounds, NULL);
    if (!rc)
        rc = cl.clEnqueueReadBuffer(l->queue, l->out, CL_TRUE, 0, sizeof got, got, 0, NULL,
                                    NULL);
    if (rc)
        return failed(answer, "a kernel", rc);
    for (cl_uint i = 0; i < rounds; i++)
        want = want * 1664525u + 1013904223u;
    json_object_set_new(answer, "kernel_ran", json_boolean(got[ITEMS - 1] == want));
    return got[ITEMS - 1] == want;
}

/* Rounds for a kernel of about 1 ms: the quickest of some runs counts, because a run
 * may have waited for its turn. */
static bool calibrate(struct load *l, json_t *answer)
{
    for (cl_uint rounds = 1000;; rounds *= 2) {
        double best = 1e9;
        for (int i = 0; i < 5; i++) {
            double start = now();
            cl_int rc = launch(l, rounds, NULL);
            if (!rc)
                rc = cl.clFinish(l->queue);
            if (rc)
                return failed(answer, "a kernel", rc);
            double took = now() - start;
            best = took < best ? took : best;
        }
        if (best > 0.0005 || rounds > 1u << 28) {
            l->rounds = (uint32_t)((double)rounds * 0.001 / best) + 1;
            return true;
        }
    }
}

/* Keep IN_FLIGHT kernels going for so long; what completed is counted. */
static bool run_load(struct load *l, double seconds, json_t *answer)
{
    cl_event flying[IN_FLIGHT] = { NULL };
    uint64_t launched = 0, done = 0;
    double start = now(), end = start + seconds;

    for (; now() < end; launched++) {
        cl_event *slot = &flying[launched % IN_FLIGHT];
        if (*slot) {
            cl.clWaitForEvents(1, slot);
            cl.clReleaseEvent(*slot);
            *slot = NULL;
            done++;
        }
        cl_int rc = launch(l, l->rounds, slot);
        if (rc)
            return failed(answer, "a kernel", rc);
        cl.clFlush(l->queue);
    }
    double took = now() - start;
    cl.clFinish(l->queue);
    json_object_set_new(answer, "rounds", json_integer(l->rounds));
    json_object_set_new(answer, "seconds", json_real(took));
    json_object_set_new(answer, "kernels", json_integer((json_int_t)done));
    json_object_set_new(answer, "kernels_per_second", json_real((double)done / took));
    return true;
}

/* One buffer more; its code. */
static cl_int take(struct load *l, uint64_t bytes)
{
    cl_int rc;
    if (l->taken_count == MAX_BUFFERS)
        return CL_OUT_OF_RESOURCES;
    cl_mem mem = cl.clCreateBuffer(l->context, CL_MEM_READ_WRITE, bytes, NULL, &rc);
    if (rc)
        return rc;
    l->taken[l->taken_count++] = mem;
    l->taken_bytes += bytes;
    return CL_SUCCESS;
}

/* Up to `goal` bytes in all, in pieces that the device takes; then, if the goal is all
 * that there is, one byte more, which must be refused. */
static void take_memory(struct load *l, uint64_t goal, json_t *answer)
{
    cl_int rc = CL_SUCCESS;
    while (!rc && l->taken_bytes < goal) {
        uint64_t bytes = goal - l->taken_bytes;
        rc = take(l, bytes < l->max_alloc_bytes ? bytes : l->max_alloc_bytes);
    }
    json_object_set_new(answer, "asked_bytes", json_integer((json_int_t)goal));
    json_object_set_new(answer, "taken_bytes", json_integer((json_int_t)l->taken_bytes));
    json_object_set_new(answer, "take_code", json_integer(rc));
    if (rc || goal < l->global_bytes)
        return;
    rc = take(l, 1);
    json_object_set_new(answer, "one_more_code", json_integer(rc));
    json_object_set_new(answer, "one_more_refused", json_boolean(rc != CL_SUCCESS));
}

static void give_back(struct load *l)
{
    for (unsigned i = 0; i < l->taken_count; i++)
        cl.clReleaseMemObject(l->taken[i]);
    if (l->out)
        cl.clReleaseMemObject(l->out);
    if (l->kernel)
        cl.clReleaseKernel(l->kernel);
    if (l->program)
        cl.clReleaseProgram(l->program);
    if (l->queue)
        cl.clReleaseCommandQueue(l->queue);
    if (l->context)
        cl.clReleaseContext(l->context);
}

static bool run(const struct options *o, struct load *l, json_t *answer)
{
    if (!open_loader(answer))
        return false;
    describe_loader(answer);
    if (!find_device(o->device, l, answer))
        return false;
    if (o->info)
        return true;
    if (!build(l, answer) || !run_checked(l, answer))
        return false;
    /* a bound that is never refused would take the machine's memory: only in a slice */
    if (o->check && l->global_bytes <= (1ull << 30))
        take_memory(l, l->global_bytes, answer);
    if (o->mem_bytes)
        take_memory(l, o->mem_bytes, answer);
    if (o->seconds <= 0)
        return true;
    l->rounds = o->rounds;
    return (l->rounds || calibrate(l, answer)) && run_load(l, o->seconds, answer);
}

static void print_answer(const struct options *o, const json_t *answer)
{
    const char *key;
    json_t *value;
    if (o->json || o->check || o->info) {
        json_dumpf(answer, stdout, JSON_COMPACT);
        fputc('\n', stdout);
    } else {
        json_object_foreach((json_t *)answer, key, value) {
            AUTO_FREE char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
            printf("%-20s %s\n", key, text ? text : "?");
        }
    }
    fflush(stdout);
}

static void usage(FILE *out)
{
    fputs("usage: sluice-selftest [--check | --info] [--seconds S] [--mem SIZE] [--rounds "
          "N]\n"
          "                       [--device N] [--hold] [--json]\n"
          "  --check      one kernel; memory to the last byte shown, and one byte more\n"
          "  --info       only say which loader and devices there are\n"
          "  --seconds S  run kernels of about 1 ms for so long and count them\n"
          "  --mem SIZE   take so much memory; one byte more if that is all there is\n"
          "  --rounds N   work of a kernel (default: calibrated to 1 ms)\n"
          "  --device N   which device, over all platforms (default: 0)\n"
          "  --hold       keep everything until stdin ends\n"
          "  --json       one line of JSON\n",
          out);
}

static bool parse_options(int argc, char **argv, struct options *o)
{
    static const struct option rows[] = {
        { "check", 0, NULL, 'c' },  { "info", 0, NULL, 'i' },    { "hold", 0, NULL, 'h' },
        { "json", 0, NULL, 'j' },   { "seconds", 1, NULL, 's' }, { "mem", 1, NULL, 'm' },
        { "rounds", 1, NULL, 'r' }, { "device", 1, NULL, 'd' },  { 0 },
    };
    struct sl_err err = { 0 };
    for (int c; (c = getopt_long(argc, argv, "", rows, NULL)) != -1;) {
        switch (c) {
        case 'c':
            o->check = true;
            break;
        case 'i':
            o->info = true;
            break;
        case 'h':
            o->hold = true;
            break;
        case 'j':
            o->json = true;
            break;
        case 's':
            o->seconds = atof(optarg);
            break;
        case 'r':
            o->rounds = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'd':
            o->device = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'm':
            if (units_parse_size(optarg, &o->mem_bytes, &err) < 0) {
                fprintf(stderr, "sluice-selftest: --mem: %s\n", err.msg);
                return false;
            }
            break;
        default:
            return false;
        }
    }
    return optind == argc;
}

int main(int argc, char **argv)
{
    struct options o = { 0 };
    static struct load l;
    char byte;

    if (!parse_options(argc, argv, &o)) {
        usage(stderr);
        return 2;
    }
    json_t *answer = json_object();
    if (getenv("SLUICE_LEASE"))
        json_object_set_new(answer, "lease", json_string(getenv("SLUICE_LEASE")));
    bool ok = run(&o, &l, answer);
    print_answer(&o, answer);
    while (o.hold && read(STDIN_FILENO, &byte, 1) > 0)
        ;
    give_back(&l);
    json_decref(answer);
    return ok ? 0 : 1;
}
