/*
 * e2e-program: an OpenCL program for the live tests that does, on purpose, one
 * thing that breaks slices elsewhere.  It knows nothing of Sluice.
 *
 *   hold BYTES           takes them, says "holding", sleeps
 *   exec BYTES           takes them, execs `sleep 60` at the next line of stdin
 *   close BYTES          takes them, closes every descriptor from 3 up, takes as
 *                        much again, then one byte; says the two codes; sleeps
 *   sizes                asks for 0 bytes, all ones, one over the limit, the
 *                        limit, one more; says the codes
 *   forever              one kernel that never ends
 *   run ROUNDS           kernels of so many rounds until it is killed
 *   count SECONDS        one short kernel and a wait, in a loop; says how many
 *   user-events SECONDS  enqueues behind an event of its own, sets it, waits
 *   callbacks SECONDS    each kernel is enqueued by the callback of the last
 *   fork BYTES           forks before the first call; both take half, run a
 *                        kernel; says "both"
 *   race TIMES           two children race for the last byte; says who won
 *   free-twice BYTES     releases one buffer twice, then takes the bytes again
 *   soak SECONDS SEED    takes and frees at random up to the limit, then takes
 *                        it all; with a third word it is not alone, and does
 *                        not judge the refusals
 *   open LIBRARY         opens the driver's library itself; sleeps
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ITEMS 256

static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static cl_kernel spin;
static cl_mem out;

static void check(cl_int code, const char *what)
{
    if (code == CL_SUCCESS)
        return;
    fprintf(stderr, "e2e-program: %s: OpenCL error %d\n", what, code);
    _exit(1);
}

static void say(const char *text)
{
    puts(text);
    fflush(stdout);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void open_device(void)
{
    cl_platform_id platform;
    cl_int code;
    check(clGetPlatformIDs(1, &platform, NULL), "no platform");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "no device");
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    check(code, "clCreateContext");
    queue = clCreateCommandQueue(context, device, 0, &code);
    check(code, "clCreateCommandQueue");
}

/* `go_on` is read each round, so the compiler cannot leave the loop out. */
static void build(void)
{
    static const char *source =
        "kernel void spin(volatile global uint *go_on, uint rounds) {\n"
        "    for (uint i = 0; i < rounds || go_on[1]; i++)\n"
        "        go_on[2 + get_global_id(0)] = i;\n"
        "}\n";
    const cl_uint start[2] = { 0, 0 };
    cl_int code;
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &code);
    check(code, "clCreateProgramWithSource");
    check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
    spin = clCreateKernel(program, "spin", &code);
    check(code, "clCreateKernel");
    out = clCreateBuffer(context, CL_MEM_READ_WRITE, (ITEMS + 2) * sizeof(cl_uint), NULL,
                         &code);
    check(code, "clCreateBuffer");
    check(clEnqueueWriteBuffer(queue, out, CL_TRUE, 0, sizeof start, start, 0, NULL, NULL),
          "clEnqueueWriteBuffer");
}

static cl_int launch(cl_uint rounds, cl_uint waits, const cl_event *wait, cl_event *event)
{
    const size_t items = ITEMS, group = 64;
    clSetKernelArg(spin, 0, sizeof out, &out);
    clSetKernelArg(spin, 1, sizeof rounds, &rounds);
    return clEnqueueNDRangeKernel(queue, spin, 1, NULL, &items, &group, waits, wait, event);
}

static cl_mem take(uint64_t bytes, cl_int *code)
{
    return clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, code);
}

static uint64_t limit(void)
{
    cl_ulong bytes = 0;
    check(clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof bytes, &bytes, NULL),
          "clGetDeviceInfo");
    return bytes;
}

static void hold(uint64_t bytes)
{
    cl_int code;
    open_device();
    take(bytes, &code);
    check(code, "clCreateBuffer");
}

static void do_hold(uint64_t bytes)
{
    hold(bytes);
    say("holding");
    pause();
}

static void do_exec(uint64_t bytes)
{
    char line[8];
    hold(bytes);
    say("holding");
    if (fgets(line, sizeof line, stdin))
        execlp("sleep", "sleep", "60", (char *)NULL);
    _exit(1);
}

static void do_close(uint64_t bytes)
{
    cl_int code;
    hold(bytes);
    close_range(3, ~0u, 0);
    take(bytes, &code);
    cl_int again = code;
    take(1, &code);
    printf("again %d, one more %d\n", again, code);
    fflush(stdout);
    pause();
}

static void do_sizes(void)
{
    open_device();
    const uint64_t size[] = { 0, UINT64_MAX, limit() + 1, limit(), 1 };
    for (int i = 0; i < 5; i++) {
        cl_int code;
        take(size[i], &code);
        printf("%d ", code);
    }
    puts("");
}

static void do_forever(void)
{
    const cl_uint go_on[2] = { 0, 1 };
    open_device();
    build();
    check(clEnqueueWriteBuffer(queue, out, CL_TRUE, 0, sizeof go_on, go_on, 0, NULL, NULL),
          "clEnqueueWriteBuffer");
    check(launch(1, 0, NULL, NULL), "a kernel");
    clFlush(queue);
    say("launched");
    clFinish(queue);
}

static void do_count(double seconds)
{
    uint64_t done = 0;
    open_device();
    build();
    for (double end = now() + seconds; now() < end; done++) {
        check(launch(10000, 0, NULL, NULL), "a kernel");
        clFinish(queue);
    }
    printf("kernels %llu\n", (unsigned long long)done);
}

static void do_user_events(double seconds)
{
    uint64_t done = 0;
    cl_int code;
    open_device();
    build();
    for (double end = now() + seconds; now() < end; done++) {
        cl_event gate = clCreateUserEvent(context, &code);
        check(code, "clCreateUserEvent");
        check(launch(10000, 1, &gate, NULL), "a kernel behind the event");
        check(launch(10000, 0, NULL, NULL), "a kernel behind that one");
        check(clSetUserEventStatus(gate, CL_COMPLETE), "clSetUserEventStatus");
        clFinish(queue);
        clReleaseEvent(gate);
    }
    printf("kernels %llu\n", (unsigned long long)done);
}

static _Atomic uint64_t chained;
static double chain_end;

static void CL_CALLBACK next_link(cl_event event, cl_int status, void *unused)
{
    cl_event next;
    clReleaseEvent(event);
    atomic_fetch_add(&chained, 1);
    if (now() > chain_end) {
        chain_end = 0;
        return;
    }
    check(launch(10000, 0, NULL, &next), "a kernel inside a callback");
    check(clSetEventCallback(next, CL_COMPLETE, next_link, NULL), "clSetEventCallback");
    clFlush(queue);
}

static void do_callbacks(double seconds)
{
    cl_event first;
    open_device();
    build();
    chain_end = now() + seconds;
    check(launch(10000, 0, NULL, &first), "a kernel");
    check(clSetEventCallback(first, CL_COMPLETE, next_link, NULL), "clSetEventCallback");
    clFlush(queue);
    for (double give_up = now() + seconds + 20; chain_end > 0 && now() < give_up;)
        usleep(1000);
    printf("kernels %llu%s\n", (unsigned long long)chained, chain_end > 0 ? " stuck" : "");
}

static int use_half(uint64_t bytes)
{
    cl_int code;
    open_device();
    build();
    take(bytes / 2, &code);
    check(code, "half");
    check(launch(1000, 0, NULL, NULL), "a kernel");
    check(clFinish(queue), "clFinish");
    return 0;
}

/* The child keeps its half until the parent has its own, or has failed. */
static void do_fork(uint64_t bytes)
{
    int status, hold[2];
    char end;
    if (pipe(hold))
        _exit(1);
    pid_t child = fork();
    if (child == 0) {
        close(hold[1]);
        status = use_half(bytes);
        _exit(read(hold[0], &end, 1) == 0 ? status : 1);
    }
    close(hold[0]);
    use_half(bytes);
    close(hold[1]);
    if (waitpid(child, &status, 0) != child || status)
        _exit(1);
    say("both");
}

/* What two racing processes share. */
struct track {
    _Atomic int arrived[3], won;
    _Atomic int failed;
};

/* Wait for the other at one of three points of a round. */
static void meet(struct track *t, int point, int round)
{
    atomic_fetch_add(&t->arrived[point], 1);
    while (atomic_load(&t->arrived[point]) < 2 * (round + 1) && !t->failed)
        sched_yield();
}

static int racer(struct track *t, int times, unsigned *score)
{
    cl_int code;
    open_device();
    for (int i = 0; i < times && !t->failed; i++) {
        meet(t, 0, i);
        cl_mem mine = take(1, &code);
        if (mine)
            atomic_fetch_add(&t->won, 1);
        meet(t, 1, i);
        if (score)
            score[atomic_load(&t->won)]++;
        meet(t, 2, i);
        if (mine) {
            clReleaseMemObject(mine);
            atomic_fetch_sub(&t->won, 1);
        }
    }
    return 0;
}

/* The parent forks before its first call, then takes all but one byte. */
static void do_race(int times)
{
    struct track *t =
        mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned *score =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int start[2];
    char go;
    if (t == MAP_FAILED || score == MAP_FAILED || pipe(start))
        _exit(1);
    for (int i = 0; i < 2; i++) {
        if (fork() == 0) {
            close(start[1]);
            if (read(start[0], &go, 1) >= 0)
                racer(t, times, i ? NULL : score);
            _exit(0);
        }
    }
    cl_int code;
    open_device();
    take(limit() - 1, &code);
    check(code, "all but one byte");
    close(start[1]);
    for (int i = 0, status; i < 2; i++)
        if (wait(&status) < 0 || status)
            t->failed = 1;
    printf("won %u both %u neither %u%s\n", score[1], score[2], score[0],
           t->failed ? " failed" : "");
}

static void do_free_twice(uint64_t bytes)
{
    cl_int code;
    open_device();
    cl_mem mem = take(bytes, &code);
    check(code, "clCreateBuffer");
    clReleaseMemObject(mem);
    clReleaseMemObject(mem); /* undefined; the driver may well end us here */
    take(bytes, &code);
    check(code, "again");
    take(bytes, &code);
    printf("taken, then %d\n", code);
}

#define HELD 64

static void do_soak(double seconds, unsigned seed, bool alone)
{
    cl_mem held[HELD] = { NULL };
    uint64_t refused = 0, taken = 0, size[HELD] = { 0 }, sum = 0, all;
    open_device();
    all = limit();
    for (double end = now() + seconds; now() < end;) {
        unsigned at = (unsigned)rand_r(&seed) % HELD;
        cl_int code;
        if (held[at]) {
            clReleaseMemObject(held[at]);
            sum -= size[at];
            held[at] = NULL;
            continue;
        }
        size[at] = 1 + (uint64_t)rand_r(&seed) % (all / 8);
        held[at] = take(size[at], &code);
        if (alone && (code == CL_SUCCESS) != (sum + size[at] <= all)) {
            printf("wrong: %d with %llu of %llu held and %llu asked\n", code,
                   (unsigned long long)sum, (unsigned long long)all,
                   (unsigned long long)size[at]);
            _exit(1);
        }
        sum += held[at] ? size[at] : 0;
        refused += code != CL_SUCCESS;
        taken += code == CL_SUCCESS;
    }
    printf("refused %llu taken %llu\n", (unsigned long long)refused,
           (unsigned long long)taken);
    for (int i = 0; i < HELD; i++)
        if (held[i])
            clReleaseMemObject(held[i]);
    take(all, &(cl_int){ 0 });
    say("all of it again");
    pause();
}

static void do_run(cl_uint rounds)
{
    open_device();
    build();
    say("running");
    for (;;) {
        check(launch(rounds, 0, NULL, NULL), "a kernel");
        clFinish(queue);
    }
}

static void do_open(const char *library)
{
    if (!dlopen(library, RTLD_NOW)) {
        fprintf(stderr, "e2e-program: %s\n", dlerror());
        _exit(1);
    }
    say("opened");
    pause();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "", *value = argc > 2 ? argv[2] : "0";
    const uint64_t bytes = strtoull(value, NULL, 10);
    const double seconds = atof(value);

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!strcmp(what, "hold"))
        do_hold(bytes);
    else if (!strcmp(what, "exec"))
        do_exec(bytes);
    else if (!strcmp(what, "close"))
        do_close(bytes);
    else if (!strcmp(what, "sizes"))
        do_sizes();
    else if (!strcmp(what, "forever"))
        do_forever();
    else if (!strcmp(what, "count"))
        do_count(seconds);
    else if (!strcmp(what, "user-events"))
        do_user_events(seconds);
    else if (!strcmp(what, "callbacks"))
        do_callbacks(seconds);
    else if (!strcmp(what, "fork"))
        do_fork(bytes);
    else if (!strcmp(what, "race"))
        do_race((int)bytes);
    else if (!strcmp(what, "free-twice"))
        do_free_twice(bytes);
    else if (!strcmp(what, "soak"))
        do_soak(seconds, argc > 3 ? (unsigned)atoi(argv[3]) : 1, argc < 5);
    else if (!strcmp(what, "run"))
        do_run((cl_uint)bytes);
    else if (!strcmp(what, "open"))
        do_open(value);
    else
        return fputs("usage: see the head of tests/e2e/program.c\n", stderr), 2;
    fflush(stdout);
    _exit(0); /* whatever is left goes with the process */
}
