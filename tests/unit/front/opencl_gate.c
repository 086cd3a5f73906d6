/* Rows: which commands wait for the turn, which are held, and what never waits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "opencl.h"

static const size_t one = 1;

static struct proto_slot *slot(void)
{
    return fake_slot(&broker, 0);
}

static uint32_t in_flight(void)
{
    return SLOT_FLIGHT(atomic_load(&slot()->state));
}

static cl_int launch(cl_command_queue q, cl_kernel k, cl_uint n, const cl_event *list,
                     cl_event *e)
{
    return clEnqueueNDRangeKernel(q, k, 1, NULL, &one, NULL, n, list, e);
}

static bool is_idle(void *unused)
{
    return in_flight() == 0;
}

static bool is_complete(void *event)
{
    cl_int status = 1;
    clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL);
    return status == CL_COMPLETE;
}

/* Give the turn away; the broker grants none until `auto_grant` is set again. */
static bool lose_turn(void)
{
    broker.auto_grant = 0;
    EXPECT(eventually(is_idle, NULL));
    fake_pass_over(&broker, 0);
    return true;
}

static bool launches_are_counted(void)
{
    struct fixture f;
    EXPECT(fixture_open(&f));
    uint64_t before = gated_commands();
    for (int i = 0; i < 20; i++)
        EXPECT(launch(f.queue, f.kernel, 0, NULL, NULL) == CL_SUCCESS);
    clFinish(f.queue);
    EXPECT(gated_commands() == before + 20);
    EXPECT(eventually(is_idle, NULL));
    EXPECT(atomic_load(&slot()->ungated) == 0);
    return true;
}

/* A thread that launches once. */
struct launcher {
    cl_command_queue queue;
    cl_kernel kernel;
    _Atomic int done;
};

static void *launcher_run(void *arg)
{
    struct launcher *l = arg;
    launch(l->queue, l->kernel, 0, NULL, NULL);
    l->done = 1;
    return NULL;
}

static bool launcher_done(void *arg)
{
    return ((struct launcher *)arg)->done;
}

static bool waits_for_the_turn(void)
{
    struct fixture f;
    pthread_t t;
    EXPECT(fixture_open(&f));
    EXPECT(lose_turn());
    int before = driver_calls("clEnqueueNDRangeKernel");
    struct launcher l = { f.queue, f.kernel, 0 };
    pthread_create(&t, NULL, launcher_run, &l);
    usleep(50000);
    EXPECT(!l.done && driver_calls("clEnqueueNDRangeKernel") == before);
    broker.auto_grant = 1;
    fake_grant(&broker, 0, SLOT_OPEN);
    EXPECT(eventually(launcher_done, &l));
    EXPECT(driver_calls("clEnqueueNDRangeKernel") == before + 1);
    pthread_join(t, NULL);
    return true;
}

static bool user_event_by_the_same_thread(void)
{
    struct fixture f;
    cl_int code;
    char bytes[8];
    EXPECT(fixture_open(&f));
    cl_event user = clCreateUserEvent(f.context, &code), done;
    EXPECT(launch(f.queue, f.kernel, 1, &user, &done) == CL_SUCCESS);
    EXPECT(launch(f.queue, f.kernel, 0, NULL, NULL) == CL_SUCCESS); /* in order behind it */
    EXPECT(clEnqueueReadBuffer(f.queue, f.a, CL_FALSE, 0, 8, bytes, 0, NULL, NULL) ==
           CL_SUCCESS);
    usleep(50000);
    EXPECT(in_flight() == 0); /* the device is free for others meanwhile */
    EXPECT(!is_complete(done));
    EXPECT(clSetUserEventStatus(user, CL_COMPLETE) == CL_SUCCESS);
    EXPECT(clFinish(f.queue) == CL_SUCCESS);
    EXPECT(is_complete(done));
    EXPECT(eventually(is_idle, NULL));
    return true;
}

static bool set_never_waits(void)
{
    struct fixture f;
    cl_int code;
    EXPECT(fixture_open(&f));
    cl_event user = clCreateUserEvent(f.context, &code), done;
    EXPECT(launch(f.queue, f.kernel, 1, &user, &done) == CL_SUCCESS);
    EXPECT(lose_turn());
    EXPECT(clSetUserEventStatus(user, CL_COMPLETE) == CL_SUCCESS);
    usleep(50000);
    EXPECT(!is_complete(done)); /* no turn yet */
    broker.auto_grant = 1;
    fake_grant(&broker, 0, SLOT_OPEN);
    EXPECT(eventually(is_complete, done));
    return true;
}

static bool failed_user_event(void)
{
    struct fixture f;
    cl_int code, status = 1;
    EXPECT(fixture_open(&f));
    cl_event user = clCreateUserEvent(f.context, &code), done;
    EXPECT(launch(f.queue, f.kernel, 1, &user, &done) == CL_SUCCESS);
    EXPECT(clSetUserEventStatus(user, -5) == CL_SUCCESS);
    clFinish(f.queue);
    clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL);
    EXPECT(status < 0);
    EXPECT(launch(f.queue, f.kernel, 0, NULL, NULL) == CL_SUCCESS);
    EXPECT(clFinish(f.queue) == CL_SUCCESS && eventually(is_idle, NULL));
    return true;
}

static bool unordered_goes_on(void)
{
    struct fixture f;
    cl_int code;
    EXPECT(fixture_open(&f));
    cl_event user = clCreateUserEvent(f.context, &code), held, free_one;
    EXPECT(launch(f.unordered, f.kernel, 1, &user, &held) == CL_SUCCESS);
    EXPECT(launch(f.unordered, f.kernel, 0, NULL, &free_one) == CL_SUCCESS);
    clFlush(f.unordered);
    EXPECT(eventually(is_complete, free_one));
    EXPECT(!is_complete(held));
    clSetUserEventStatus(user, CL_COMPLETE);
    EXPECT(clFinish(f.unordered) == CL_SUCCESS && is_complete(held));
    EXPECT(eventually(is_idle, NULL));
    return true;
}

static bool chain_over_two_queues(void)
{
    struct fixture f;
    cl_int code;
    EXPECT(fixture_open(&f));
    cl_command_queue other = clCreateCommandQueue(f.context, f.device[0], 0, &code);
    cl_event user = clCreateUserEvent(f.context, &code), first, second;
    EXPECT(launch(f.queue, f.kernel, 1, &user, &first) == CL_SUCCESS);
    EXPECT(launch(other, f.kernel, 1, &first, &second) == CL_SUCCESS);
    usleep(30000);
    EXPECT(in_flight() == 0);
    clSetUserEventStatus(user, CL_COMPLETE);
    EXPECT(eventually(is_complete, second));
    return true;
}

static void *set_later(void *user)
{
    usleep(50000);
    clSetUserEventStatus(user, CL_COMPLETE);
    return NULL;
}

static bool blocking_read_behind_a_user_event(void)
{
    struct fixture f;
    cl_int code;
    pthread_t t;
    EXPECT(fixture_open(&f));
    cl_event user = clCreateUserEvent(f.context, &code);
    EXPECT(launch(f.queue, f.kernel, 1, &user, NULL) == CL_SUCCESS);
    pthread_create(&t, NULL, set_later, user);
    char byte;
    EXPECT(clEnqueueReadBuffer(f.queue, f.a, CL_TRUE, 0, 1, &byte, 0, NULL, NULL) ==
           CL_SUCCESS);
    pthread_join(t, NULL);
    EXPECT(eventually(is_idle, NULL));
    return true;
}

struct in_callback {
    struct fixture *f;
    _Atomic int done;
    cl_int code;
};

static void CL_CALLBACK launch_in_callback(cl_event e, cl_int status, void *data)
{
    struct in_callback *c = data;
    c->code = launch(c->f->queue, c->f->kernel, 0, NULL, NULL);
    c->done = 1;
}

/* With no turn to be had, a launch on the driver's own thread returns, and runs when there
 * is one: a program that launches from callbacks is held like any other. */
static bool callback_does_not_block(void)
{
    struct fixture f;
    cl_int code;
    EXPECT(fixture_open(&f));
    struct in_callback c = { &f, 0, -1 };
    cl_event user = clCreateUserEvent(f.context, &code);
    EXPECT(clSetEventCallback(user, CL_COMPLETE, launch_in_callback, &c) == CL_SUCCESS);
    EXPECT(lose_turn());
    uint64_t before = gated_commands();
    clSetUserEventStatus(user, CL_COMPLETE);
    EXPECT(c.done && c.code == CL_SUCCESS);
    usleep(50000);
    EXPECT(gated_commands() == before);
    broker.auto_grant = 1;
    fake_grant(&broker, 0, SLOT_OPEN);
    clFinish(f.queue);
    EXPECT(gated_commands() == before + 1);
    EXPECT(atomic_load(&slot()->ungated) == 0);
    return true;
}

static bool command_buffers(void)
{
    struct fixture f;
    cl_int code;
    EXPECT(fixture_open(&f));
    clCreateCommandBufferKHR_fn create =
        (clCreateCommandBufferKHR_fn)fixture_fn(&f, "clCreateCommandBufferKHR");
    clCommandNDRangeKernelKHR_fn record =
        (clCommandNDRangeKernelKHR_fn)fixture_fn(&f, "clCommandNDRangeKernelKHR");
    clEnqueueCommandBufferKHR_fn enqueue =
        (clEnqueueCommandBufferKHR_fn)fixture_fn(&f, "clEnqueueCommandBufferKHR");
    clReleaseCommandBufferKHR_fn release =
        (clReleaseCommandBufferKHR_fn)fixture_fn(&f, "clReleaseCommandBufferKHR");
    EXPECT(create && record && enqueue && release);
    uint64_t before = gated_commands();
    cl_command_buffer_khr b = create(1, &f.queue, NULL, &code);
    EXPECT(record(b, NULL, NULL, f.kernel, 1, NULL, &one, NULL, 0, NULL, NULL, NULL) ==
           CL_SUCCESS);
    EXPECT(enqueue(0, NULL, b, 0, NULL, NULL) == CL_SUCCESS);
    EXPECT(enqueue(1, &f.queue, b, 0, NULL, NULL) == CL_SUCCESS);
    clFinish(f.queue);
    EXPECT(gated_commands() == before + 2);
    EXPECT(release(b) == CL_SUCCESS);
    return true;
}

static bool queue_released_with_work(void)
{
    struct fixture f;
    cl_int code;
    EXPECT(fixture_open(&f));
    uint64_t before = gated_commands();
    for (int i = 0; i < 50; i++) {
        cl_command_queue q = clCreateCommandQueue(f.context, f.device[0], 0, &code);
        EXPECT(launch(q, f.kernel, 0, NULL, NULL) == CL_SUCCESS);
        clReleaseCommandQueue(q);
    }
    EXPECT(gated_commands() == before + 50);
    EXPECT(eventually(is_idle, NULL));
    return true;
}

static bool works_without_the_broker(void)
{
    struct fixture f;
    EXPECT(fixture_open(&f));
    fake_kill(&broker);
    for (int i = 0; i < 20; i++)
        EXPECT(launch(f.queue, f.kernel, 0, NULL, NULL) == CL_SUCCESS);
    EXPECT(clFinish(f.queue) == CL_SUCCESS);
    return true;
}

/* An entry point that passes and may touch the device. */
static bool counted_or_refused(void)
{
    struct fixture f;
    EXPECT(fixture_open(&f));
    EXPECT(clSetDefaultDeviceCommandQueue(f.context, f.device[0], f.queue) == CL_SUCCESS);
    EXPECT(atomic_load(&slot()->ungated) == 1);
    atomic_load(&broker.page)->flags |= PROTO_LEASE_FAIL_CLOSED;
    EXPECT(clSetDefaultDeviceCommandQueue(f.context, f.device[0], f.queue) ==
           CL_OUT_OF_RESOURCES);
    EXPECT(driver_calls("clSetDefaultDeviceCommandQueue") == 1);
    EXPECT(launch(f.queue, f.kernel, 0, NULL, NULL) == CL_SUCCESS);
    return true;
}

/* Exit status of a forked child: what its launch returned, negated. */
static int launch_in_child(struct fixture *f)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        cl_int code = CL_SUCCESS;
        for (int i = 0; i < 50 && code == CL_SUCCESS; i++)
            code = launch(f->queue, f->kernel, 0, NULL, NULL);
        _exit(-code);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool forked_child_is_counted_or_refused(void)
{
    struct fixture f;
    EXPECT(fixture_open(&f));
    EXPECT(launch_in_child(&f) == 0);
    EXPECT(atomic_load(&slot()->ungated) > 0); /* on the child's own page */
    broker.flags = PROTO_LEASE_FAIL_CLOSED;
    EXPECT(launch_in_child(&f) == -CL_OUT_OF_RESOURCES);
    EXPECT(launch(f.queue, f.kernel, 0, NULL, NULL) == CL_SUCCESS);
    return true;
}

const struct row gate_rows[] = {
    { "what a forked child launches is counted, and refused when the lease is fail-closed",
      "", forked_child_is_counted_or_refused },
    { "ungated calls are counted, and refused when the lease is fail-closed", "",
      counted_or_refused },
    { "every launch is counted and the turn falls idle", "", launches_are_counted },
    { "without a turn the driver sees no launch", "", waits_for_the_turn },
    { "a user event set later by the same thread does not deadlock", "",
      user_event_by_the_same_thread },
    { "setting a user event waits for no turn", "", set_never_waits },
    { "a failed user event fails its commands and the queue goes on", "",
      failed_user_event },
    { "an out-of-order queue goes on past a held command", "", unordered_goes_on },
    { "what waits for a held command is held too", "", chain_over_two_queues },
    { "a blocking read behind a user event returns when it is set", "",
      blocking_read_behind_a_user_event },
    { "a launch inside a callback returns at once and runs under a turn", "",
      callback_does_not_block },
    { "a command buffer passes the gate each time", "", command_buffers },
    { "a queue may be released with work in flight", "", queue_released_with_work },
    { "the program runs on while the broker is gone", "", works_without_the_broker },
    { NULL, NULL, NULL },
};
