/*
 * bench-load: an OpenCL program of a chosen shape, which counts the kernels it
 * completes.  Real kernels on a real device; it knows nothing of Sluice.
 *
 *   --mode async        launches ahead, waits for the launch before the last --depth (64)
 *          wait         launches one, waits for it, does --gap-us of nothing
 *          gap          launches 8, waits, pauses --gap-us (host work)
 *          queues       async on two queues in turn
 *          copy         4 MiB device-to-device copies, as async
 *   --kernel-us N       length of one kernel (calibrated), or --iters N as printed by --calibrate
 *   --seconds S         how long; --start-ns T waits for that CLOCK_MONOTONIC time first
 *   --host-cpu N        keep the host thread on that processor
 *   --mem BYTES         also hold a buffer of that size
 *   --latencies         wait mode: print "lat <us>" for each launch to complete
 *
 * Prints one line per 100 ms on stdout: "<monotonic ns> <kernels so far>", and a last
 * line "end <ns> <kernels> <longest launch-to-complete us>".
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <getopt.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/macros.h"

#define MAX_DEPTH  64
#define COPY_BYTES (4u << 20)

struct load {
    cl_device_id device;
    cl_context context;
    cl_command_queue queue[2];
    cl_kernel kernel;
    cl_mem out, from, held;
    cl_uint iters;
    size_t groups;
    uint64_t gap_ns;
    uint64_t done; /* kernels known complete */
    uint64_t next_line_ns, longest_ns;
    bool latencies;
    unsigned depth;
};

static void check(cl_int code, const char *what)
{
    if (code == CL_SUCCESS)
        return;
    fprintf(stderr, "bench-load: %s: OpenCL error %d\n", what, code);
    exit(1);
}

static void open_device(struct load *l)
{
    /* clang-format off */
    static const char *source =
        "kernel void spin(global uint *out, uint iters) {\n"
        "    uint x = get_global_id(0);\n"
        "    for (uint i = 0; i < iters; i++) x = (x ^ (x >> 7)) * 1664525u + 1013904223u;\n"
        "    out[get_global_id(0)] = x;\n"
        "}\n";
    /* clang-format on */
    cl_platform_id platform;
    cl_uint units = 1;
    cl_int code;
    check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &l->device, NULL),
          "clGetDeviceIDs");
    clGetDeviceInfo(l->device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL);
    l->groups = units * 4;
    l->context = clCreateContext(NULL, 1, &l->device, NULL, NULL, &code);
    check(code, "clCreateContext");
    for (int i = 0; i < 2; i++) {
        l->queue[i] = clCreateCommandQueue(l->context, l->device, 0, &code);
        check(code, "clCreateCommandQueue");
    }
    cl_program program = clCreateProgramWithSource(l->context, 1, &source, NULL, &code);
    check(code, "clCreateProgramWithSource");
    check(clBuildProgram(program, 1, &l->device, "", NULL, NULL), "clBuildProgram");
    l->kernel = clCreateKernel(program, "spin", &code);
    check(code, "clCreateKernel");
    l->out = clCreateBuffer(l->context, CL_MEM_READ_WRITE, COPY_BYTES, NULL, &code);
    check(code, "clCreateBuffer");
    l->from = clCreateBuffer(l->context, CL_MEM_READ_WRITE, COPY_BYTES, NULL, &code);
    check(code, "clCreateBuffer");
}

static void launch(struct load *l, int queue, cl_event *event)
{
    size_t size = l->groups * 16, local = 16;
    check(clSetKernelArg(l->kernel, 0, sizeof l->out, &l->out), "clSetKernelArg");
    check(clSetKernelArg(l->kernel, 1, sizeof l->iters, &l->iters), "clSetKernelArg");
    check(clEnqueueNDRangeKernel(l->queue[queue], l->kernel, 1, NULL, &size, &local, 0,
                                 NULL, event),
          "clEnqueueNDRangeKernel");
}

static void copy(struct load *l, int queue, cl_event *event)
{
    check(clEnqueueCopyBuffer(l->queue[queue], l->from, l->out, 0, 0, COPY_BYTES, 0, NULL,
                              event),
          "clEnqueueCopyBuffer");
}

/* Iterations for kernels of `us`, by doubling until one takes 2 ms; median of 9. */
static cl_uint calibrate(struct load *l, double us)
{
    double per_iter = 0;
    for (l->iters = 64; l->iters < 1u << 30; l->iters *= 2) {
        double seen[9];
        for (int i = -2; i < 9; i++) {
            uint64_t begin = clock_now_ns();
            launch(l, 0, NULL);
            clFinish(l->queue[0]);
            if (i >= 0)
                seen[i] = (double)(clock_now_ns() - begin);
        }
        for (int i = 1; i < 9; i++)
            for (int k = i; k > 0 && seen[k] < seen[k - 1]; k--) {
                double swap = seen[k];
                seen[k] = seen[k - 1];
                seen[k - 1] = swap;
            }
        per_iter = seen[4] / l->iters;
        if (seen[4] > 2e6)
            break;
    }
    double iters = us * 1e3 / per_iter;
    return iters < 1 ? 1 : (cl_uint)iters;
}

static void tell(struct load *l, uint64_t now_ns)
{
    while (now_ns >= l->next_line_ns) {
        printf("%llu %llu\n", (unsigned long long)l->next_line_ns,
               (unsigned long long)l->done);
        fflush(stdout);
        l->next_line_ns += 100 * NS_PER_MS;
    }
}

static void pause_ns(uint64_t ns)
{
    if (ns)
        nanosleep(&(struct timespec){ (time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S) },
                  NULL);
}

/* Launch ahead, at most `depth` outstanding; counted when their wait returns. */
static void run_async(struct load *l, uint64_t end_ns, int queues,
                      void (*submit)(struct load *, int, cl_event *))
{
    cl_event ring[MAX_DEPTH] = { 0 };
    uint64_t sent = 0;
    for (uint64_t now = clock_now_ns(); now < end_ns; now = clock_now_ns()) {
        cl_event *slot = &ring[sent % l->depth];
        if (*slot) {
            check(clWaitForEvents(1, slot), "clWaitForEvents");
            clReleaseEvent(*slot);
            l->done++;
        }
        submit(l, (int)(sent % (uint64_t)queues), slot);
        sent++;
        tell(l, now);
    }
    for (int i = 0; i < queues; i++)
        clFinish(l->queue[i]);
    for (int i = 0; i < MAX_DEPTH; i++)
        if (ring[i]) {
            clReleaseEvent(ring[i]);
            l->done++;
        }
}

static void run_wait(struct load *l, uint64_t end_ns, int burst)
{
    for (uint64_t now = clock_now_ns(); now < end_ns; now = clock_now_ns()) {
        for (int i = 0; i < burst; i++)
            launch(l, 0, NULL);
        clFinish(l->queue[0]);
        uint64_t took = clock_now_ns() - now;
        l->longest_ns = max_u64(l->longest_ns, took);
        if (l->latencies)
            printf("lat %.1f\n", (double)took / 1e3);
        l->done += (uint64_t)burst;
        tell(l, now);
        pause_ns(l->gap_ns);
    }
}

static void run(struct load *l, const char *mode, uint64_t end_ns)
{
    if (!strcmp(mode, "async"))
        run_async(l, end_ns, 1, launch);
    else if (!strcmp(mode, "queues"))
        run_async(l, end_ns, 2, launch);
    else if (!strcmp(mode, "copy"))
        run_async(l, end_ns, 1, copy);
    else if (!strcmp(mode, "wait"))
        run_wait(l, end_ns, 1);
    else if (!strcmp(mode, "gap"))
        run_wait(l, end_ns, 8);
    else {
        fprintf(stderr, "bench-load: no mode '%s'\n", mode);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    struct load l = { .depth = MAX_DEPTH };
    const char *mode = "async";
    double us = 1000, seconds = 10;
    uint64_t start_ns = 0, mem = 0;
    bool only_calibrate = false;
    int host_cpu = -1;
    enum {
        MODE,
        KERNEL,
        ITERS,
        SECONDS,
        START,
        CPU,
        MEM,
        GAP,
        CALIBRATE,
        LATENCIES,
        DEPTH
    };
    /* clang-format off */
    static const struct option options[] = {
        { "mode", 1, NULL, MODE },       { "kernel-us", 1, NULL, KERNEL },
        { "iters", 1, NULL, ITERS },     { "seconds", 1, NULL, SECONDS },
        { "start-ns", 1, NULL, START },  { "host-cpu", 1, NULL, CPU },
        { "mem", 1, NULL, MEM },         { "gap-us", 1, NULL, GAP },
        { "calibrate", 0, NULL, CALIBRATE }, { "latencies", 0, NULL, LATENCIES },
        { "depth", 1, NULL, DEPTH },
        { 0 },
    };
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (o) {
        case MODE: mode = optarg; break;
        case KERNEL: us = atof(optarg); break;
        case ITERS: l.iters = (cl_uint)strtoul(optarg, NULL, 10); break;
        case SECONDS: seconds = atof(optarg); break;
        case START: start_ns = strtoull(optarg, NULL, 10); break;
        case CPU: host_cpu = atoi(optarg); break;
        case MEM: mem = strtoull(optarg, NULL, 10); break;
        case GAP: l.gap_ns = strtoull(optarg, NULL, 10) * NS_PER_US; break;
        case CALIBRATE: only_calibrate = true; break;
        case LATENCIES: l.latencies = true; break;
        case DEPTH: l.depth = (unsigned)min_u64(max_u64(1, strtoul(optarg, NULL, 10)), MAX_DEPTH); break;
        default: return 2;
        }
    /* clang-format on */

    open_device(&l);
    if (host_cpu >= 0) { /* after the driver has made its own threads */
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(host_cpu, &set);
        sched_setaffinity(0, sizeof set, &set);
    }
    cl_int code;
    if (mem) {
        l.held = clCreateBuffer(l.context, CL_MEM_READ_WRITE, mem, NULL, &code);
        check(code, "clCreateBuffer --mem");
    }
    if (!l.iters)
        l.iters = calibrate(&l, us);
    if (only_calibrate) {
        printf("%u\n", l.iters);
        return 0;
    }
    launch(&l, 0, NULL); /* compile before the clock starts */
    clFinish(l.queue[0]);
    if (start_ns > clock_now_ns())
        pause_ns(start_ns - clock_now_ns());

    l.next_line_ns = clock_now_ns() + 100 * NS_PER_MS;
    run(&l, mode, clock_now_ns() + (uint64_t)(seconds * 1e9));
    printf("end %llu %llu %.1f\n", (unsigned long long)clock_now_ns(),
           (unsigned long long)l.done, (double)l.longest_ns / 1e3);
    return 0;
}
