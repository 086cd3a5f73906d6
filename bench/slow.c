/*
 * bench-slow: what the front costs a program that has the device for itself.
 *
 * Runs inside a lease with the bench build of the front, which tells the driver's own functions:
 * blocks of 50 ms through the front and past it in random order, beside pairs of two blocks past
 * it, so that the machine's own noise stands next to the figure.  A block ends when
 * its work is complete.  Past the front also means past the loader's own dispatch (2 ns a call):
 * the figure errs against us.
 *
 *   bench-slow --mode kernel|copy|wait|launch --pairs N
 *
 * Prints one JSON object: the slow-down in percent (median and its 95 % interval), the same
 * of off/off, CPU nanoseconds a launch, and the p99 of launch to complete.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <CL/cl_icd.h>
#include <dlfcn.h>
#include <getopt.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/macros.h"
#include "stats.h"

#define BLOCK_NS      (50 * NS_PER_MS)
#define COPY_BYTES    (8u << 20)
#define MAX_PAIRS     2000
#define MAX_LATENCIES (1 << 20)

struct program {
    cl_command_queue queue;
    cl_kernel kernel;
    cl_mem from, to;
    size_t global;
    cl_uint iters;
    const char *mode;
    bool copies;
};

/* The three functions that are measured, through the front or past it. */
static struct calls {
    __typeof__(&clEnqueueNDRangeKernel) launch;
    __typeof__(&clEnqueueCopyBuffer) copy;
    __typeof__(&clFinish) finish;
} through = { clEnqueueNDRangeKernel, clEnqueueCopyBuffer, clFinish }, past;

struct block {
    double rate;   /* operations a second */
    double cpu_ns; /* CPU time of this thread per operation */
};

static double *latency[2];
static size_t latencies[2];

static void check(cl_int code, const char *what)
{
    if (code != CL_SUCCESS) {
        fprintf(stderr, "bench-slow: %s: OpenCL error %d\n", what, code);
        exit(1);
    }
}

static void open_program(struct program *p)
{
    static const char *source = "kernel void spin(global uint *out, uint iters) {\n"
                                "    uint x = get_global_id(0);\n"
                                "    for (uint i = 0; i < iters; i++) x = (x ^ (x >> 7)) * "
                                "1664525u + 1013904223u;\n"
                                "    out[get_global_id(0)] = x;\n"
                                "}\n";
    cl_platform_id platform;
    cl_device_id device;
    cl_int code;
    check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    check(code, "clCreateContext");
    p->queue = clCreateCommandQueue(context, device, 0, &code);
    check(code, "clCreateCommandQueue");
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &code);
    check(code, "clCreateProgramWithSource");
    check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
    p->kernel = clCreateKernel(program, "spin", &code);
    check(code, "clCreateKernel");
    p->from = clCreateBuffer(context, CL_MEM_READ_WRITE, COPY_BYTES, NULL, &code);
    p->to = clCreateBuffer(context, CL_MEM_READ_WRITE, COPY_BYTES, NULL, &code);
    check(code, "clCreateBuffer");
    p->copies = !strcmp(p->mode, "copy");
    bool small = !strcmp(p->mode, "launch");
    p->global = small ? 1 : 64;
    p->iters = small ? 1 : !strcmp(p->mode, "kernel") ? 2000 : 200;
    check(clSetKernelArg(p->kernel, 0, sizeof p->to, &p->to), "clSetKernelArg");
    check(clSetKernelArg(p->kernel, 1, sizeof p->iters, &p->iters), "clSetKernelArg");
}

static void submit(struct program *p, const struct calls *calls)
{
    size_t local = 1;
    if (p->copies)
        check(calls->copy(p->queue, p->from, p->to, 0, 0, COPY_BYTES, 0, NULL, NULL),
              "clEnqueueCopyBuffer");
    else
        check(
            calls->launch(p->queue, p->kernel, 1, NULL, &p->global, &local, 0, NULL, NULL),
            "clEnqueueNDRangeKernel");
}

static double thread_cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static struct block run_block(struct program *p, bool on)
{
    bool wait = !strcmp(p->mode, "wait");
    int burst = wait ? 1 : !strcmp(p->mode, "launch") ? 256 : 16;
    const struct calls *calls = on ? &through : &past;
    uint64_t begin = clock_now_ns(), now = begin, done = 0;
    double cpu = thread_cpu_ns();
    while (now - begin < BLOCK_NS) {
        for (int i = 0; i < burst; i++)
            submit(p, calls);
        calls->finish(p->queue);
        done += (uint64_t)burst;
        uint64_t then = now;
        now = clock_now_ns();
        if (wait && latencies[on] < MAX_LATENCIES)
            latency[on][latencies[on]++] = (double)(now - then) / 1e3;
    }
    return (struct block){ (double)done * 1e9 / (double)(now - begin),
                           (thread_cpu_ns() - cpu) / (double)done };
}

static json_t *number(double value)
{
    return isnan(value) ? json_null() : json_real(value);
}

static void print_pairs(json_t *out, const char *key, double *value, size_t n)
{
    double low, high;
    stats_median_interval(value, n, &low, &high);
    double median = stats_median(value, n);
    json_object_set_new(out, key,
                        json_pack("{s:o, s:o, s:o, s:I}", "median", number(median), "low",
                                  number(low), "high", number(high), "n", (json_int_t)n));
}

/* The loader opens layers locally: look the library up by the path it was mapped from. */
static bool find_past(void)
{
    const cl_icd_dispatch *(*next)(void) = NULL;
    char line[512], *path;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (!next && maps && fgets(line, sizeof line, maps)) {
        line[strcspn(line, "\n")] = 0;
        if (!strstr(line, "/libsluice-opencl.so") || !(path = strchr(line, '/')))
            continue;
        void *front = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
        if (front)
            *(void **)&next = dlsym(front, "sluice_bench_next");
    }
    if (maps)
        fclose(maps);
    if (!next)
        return false;
    past = (struct calls){ next()->clEnqueueNDRangeKernel, next()->clEnqueueCopyBuffer,
                           next()->clFinish };
    return true;
}

int main(int argc, char **argv)
{
    struct program p = { .mode = "kernel" };
    int pairs = 200;
    static const struct option options[] = { { "mode", 1, NULL, 'm' },
                                             { "pairs", 1, NULL, 'p' },
                                             { 0 } };
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (o == 'm')
            p.mode = optarg;
        else if (o == 'p')
            pairs = atoi(optarg);
        else
            return 2;
    }
    if (pairs > MAX_PAIRS)
        pairs = MAX_PAIRS;
    for (int i = 0; i < 2; i++)
        latency[i] = malloc(MAX_LATENCIES * sizeof(double));
    open_program(&p);
    if (!find_past()) {
        fprintf(stderr, "bench-slow: the bench build of the front is not in place\n");
        return 1;
    }
    for (int i = 0; i < 10; i++)
        run_block(&p, i % 2); /* warm up both ways */
    latencies[0] = latencies[1] = 0;

    static double slow[MAX_PAIRS], noise[MAX_PAIRS], cpu_on[MAX_PAIRS], cpu_off[MAX_PAIRS],
        cpu_more[MAX_PAIRS];
    unsigned random = 12345;
    for (int i = 0; i < pairs; i++) {
        bool on_first = rand_r(&random) & 1;
        struct block first = run_block(&p, on_first), second = run_block(&p, !on_first);
        struct block on = on_first ? first : second, off = on_first ? second : first;
        slow[i] = (off.rate / on.rate - 1) * 100;
        cpu_on[i] = on.cpu_ns;
        cpu_off[i] = off.cpu_ns;
        cpu_more[i] = on.cpu_ns - off.cpu_ns;
        struct block a = run_block(&p, false), b = run_block(&p, false);
        noise[i] = (a.rate / b.rate - 1) * 100;
    }
    json_t *out = json_pack("{s:s}", "mode", p.mode);
    print_pairs(out, "slowdown_pct", slow, (size_t)pairs);
    print_pairs(out, "off_off_pct", noise, (size_t)pairs);
    print_pairs(out, "cpu_ns_on", cpu_on, (size_t)pairs);
    print_pairs(out, "cpu_ns_off", cpu_off, (size_t)pairs);
    print_pairs(out, "cpu_ns_more", cpu_more, (size_t)pairs);
    json_object_set_new(out, "p99_us_on",
                        number(stats_quantile(latency[1], latencies[1], 0.99)));
    json_object_set_new(out, "p99_us_off",
                        number(stats_quantile(latency[0], latencies[0], 0.99)));
    json_dumpf(out, stdout, JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(out);
    return 0;
}
