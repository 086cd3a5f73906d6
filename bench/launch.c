/*
 * What one launch pays inside the OpenCL front, in instructions: counted by single steps
 * through the real layer, over a driver of our own that does nothing and a fake broker.
 *
 *   bench-launch LAYER [LAUNCHES]
 *
 * Counts do not depend on what else the machine does, so this is also a test: above
 * LIMIT instructions for a launch inside an open batch the exit status is 1.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker.h"
#include "core/clock.h"
#include "opencl/headers.h"

#define SLOTS    (sizeof(cl_icd_dispatch) / sizeof(void *))
#define LAUNCHES 1000
/* 34 ns (2 % of PoCL's 1.7 us) at four instructions a nanosecond; 126 when this was written.
 * The launch has two dimensions and a local size. */
#define LIMIT 140

/* ---- a driver that does nothing --------------------------------------------------- */

static struct fake_broker broker;
static struct {
    void *table;
} platform, device, queue, kernel, event;
/* Off while we count: a command would seem to take as long as our single steps, and be
 * sensed each time. */
static bool completes = true;

static cl_int no_platforms(cl_uint room, cl_platform_id *out, cl_uint *n)
{
    if (room)
        out[0] = (cl_platform_id)&platform;
    if (n)
        *n = 1;
    return CL_SUCCESS;
}

static cl_int no_devices(cl_platform_id p, cl_device_type type, cl_uint room,
                         cl_device_id *out, cl_uint *n)
{
    if (room)
        out[0] = (cl_device_id)&device;
    if (n)
        *n = 1;
    return CL_SUCCESS;
}

static cl_int no_platform_info(cl_platform_id p, cl_platform_info what, size_t room,
                               void *out, size_t *size)
{
    snprintf(out, room, "%s", broker.platform);
    return CL_SUCCESS;
}

static cl_int no_device_info(cl_device_id d, cl_device_info what, size_t room, void *out,
                             size_t *size)
{
    if (what == CL_DEVICE_NAME || what == CL_DRIVER_VERSION)
        snprintf(out, room, "%s", what == CL_DEVICE_NAME ? broker.name : broker.driver);
    else
        memset(out, 0, room);
    return CL_SUCCESS;
}

static cl_int no_queue_info(cl_command_queue q, cl_command_queue_info what, size_t room,
                            void *out, size_t *size)
{
    memset(out, 0, room);
    if (what == CL_QUEUE_DEVICE)
        *(cl_device_id *)out = (cl_device_id)&device;
    return CL_SUCCESS;
}

static cl_int no_launch(cl_command_queue q, cl_kernel k, cl_uint dims, const size_t *offset,
                        const size_t *global, const size_t *local, cl_uint n,
                        const cl_event *list, cl_event *out)
{
    if (out)
        *out = (cl_event)&event;
    return CL_SUCCESS;
}

/* Complete at once, or never. */
static cl_int no_callback(cl_event e, cl_int type, void (*fn)(cl_event, cl_int, void *),
                          void *data)
{
    if (completes)
        fn(e, CL_COMPLETE, data);
    return CL_SUCCESS;
}

static cl_int no_marker(cl_command_queue q, cl_uint n, const cl_event *list, cl_event *out)
{
    *out = (cl_event)&event;
    return CL_SUCCESS;
}

static cl_int nothing(void)
{
    return CL_SUCCESS;
}

static const cl_icd_dispatch *open_layer(const char *path, cl_icd_dispatch *driver)
{
    for (size_t i = 0; i < SLOTS; i++)
        ((void **)driver)[i] = (void *)nothing;
    driver->clGetPlatformIDs = no_platforms;
    driver->clGetDeviceIDs = no_devices;
    driver->clGetPlatformInfo = no_platform_info;
    driver->clGetDeviceInfo = no_device_info;
    driver->clGetCommandQueueInfo = no_queue_info;
    driver->clEnqueueNDRangeKernel = no_launch;
    driver->clSetEventCallback = no_callback;
    driver->clEnqueueMarkerWithWaitList = no_marker;

    cl_uint n = 0;
    const cl_icd_dispatch *ours = NULL;
    void *layer = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    pfn_clInitLayer init = layer ? (pfn_clInitLayer)dlsym(layer, "clInitLayer") : NULL;
    if (!init || init(SLOTS, driver, &n, &ours) != CL_SUCCESS) {
        fprintf(stderr, "%s\n", layer ? "no clInitLayer" : dlerror());
        _exit(3);
    }
    return ours;
}

/* ---- the launching process -------------------------------------------------------- */

static void launch(const cl_icd_dispatch *cl, int n)
{
    size_t global[2] = { 1024, 16 }, local[2] = { 16, 16 };
    for (int i = 0; i < n; i++)
        cl->clEnqueueNDRangeKernel((cl_command_queue)&queue, (cl_kernel)&kernel, 2, NULL,
                                   global, local, 0, NULL, NULL);
}

static uint64_t kernels_seen(void)
{
    return atomic_load(&fake_slot(&broker, 0)->kernels);
}

static void launching(const char *layer, int n)
{
    static cl_icd_dispatch driver;
    broker.limit_bytes = 1 << 20;
    broker.auto_grant = 1;
    broker.request_permille = broker.limit_permille = 1000;
    strcpy(broker.platform, "nothing");
    strcpy(broker.name, "nothing");
    strcpy(broker.driver, "0");
    fake_start(&broker);
    setenv("SLUICE_BROKER", broker.path, 1);
    const cl_icd_dispatch *cl = open_layer(layer, &driver);
    bool direct = cl->clSetKernelArg == driver.clSetKernelArg &&
                  cl->clGetEventInfo == driver.clGetEventInfo &&
                  cl->clFlush == driver.clFlush;
    printf("clSetKernelArg, clGetEventInfo, clFlush: %s\n",
           direct ? "the driver's own functions" : "WRAPPED");
    uint64_t start = clock_now_ns();
    launch(cl, 1000000);
    printf("%.1f ns a launch (1,000,000, one thread)\n",
           (double)(clock_now_ns() - start) / 1e6);
    completes = false;
    fflush(stdout);
    raise(SIGSTOP);
    launch(cl, n);
    raise(SIGSTOP);

    bool gated = kernels_seen() > 0;
    if (!gated)
        printf("NO launch passed the gate\n");
    fake_end(&broker);
    fflush(stdout);
    _exit(direct && gated ? 0 : 1);
}

/* ---- counting --------------------------------------------------------------------- */

struct range {
    unsigned long from, to;
};

/* The code of the layer in the child. */
static struct range layer_code(pid_t pid, const char *layer)
{
    struct range r = { 0, 0 }, one;
    char path[64], line[512], rights[8];
    const char *name = strrchr(layer, '/') ? strrchr(layer, '/') + 1 : layer;
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "re");
    while (maps && fgets(line, sizeof(line), maps))
        if (strstr(line, name) &&
            sscanf(line, "%lx-%lx %7s", &one.from, &one.to, rights) == 3 &&
            strchr(rights, 'x'))
            r = one;
    if (maps)
        fclose(maps);
    return r;
}

static unsigned long program_counter(pid_t pid)
{
#ifdef __x86_64__
    return (unsigned long)ptrace(PTRACE_PEEKUSER, pid,
                                 (void *)offsetof(struct user_regs_struct, rip), NULL);
#else
    return 0;
#endif
}

static bool stopped_for(pid_t pid, int want)
{
    int status;
    return waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) &&
           WSTOPSIG(status) == want;
}

/* Instructions of the layer's between one arrival at the driver and the next. */
static int count(pid_t pid, struct range code, uint32_t *per_launch, int n)
{
    int launches = 0;
    uint32_t steps = 0;
    bool first = true;
    while (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) == 0 && stopped_for(pid, SIGTRAP)) {
        unsigned long at = program_counter(pid);
        steps += at >= code.from && at < code.to;
        if (at != (unsigned long)no_launch)
            continue;
        if (!first && launches < n)
            per_launch[launches++] = steps;
        first = false;
        steps = 0;
    }
    return launches;
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int n = argc > 2 ? atoi(argv[2]) : LAUNCHES;
    if (argc < 2 || n < 10) {
        fprintf(stderr, "usage: bench-launch LAYER [LAUNCHES]\n");
        return 2;
    }
#ifndef __x86_64__
    return 77; /* the step counter knows one machine */
#endif
    uint32_t *per_launch = calloc((size_t)n, sizeof(*per_launch));
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(77);
        launching(argv[1], n);
    }
    if (!per_launch || pid < 0)
        return 3;
    if (!stopped_for(pid, SIGSTOP))
        return 77; /* may not be traced here */
    int got = count(pid, layer_code(pid, argv[1]), per_launch, n);
    ptrace(PTRACE_DETACH, pid, NULL, NULL);
    int status = 0;
    waitpid(pid, &status, 0);
    if (got < 10 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return 1;

    qsort(per_launch, (size_t)got, sizeof(*per_launch), by_size);
    double sum = 0;
    for (int i = 0; i < got; i++)
        sum += per_launch[i];
    uint32_t median = per_launch[got / 2];
    printf(
        "instructions of the front a launch: %u in an open batch, %u where a batch ends, "
        "%.1f on average over %d (limit %d)\n",
        median, per_launch[got - 1], sum / got, got, LIMIT);
    free(per_launch);
    return median <= LIMIT ? 0 : 1;
}
