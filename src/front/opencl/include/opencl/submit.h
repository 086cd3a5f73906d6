/*
 * How a command passes the gate: what the generated wrappers call around the
 * driver's enqueue function.
 *
 *     struct submit s;
 *     submit_to(&s, command_queue);
 *     if (!submit_begin(&s, <cost>, blocking, n, list, event))
 *         return CL_OUT_OF_RESOURCES;
 *     code = driver(..., s.wait_count, s.wait_list, s.event);
 *     return submit_end(&s, code);
 *
 * A command that could run now waits in submit_begin() for the device's turn.
 * One that depends on a user event not yet set goes to the driver at once,
 * behind a gate event of ours (docs/internals/opencl-front.md).  Inside a
 * callback of the driver nothing waits.
 */
#ifndef OPENCL_SUBMIT_H
#define OPENCL_SUBMIT_H

#define SUBMIT_LIST 16 /* wait lists up to this length are copied without malloc */

struct ocl_queue;
struct held;

struct submit_cost {
    struct cost_entry *entry;
    enum gate_kind kind;
};

struct submit {
    struct ocl_queue *queue;  /* NULL: not ours to gate */
    struct gate_batch *batch; /* to be sensed */
    struct held *held;        /* goes behind a gate event */
    uint64_t ticket;          /* blocking calls */
    bool entered, blocking;
    cl_uint wait_count; /* what the driver gets */
    const cl_event *wait_list;
    cl_event *event;
    cl_event *asked; /* what the caller gave */
    cl_event own;    /* when the caller wanted none */
    cl_event *long_list;
    cl_event list[SUBMIT_LIST];
};

void submit_to(struct submit *s, cl_command_queue queue);
/* False: it would go ungated and the lease is fail-closed; nothing to end. */
bool submit_begin(struct submit *s, struct submit_cost cost, cl_bool blocking,
                  cl_uint count, const cl_event *list, cl_event *event);
/* Returns `code`. */
cl_int submit_end(struct submit *s, cl_int code);

/* Costs, looked up by kernel and shape, or by entry point and size. */
struct submit_cost submit_kernel(const struct submit *s, cl_kernel kernel, cl_uint dims,
                                 const size_t *global, const size_t *local);
struct submit_cost submit_copy(const struct submit *s, enum ocl_fn fn, uint64_t bytes);
struct submit_cost submit_object(const struct submit *s, const void *object);

static inline uint64_t submit_volume(const size_t *region)
{
    return region ? (uint64_t)region[0] * region[1] * region[2] : 0;
}

/* Set while a callback of the driver runs on this thread. */
extern __thread unsigned submit_in_callback
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* What the gate asks of us (front/gate.h). */
extern const struct gate_ops submit_gate_ops;

#endif
